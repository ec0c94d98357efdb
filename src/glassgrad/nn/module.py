"""Module, Parameter and Buffer: state, found by looking at the object's own attributes.

A module has no registries beside its attributes. What is a `Parameter`, a `Buffer` or a `Module` among
them, in the order of assignment, is its state; so reading `self.weight` costs a plain attribute lookup.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple, Self

import numpy as np

from glassgrad import errors
from glassgrad.tape import no_grad
from glassgrad.tensor import Handle, Tensor, make


class Parameter(Tensor):
    """A tensor that belongs to the trainable state of the module it is assigned to."""

    def __init__(self, data: Any = (), requires_grad: bool = True) -> None:
        super().__init__(data, requires_grad)

    def __repr__(self) -> str:
        return f"Parameter containing:\n{super().__repr__()}"


class Buffer(Tensor):
    """A tensor of the state that is not trained, such as a running mean.

    `persistent=False` keeps it out of `state_dict`.
    """

    def __init__(self, data: Any = (), *, persistent: bool = True) -> None:
        super().__init__(data)
        self.persistent = persistent


class Incompatible(NamedTuple):
    """What `load_state_dict` found: keys of the model without a value, and values without a key."""

    missing_keys: list[str]
    unexpected_keys: list[str]


class Module:
    """Base of all layers and models; subclasses define `forward`.

    Example:
        >>> import glassgrad as gg
        >>> class Twice(gg.nn.Module):
        ...     def __init__(self):
        ...         super().__init__()
        ...         self.layer = gg.nn.Linear(2, 2)
        ...     def forward(self, x):
        ...         return self.layer(self.layer(x))
        >>> [name for name, _ in Twice().named_parameters()]
        ['layer.weight', 'layer.bias']
    """

    training: bool = True
    _hooks: OrderedDict[str, list[Callable[..., Any]]] | None = None

    def __init__(self) -> None:
        # Nothing to prepare: defaults live on the class, state in the attributes.
        super().__init__()

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Compute the output; subclasses must define it."""
        raise errors.FORWARD_MISSING(owner=type(self).__name__)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._hooks is None:
            return self.forward(*args, **kwargs)
        return self._call_with_hooks(args, kwargs)

    def _call_with_hooks(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        assert self._hooks is not None
        for hook in self._hooks["pre"]:
            changed = hook(self, args)
            if changed is not None:
                args = changed if isinstance(changed, tuple) else (changed,)
        result = self.forward(*args, **kwargs)
        for hook in self._hooks["forward"]:
            changed = hook(self, args, result)
            result = result if changed is None else changed
        for hook in self._hooks["backward"]:
            _BackwardWatch(self, hook, args, result)
        return result

    def __setattr__(self, name: str, value: Any) -> None:
        # A buffer stays one when a plain tensor is assigned to its name.
        if type(value) is Tensor and isinstance(self.__dict__.get(name), Buffer):
            value = Buffer(value.array, persistent=self.__dict__[name].persistent)
        object.__setattr__(self, name, value)

    # --- state --------------------------------------------------------------------------------------

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Set an attribute to a Parameter or None."""
        setattr(self, name, param)

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Set an attribute to a tensor that is part of the state and not trained."""
        setattr(self, name, None if tensor is None else Buffer(tensor.array, persistent=persistent))

    def register_module(self, name: str, module: Module | None) -> None:
        """Set an attribute to a submodule."""
        setattr(self, name, module)

    add_module = register_module

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """Yield the direct submodules with their names."""
        for name, value in self.__dict__.items():
            if isinstance(value, Module):
                yield name, value

    def children(self) -> Iterator[Module]:
        """Yield the direct submodules."""
        for _, child in self.named_children():
            yield child

    def named_modules(self, prefix: str = "", _seen: set[int] | None = None) -> Iterator[tuple[str, Module]]:
        """Yield this module and all below it, each once, with dotted names."""
        seen = set() if _seen is None else _seen
        if id(self) in seen:
            return
        seen.add(id(self))
        yield prefix, self
        for name, child in self.named_children():
            yield from child.named_modules(f"{prefix}.{name}" if prefix else name, seen)

    def modules(self) -> Iterator[Module]:
        """Yield this module and all below it, each once."""
        for _, module in self.named_modules():
            yield module

    def _named_state(
        self, kind: type[Tensor], prefix: str, recurse: bool, unique: bool
    ) -> Iterator[tuple[str, Any]]:
        seen: set[int] = set()
        for path, module in self.named_modules(prefix) if recurse else [(prefix, self)]:
            for name, value in module.__dict__.items():
                if isinstance(value, kind) and not (unique and id(value) in seen):
                    seen.add(id(value))
                    yield (f"{path}.{name}" if path else name), value

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """Yield the parameters with dotted names; a shared one once, under its first name."""
        return self._named_state(Parameter, prefix, recurse, remove_duplicate)

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """Yield the parameters, each once."""
        for _, parameter in self.named_parameters(recurse=recurse):
            yield parameter

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Buffer]]:
        """Yield the buffers with dotted names."""
        return self._named_state(Buffer, prefix, recurse, remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[Buffer]:
        """Yield the buffers, each once."""
        for _, buffer in self.named_buffers(recurse=recurse):
            yield buffer

    def get_submodule(self, target: str) -> Module:
        """Return the submodule with a dotted name."""
        module = self
        for name in target.split(".") if target else ():
            module = getattr(module, name)
        return module

    def get_parameter(self, target: str) -> Parameter:
        """Return the parameter with a dotted name."""
        path, _, name = target.rpartition(".")
        parameter: Parameter = getattr(self.get_submodule(path), name)
        return parameter

    def state_dict(self, *, prefix: str = "", keep_vars: bool = False) -> OrderedDict[str, Tensor]:
        """Return all parameters and persistent buffers by name, sharing memory with the model."""
        result: OrderedDict[str, Tensor] = OrderedDict()
        for path, module in _all_paths(self, prefix.rstrip(".")):
            for kind in (Parameter, Buffer):  # within a module parameters come first, as in PyTorch
                for name, value in module.__dict__.items():
                    if isinstance(value, kind) and getattr(value, "persistent", True):
                        result[f"{path}.{name}" if path else name] = value if keep_vars else value.detach()
        return result

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True) -> Incompatible:
        """Copy values into the parameters and buffers of the same names, in place.

        Raises:
            AutogradError: on missing or unexpected keys (if `strict`) or a wrong shape; nothing is
                changed then.
        """
        own = self.state_dict()
        missing = [key for key in own if key not in state_dict]
        unexpected = [key for key in state_dict if key not in own]
        arrays = {key: _as_array(value) for key, value in state_dict.items() if key in own}
        wrong = [
            f"{key}: {array.shape}, expected {own[key].shape}"
            for key, array in arrays.items()
            if array.shape != own[key].shape
        ]
        if wrong or (strict and (missing or unexpected)):
            raise errors.STATE_DICT_MISMATCH(
                model=type(self).__name__,
                missing="\n  missing: " + ", ".join(missing) if missing else "",
                unexpected="\n  unexpected: " + ", ".join(unexpected) if unexpected else "",
                wrong="\n  wrong shape: " + "; ".join(wrong) if wrong else "",
            )
        for key, array in arrays.items():
            np.copyto(own[key].array, array, casting="unsafe")
        return Incompatible(missing, unexpected)

    # --- what is done to all --------------------------------------------------------------------------

    def train(self, mode: bool = True) -> Self:
        """Set training mode here and below; return self."""
        for module in self.modules():
            module.training = mode
        return self

    def eval(self) -> Self:
        """Leave training mode here and below; return self."""
        return self.train(False)

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients of all parameters."""
        for parameter in self.parameters():
            if set_to_none or parameter._grad is None:
                parameter._grad = None
            else:
                parameter._grad.array[...] = 0

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Freeze or unfreeze all parameters; return self."""
        for parameter in self.parameters():
            parameter.requires_grad = requires_grad
        return self

    def apply(self, fn: Callable[[Module], Any]) -> Self:
        """Call `fn` on every module below and then on this one; return self."""
        for child in self.children():
            child.apply(fn)
        fn(self)
        return self

    def to(self, *args: Any, dtype: Any = None, **_kwargs: Any) -> Self:
        """Convert floating-point parameters and buffers to a dtype, in place; devices other than cpu raise."""
        from glassgrad import device as devices

        for arg in args:
            dtype = arg if devices.is_dtype(arg) else dtype
        if dtype is not None:
            with no_grad():
                for kind in (Parameter, Buffer):
                    for _, value in self._named_state(kind, "", True, True):
                        if value.array.dtype.kind == "f":
                            value.array = value.array.astype(dtype)
        for arg in args:
            if not devices.is_dtype(arg):
                devices.check(arg)
        return self

    def double(self) -> Self:
        """Convert to float64."""
        return self.to(np.float64)

    def float(self) -> Self:
        """Convert to float32."""
        return self.to(np.float32)

    def cpu(self) -> Self:
        """Return self: everything lives in the computer's memory."""
        return self

    # --- hooks ----------------------------------------------------------------------------------------

    def _hook(self, kind: str, hook: Callable[..., Any]) -> Handle:
        if self._hooks is None:
            self._hooks = OrderedDict(pre=[], forward=[], backward=[])
        self._hooks[kind].append(hook)
        return Handle(self._hooks[kind], hook)

    def register_forward_pre_hook(self, hook: Callable[..., Any]) -> Handle:
        """Call `hook(module, args)` before forward; it may return other arguments."""
        return self._hook("pre", hook)

    def register_forward_hook(self, hook: Callable[..., Any]) -> Handle:
        """Call `hook(module, args, output)` after forward; it may return another output."""
        return self._hook("forward", hook)

    def register_full_backward_hook(self, hook: Callable[..., Any]) -> Handle:
        """Call `hook(module, grad_input, grad_output)` in the backward pass."""
        return self._hook("backward", hook)

    # --- printing ---------------------------------------------------------------------------------------

    def extra_repr(self) -> str:
        """Return what stands in the brackets of `repr`."""
        return ""

    def __repr__(self) -> str:
        lines = [f"({name}): " + repr(child).replace("\n", "\n  ") for name, child in self.named_children()]
        extra = self.extra_repr()
        if not lines:
            return f"{type(self).__name__}({extra})"
        return f"{type(self).__name__}({extra}\n  " + "\n  ".join(lines) + "\n)"


def _all_paths(module: Module, prefix: str) -> Iterator[tuple[str, Module]]:
    """Yield every path to every module, shared ones under each of their names."""
    yield prefix, module
    for name, child in module.named_children():
        yield from _all_paths(child, f"{prefix}.{name}" if prefix else name)


def _as_array(value: Any) -> np.ndarray[Any, Any]:
    """Return the values of a Tensor of ours, of PyTorch's, or of an array."""
    if hasattr(value, "detach"):
        value = value.detach()
    return np.asarray(value)


class _BackwardWatch:
    """Calls a backward hook when the gradients of a module's output and of its inputs are both known."""

    def __init__(self, module: Module, hook: Callable[..., Any], args: tuple[Any, ...], result: Any) -> None:
        self.module = module
        self.hook = hook
        outputs = [x for x in (result if isinstance(result, tuple) else (result,)) if isinstance(x, Tensor)]
        self.grad_output: list[Any] = [None] * len(outputs)
        self.grad_input: list[Any] = [None] * len(args)
        inputs = [(at, x) for at, x in enumerate(args) if isinstance(x, Tensor) and x.requires_grad]
        self.waiting = len(inputs)
        for position, x in enumerate(outputs):
            if x.requires_grad:
                x.register_hook(partial(self.output_arrived, position))
        for position, x in inputs:
            x.register_hook(partial(self.input_arrived, position))

    def output_arrived(self, position: int, g: Tensor) -> None:
        self.grad_output[position] = g
        if not self.waiting:
            self.finish()

    def input_arrived(self, position: int, g: Tensor) -> None:
        self.grad_input[position] = g
        self.waiting -= 1
        if not self.waiting:
            self.finish()

    def finish(self) -> None:
        self.hook(self.module, tuple(self.grad_input), tuple(self.grad_output))


__all__ = ["Buffer", "Incompatible", "Module", "Parameter", "make"]
