"""Read and load a state dictionary: compare names and shapes, and change nothing if they do not match.

Hooks stand around both, module by module. Where a hook may forgive keys after loading, the values that fit are loaded
before the rest is refused, as in PyTorch.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from glassgrad import errors
from glassgrad.base import provenance
from glassgrad.engine.tensor import Tensor
from glassgrad.engine.writes import MUTATIONS
from glassgrad.nn.parameter import Buffer, Parameter

if TYPE_CHECKING:
    from glassgrad.nn.module import Module

EXTRA = "_extra_state"


class Incompatible(NamedTuple):
    """The result of `load_state_dict`: missing keys of the model, and unexpected keys of the state."""

    missing_keys: list[str]
    unexpected_keys: list[str]

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return f"Incompatible(missing_keys={self.missing_keys}, unexpected_keys={self.unexpected_keys})"


def as_array(value: Any) -> np.ndarray:
    """Return the values of a Tensor, of a PyTorch tensor, or of an array."""
    if hasattr(value, "detach"):
        value = value.detach()
    return np.asarray(value)


def _own(module: Module) -> Iterator[tuple[str, Tensor]]:
    """Yield what of a module itself is saved: parameters before buffers, as in PyTorch."""
    for kind in (Parameter, Buffer):
        for name, value in vars(module).items():
            if isinstance(value, kind) and getattr(value, "persistent", True):
                yield name, value


def _defines(module: Module, method: str) -> bool:
    """Tell whether a module's class has its own `get_extra_state` or `set_extra_state`."""
    return not getattr(type(module), method).__module__.startswith("glassgrad.")


def _hooks(module: Module, kind: str) -> tuple[Callable[..., Any], ...]:
    return tuple((module._state_hooks or {}).get(kind, ()))


def _children_first(module: Module) -> Iterator[Module]:
    for child in module._modules.values():
        yield from _children_first(child)
    yield module


def _about(module: Module) -> dict[str, Any]:
    return {"version": getattr(module, "_version", 1)}  # PyTorch's `local_metadata`


def without_module(hook: Callable[..., Any]) -> Callable[..., Any]:
    """Return a hook that is given the module, made of one that is not."""
    return lambda _module, *args: hook(*args)


def collect(module: Module, result: OrderedDict[str, Any], prefix: str, keep_vars: bool) -> OrderedDict[str, Any]:
    """Put the state of a module and of those below it into a dictionary: `Module.state_dict`."""
    for hook in _hooks(module, "before_saving"):
        hook(module, prefix, keep_vars)
    for name, value in _own(module):
        result[f"{prefix}{name}"] = value if keep_vars else value.detach()
    if _defines(module, "get_extra_state"):
        result[f"{prefix}{EXTRA}"] = module.get_extra_state()
    for name, child in module._modules.items():
        child.state_dict(destination=result, prefix=f"{prefix}{name}.", keep_vars=keep_vars)
    for hook in _hooks(module, "after_saving"):
        hook(module, result, prefix, _about(module))
    return result


def is_open(tensor: Tensor) -> bool:
    """Tell whether a tensor is that of a lazy layer before its first input: it takes values of any shape."""
    return tensor._extra is not None and "open" in tensor._extra


def fill(tensor: Tensor, array: np.ndarray) -> None:
    """Give the tensor of a lazy layer its values, and with them its shape."""
    tensor.array = array.astype(tensor.dtype)
    assert tensor._extra is not None  # it is open
    del tensor._extra["open"]


def _put(tensor: Tensor, array: np.ndarray, assign: bool) -> None:
    """Give a tensor its values: in its memory, unless it is to take that of the array."""
    if is_open(tensor) and array.size:
        fill(tensor, array)
    elif assign:
        tensor.array = array
    else:
        np.copyto(tensor.array, array, casting="unsafe")
        MUTATIONS.record(tensor.array)


def load(model: Module, given: object, strict: bool, assign: bool) -> Incompatible:
    """Copy what is given into the parameters and buffers of the same names: `Module.load_state_dict`.

    Args:
        model: the module.
        given: tensors (ours or PyTorch's) or arrays by name.
        strict: every name has to be on both sides.
        assign: use the given memory and dtype instead of copying.

    Raises:
        AutogradError: on missing or unexpected keys (if `strict`) or a wrong shape; nothing is changed then.
        KindError: `given` is not a dictionary.
    """
    kind = type(model).__name__
    if not isinstance(given, Mapping):
        advice = "\nNext: pass its state_dict()." if hasattr(given, "state_dict") else ""
        raise errors.STATE_DICT_KIND(model=kind, kind=type(given).__name__, next=advice, where=provenance.here())
    state: OrderedDict[str, Any] = OrderedDict(given)
    own: dict[str, Any] = {}
    said: list[str] = []
    found = Incompatible([], [])
    below = [(f"{path}." if path else "", module) for path, module in model.named_modules(remove_duplicate=False)]
    for prefix, module in below:
        for hook in _hooks(module, "before_loading"):
            hook(module, state, prefix, _about(module), strict, found.missing_keys, found.unexpected_keys, said)
        own.update({f"{prefix}{name}": value for name, value in _own(module)})
        if _defines(module, "set_extra_state"):
            own[f"{prefix}{EXTRA}"] = module
    found.missing_keys.extend(key for key in own if key not in state)
    found.unexpected_keys.extend(key for key in state if key not in own)
    forgiving = [(hook, module) for module in _children_first(model) for hook in _hooks(module, "after_loading")]
    arrays = {key: as_array(value) for key, value in state.items() if isinstance(own.get(key), Tensor)}
    said += [
        f"{key}: {array.shape}, expected {tuple(own[key].shape)}"
        for key, array in arrays.items()
        if array.shape != tuple(own[key].shape) and not is_open(own[key])
    ]
    _check(kind, own, state, found, said, strict and not forgiving)
    for key, array in arrays.items():
        _put(own[key], array, assign)
    for key, value in own.items():
        if not isinstance(value, Tensor) and key in state:
            value.set_extra_state(state[key])
    for hook, module in forgiving:
        hook(module, found)
    _check(kind, own, state, found, said, strict)
    return found


def _check(
    model: str, own: Mapping[str, Any], given: Mapping[str, Any], found: Incompatible, wrong: list[str], strict: bool
) -> None:
    """Raise where shapes are wrong, or with `strict` where keys are left on one side."""
    if wrong or (strict and (found.missing_keys or found.unexpected_keys)):
        raise errors.STATE_DICT_MISMATCH(
            model=model,
            missing="\n  missing: " + ", ".join(found.missing_keys) if found.missing_keys else "",
            unexpected="\n  unexpected: " + ", ".join(found.unexpected_keys) if found.unexpected_keys else "",
            wrong="\n  wrong shape: " + "; ".join(wrong) if wrong else "",
            next=_advice(own, given, bool(wrong)),
        )


def _advice(own: Mapping[str, Any], given: Mapping[str, Any], wrong: bool) -> str:
    """Advise on a state that does not fit: recognise wrappers and files of several states."""
    inside = [key for key, value in given.items() if isinstance(value, Mapping) and own.keys() & value.keys()]
    if inside:
        return f"pass the entry under {inside[0]!r}"
    for key in given:
        prefix, _, rest = str(key).partition(".")
        if rest in own and key not in own:
            return f"remove the prefix: {{name.removeprefix({prefix + '.'!r}): value for name, value in ...}}"
    fits = "" if wrong else ", or pass strict=False to load what fits"
    return f"build the model with the same layers and sizes{fits}"
