"""PyTorch modules as functions of glassgrad: `torch.fx` reads the structure, the weights are copied.

The translation is a small Python function, one line per node, that can be traced like any other: layers, functions and
methods become those of the same name here. A part without a counterpart is an error that names its place.
PyTorch itself is imported only if the user passes one of its modules.
"""

from __future__ import annotations

import importlib
import inspect
import itertools
import operator
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from glassgrad import errors
from glassgrad.compile.front.calls.parameters import Function
from glassgrad.compile.ir.generated import executed
from glassgrad.compile.source.statements import WRITTEN
from glassgrad.engine.tensor import Tensor, make

# Containers, whose content is read; they are not layers themselves.
_NO_LAYERS = frozenset({"Module", "ModuleDict", "ModuleList", "ParameterDict", "ParameterList", "Sequential"})
_SIGNS_OF_OPERATORS = """
    add:+ sub:- mul:* truediv:/ matmul:@ pow:** mod:% floordiv:// iadd:+ isub:- imul:* itruediv:/ and_:& or_:| xor:^
    lt:< le:<= gt:> ge:>= eq:== ne:!=
"""
_SIGNS = dict(pair.split(":") for pair in _SIGNS_OF_OPERATORS.split())


def _attention(theirs: Any) -> dict[str, Any]:
    """Settings of multi-head attention, some of which follow from its weights only."""
    return {"bias": theirs.in_proj_bias is not None, "add_bias_kv": theirs.bias_k is not None}


def _transformer(theirs: Any) -> dict[str, Any]:
    """Settings of a transformer layer, which only its parts store."""
    activation = theirs.activation
    name = getattr(activation, "__name__", type(activation).__name__.lower())
    return {
        "d_model": theirs.self_attn.embed_dim,
        "nhead": theirs.self_attn.num_heads,
        "dim_feedforward": theirs.linear1.out_features,
        "dropout": theirs.dropout.p,
        "activation": name,
        "layer_norm_eps": theirs.norm1.eps,
        "batch_first": theirs.self_attn.batch_first,
        "bias": theirs.linear1.bias is not None,
    }


# layer -> settings that it does not store as attributes
_SETTINGS: dict[str, Callable[[Any], dict[str, Any]]] = {
    "MultiheadAttention": _attention,
    "TransformerEncoderLayer": _transformer,
    "TransformerDecoderLayer": _transformer,
}
_MISSING = object()
_NUMBERS = itertools.count(1)


class Layers:
    """The translated layers and weights of a module, as attributes."""

    def named_parameters(self) -> Iterator[tuple[str, Tensor]]:
        """Yield the parameters; this method makes the tracer inspect every attribute."""
        for name, part in vars(self).items():
            if isinstance(part, Tensor):
                yield name, part
            elif hasattr(part, "named_parameters"):
                yield from part.named_parameters(name)


class Functions:
    """The functions that a translated module calls, in a separate namespace from its variables of the same names."""


def is_foreign(function: object) -> bool:
    """Tell whether an object is a PyTorch module."""
    return any(kind.__module__ == "torch.nn.modules.module" for kind in type(function).__mro__)


def as_ours(value: Any) -> Any:
    """Convert a PyTorch tensor to a Tensor with its values; return anything else unchanged."""
    if type(value).__module__.split(".")[0] == "torch" and hasattr(value, "detach"):
        return make(np.array(value.detach().cpu().numpy()), None, bool(value.requires_grad and value.is_leaf))
    return value


def translated(module: Any) -> Function:
    """Return a function on Tensors that computes the same as a PyTorch module.

    Raises:
        CompileError: torch.fx cannot read the module, or a part of it has no counterpart here.
    """
    return _Translation(module).function()


class _Translation:
    def __init__(self, module: Any) -> None:
        fx = importlib.import_module("torch.fx")
        self.nn = importlib.import_module("glassgrad.nn")
        self.functional = importlib.import_module("glassgrad.nn.functional")
        self.public = importlib.import_module("glassgrad.engine.public").NAMES
        self.module = module
        self.name = type(module).__name__
        try:
            self.graph = fx.symbolic_trace(module).graph
        except Exception as error:  # this runs the user's code, which may raise anything
            raise self._refusal(f"code that torch.fx cannot read ({error})", "forward()") from error
        self.layers = Layers()
        self.functions = Functions()
        self.space: dict[str, Any] = {"self": self.layers, "F": self.functions}

    def _refusal(self, what: str, path: str) -> Exception:
        return errors.FOREIGN_MODULE(what=what, path=path)

    def function(self) -> Function:
        """Generate the function, compile it and return it."""
        arguments, lines = [], []
        for node in self.graph.nodes:
            if node.op == "placeholder":
                default = f"={node.args[0]!r}" if node.args else ""
                arguments.append(f"{node.name}{default}")
            elif node.op == "output":
                lines.append(f"return {self._text(node.args[0])}")
            else:
                lines.append(f"{node.name} = {self._expression(node)}")
        source = f"def {self.name}({', '.join(arguments)}):\n" + "".join(f"    {line}\n" for line in lines)
        file = f"{WRITTEN} {self.name} {next(_NUMBERS)}>"  # unique, since facts about a file are cached
        made: Function = executed(source, file, self.space, shown=True)[self.name]
        return made

    def _expression(self, node: Any) -> str:
        given = [self._text(arg) for arg in node.args]
        given += [f"{key}={self._text(value)}" for key, value in node.kwargs.items() if value is not None]
        match node.op:
            case "call_module":
                return f"{self._layer(node.target)}({', '.join(given)})"
            case "call_method":
                return self._method(node, given)
            case "get_attr":
                return self._weight(node.target)
        return self._function(node, given)

    def _text(self, value: Any) -> str:
        if hasattr(value, "op") and hasattr(value, "name"):
            return str(value.name)
        if isinstance(value, tuple | list):
            inner = ", ".join(map(self._text, value))
            return f"[{inner}]" if isinstance(value, list) else f"({inner}{',' if len(value) == 1 else ''})"
        if isinstance(value, slice):
            return f"slice({self._text(value.start)}, {self._text(value.stop)}, {self._text(value.step)})"
        if type(value).__module__ == "torch" and type(value).__name__ == "dtype":
            name = str(value).removeprefix("torch.")
            self.space[name] = np.dtype(name)
            return name
        if value is Ellipsis:
            return "..."
        return repr(value)

    # --- parts ----------------------------------------------------------------------------------------

    def _layer(self, path: str) -> str:
        theirs = self.module.get_submodule(path)
        kind = type(theirs).__name__
        if kind in _NO_LAYERS or kind not in self.nn.__all__ or not type(theirs).__module__.startswith("torch.nn."):
            raise self._refusal(f"a layer {kind}", path)
        try:
            layer = getattr(self.nn, kind)(**self._settings(theirs, path))
            layer.load_state_dict({key: value.detach().cpu().numpy() for key, value in theirs.state_dict().items()})
        except (errors.GlassgradError, TypeError) as error:
            raise self._refusal(f"a layer {theirs} with settings that have no counterpart ({error})", path) from error
        originals = dict(theirs.named_parameters())
        for name, parameter in layer.named_parameters():
            parameter.array = parameter.array.astype(as_ours(originals[name]).dtype)
            parameter.requires_grad = originals[name].requires_grad
        layer.train(theirs.training)
        setattr(self.layers, self._flat(path), layer)
        return f"self.{self._flat(path)}"

    def _settings(self, theirs: Any, path: str) -> dict[str, Any]:
        """Return the arguments for our layer: the settings of theirs, all of which ours must support."""
        kind = type(theirs).__name__
        known = inspect.signature(getattr(self.nn, kind)).parameters
        settings: dict[str, Any] = {}
        for name, parameter in inspect.signature(type(theirs)).parameters.items():
            value = getattr(theirs, name, _MISSING)
            plain = value is _MISSING or name in {"device", "dtype", "inplace"} or name.startswith("_")
            if name not in known and not plain and value != parameter.default:
                raise self._refusal(f"a layer {kind} with {name}={value!r}", path)
        for name in known:
            value = getattr(theirs, name, _MISSING)
            if value is _MISSING or name in {"device", "dtype", "inplace"} or name.startswith("_"):
                continue
            settings[name] = value is not None if name == "bias" and not isinstance(value, bool) else as_ours(value)
        return {**settings, **_SETTINGS.get(kind, lambda _: {})(theirs)}

    def _flat(self, path: str) -> str:
        """Return a path as the name of one attribute."""
        name = path.replace(".", "_")
        return f"{self.name.lower()}_{name}" if name[0].isdigit() else name

    def _weight(self, path: str) -> str:
        holder, _, name = path.rpartition(".")
        value = getattr(self.module.get_submodule(holder), name)
        setattr(self.layers, self._flat(path), as_ours(value))
        return f"self.{self._flat(path)}"

    def _method(self, node: Any, given: list[str]) -> str:
        if not hasattr(Tensor, node.target):
            raise self._refusal(f"the method {node.target}()", f"the node {node.name}")
        return f"{given[0]}.{node.target}({', '.join(given[1:])})"

    def _function(self, node: Any, given: list[str]) -> str:
        name = node.target.__name__
        if node.target is operator.getitem:
            return f"{given[0]}[{given[1]}]"
        if node.target.__module__ == "_operator" and name in _SIGNS:
            return f"{given[0]} {_SIGNS[name]} {given[1]}"
        if node.target is getattr:
            return self._attribute(node)
        if node.target is operator.neg:
            return f"-{given[0]}"
        ours = getattr(self.functional, name, None) or self.public.get(name)
        if ours is None:
            raise self._refusal(f"the function {name}()", f"the node {node.name}")
        setattr(self.functions, name, ours)
        return f"F.{name}({', '.join(self._without_inplace(given))})"

    def _attribute(self, node: Any) -> str:
        owner, name = node.args[:2]
        if not hasattr(Tensor, name):
            raise self._refusal(f"the attribute {name} of a tensor", f"the node {node.name}")
        return f"{self._text(owner)}.{name}"

    @staticmethod
    def _without_inplace(given: list[str]) -> list[str]:
        return [one for one in given if not one.startswith("inplace=")]
