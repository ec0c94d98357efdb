"""A PyTorch module as a function of ours: its structure is read through `torch.fx`, its weights are copied.

The translation is a small Python function, one line a node, that can be traced like any other: layers become ours
of the same name and settings, functions and methods ours of the same name. What has no counterpart is refused with
its place.
PyTorch itself is imported only by a user who has a module of it in hand.
"""

from __future__ import annotations

import importlib
import inspect
import linecache
import operator
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from glassgrad import errors
from glassgrad.tensor import Tensor, make

# Layers whose settings and weights have the same names and meaning on both sides.
LAYERS = frozenset({
    "AvgPool2d", "BCELoss", "BCEWithLogitsLoss", "BatchNorm1d", "BatchNorm2d", "Conv1d", "Conv2d", "CrossEntropyLoss",
    "Dropout", "ELU", "Embedding", "Flatten", "GELU", "GroupNorm", "Identity", "L1Loss", "LayerNorm", "LeakyReLU",
    "Linear", "LogSoftmax", "MSELoss", "MaxPool2d", "NLLLoss", "RMSNorm", "ReLU", "SiLU", "Sigmoid", "Softmax",
    "Softplus", "Tanh",
})  # fmt: skip
_SIGNS = {
    "add": "+", "sub": "-", "mul": "*", "truediv": "/", "matmul": "@", "pow": "**", "mod": "%", "floordiv": "//",
    "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!=",
}  # fmt: skip


class Layers:
    """The translated layers and weights of a module, as attributes."""

    def named_parameters(self) -> Iterator[tuple[str, Tensor]]:
        """Yield the parameters; having this method makes the tracer look at every attribute."""
        for name, part in vars(self).items():
            if isinstance(part, Tensor):
                yield name, part
            elif hasattr(part, "named_parameters"):
                yield from part.named_parameters(name)


class Functions:
    """Our functions that a translated module calls, apart from its variables, which have the same names."""


def is_foreign(function: Any) -> bool:
    """Tell whether something is a PyTorch module."""
    return any(kind.__module__ == "torch.nn.modules.module" for kind in type(function).__mro__)


def as_ours(value: Any) -> Any:
    """Return a PyTorch tensor as one of ours, with its numbers; anything else as it is."""
    if type(value).__module__.split(".")[0] == "torch" and hasattr(value, "detach"):
        return make(np.array(value.detach().cpu().numpy()), None, bool(value.requires_grad and value.is_leaf))
    return value


def translated(module: Any) -> Callable[..., Any]:
    """Return a function of our tensors that computes what a PyTorch module does.

    Raises:
        CompileError: for a module that torch.fx cannot read, or with a part that has no counterpart here.
    """
    return _Translation(module).function()


class _Translation:
    def __init__(self, module: Any) -> None:
        fx = importlib.import_module("torch.fx")
        self.nn = importlib.import_module("glassgrad.nn")
        self.functional = importlib.import_module("glassgrad.nn.functional")
        self.public = importlib.import_module("glassgrad.public").NAMES
        self.module = module
        self.name = type(module).__name__
        try:
            self.graph = fx.symbolic_trace(module).graph
        except Exception as error:
            raise self._refusal(f"code that torch.fx cannot read ({error})", "forward()") from error
        self.layers = Layers()
        self.functions = Functions()
        self.space: dict[str, Any] = {"self": self.layers, "F": self.functions}

    def _refusal(self, what: str, path: str) -> Exception:
        expected = f"one of {', '.join(sorted(LAYERS))}, or functions and methods that glassgrad has too"
        return errors.FOREIGN_MODULE(what=what, path=path, expected=expected)

    def function(self) -> Callable[..., Any]:
        """Write the function, compile it, return it."""
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
        file = f"<torch module {self.name}>"
        linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
        exec(compile(source, file, "exec"), self.space)  # noqa: S102 - written above, from names of layers and functions
        made: Callable[..., Any] = self.space[self.name]
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
        if kind not in LAYERS or not hasattr(self.nn, kind):
            raise self._refusal(f"a layer {kind}", path)
        ours = getattr(self.nn, kind)
        settings = {}
        for name in inspect.signature(ours).parameters:
            value = getattr(theirs, name, None)
            if name == "bias":
                settings[name] = value is not None
            elif name not in {"device", "dtype", "inplace"} and hasattr(theirs, name):
                settings[name] = as_ours(value)
        try:
            layer = ours(**settings)
            layer.load_state_dict({key: value.detach().cpu().numpy() for key, value in theirs.state_dict().items()})
        except errors.GlassgradError as error:
            raise self._refusal(f"a layer {theirs} with settings that have no counterpart ({error})", path) from error
        for (_, parameter), original in zip(layer.named_parameters(), theirs.parameters(), strict=True):
            parameter.array = parameter.array.astype(as_ours(original).dtype)
            parameter.requires_grad = original.requires_grad
        layer.train(theirs.training)
        setattr(self.layers, self._flat(path), layer)
        return f"self.{self._flat(path)}"

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
        if node.target is operator.neg:
            return f"-{given[0]}"
        ours = getattr(self.functional, name, None) or self.public.get(name)
        if ours is None:
            raise self._refusal(f"the function {name}()", f"the node {node.name}")
        setattr(self.functions, name, ours)
        return f"F.{name}({', '.join(self._without_inplace(given))})"

    @staticmethod
    def _without_inplace(given: list[str]) -> list[str]:
        return [one for one in given if not one.startswith("inplace=")]
