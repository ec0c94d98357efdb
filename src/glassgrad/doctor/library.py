"""Read tensors and modules of any library: ours, PyTorch, or layers written by hand.

Nothing is imported for this: the library of an object is loaded already.
"""

from __future__ import annotations

import functools
import gc
import re
import sys
from collections.abc import Callable, Collection, Iterator
from typing import Any, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from glassgrad.base.provenance import pytorch
from glassgrad.doctor.reading.names import named

Array = NDArray[Any]
Args = tuple[Any, ...]
Kwargs = dict[str, Any]
Module = Any  # of glassgrad, of PyTorch or written by hand
Optimizer = Any  # likewise
Tensor = Any  # of glassgrad or of PyTorch
LossFunction = Callable[..., Tensor]


class Handle(Protocol):
    """A hook's handle."""

    def remove(self) -> object:
        """Remove the hook."""


# Ops that return the same numbers in another order or shape, by their names in both libraries.
_VIEWS = named(
    "alias clone contiguous expand permute reshape reshapealias squeeze t transpose unsafeview unsqueeze view"
)
_FARTHEST = 8
"""The longest chain of views that is followed to the op that made the numbers."""


def numbers(value: Any) -> Array | None:
    """Return the numbers of a tensor as a NumPy array, or None if it has none because a step is being traced.

    The array may share memory with the tensor. bfloat16 becomes float32, sparse tensors dense, and a tensor on another
    device is copied.
    """
    if value is None or isinstance(value, np.ndarray):
        return value
    if isinstance(value, int | float | np.generic):
        return np.asarray(value)
    if hasattr(value, "array"):  # a tensor of ours; a Symbol inside has no numbers yet
        return value.array if isinstance(value.array, np.ndarray) else None
    if not is_torch(value) or _torch_traces():
        return None
    value = value.detach()
    if value.layout != pytorch().strided:
        value = value.to_dense()
    if value.dtype == pytorch().bfloat16:
        value = value.float()
    array: Array = value.cpu().numpy()
    return array


def number(value: Any) -> float | None:
    """Return the number in a tensor, None if it has none or several."""
    array = numbers(value)
    return float(array.reshape(())) if array is not None and array.size == 1 else None


def is_tensor(value: object) -> bool:
    """Tell whether a value is a tensor of one of the libraries."""
    return is_torch(value) or (hasattr(value, "array") and hasattr(value, "requires_grad"))


def is_torch(value: object) -> bool:
    """Tell whether a tensor or a module is PyTorch's."""
    torch = pytorch()
    return torch is not None and isinstance(value, torch.Tensor | torch.nn.Module)


def _torch_traces() -> bool:
    compiler = getattr(pytorch(), "compiler", None)
    return bool(compiler is not None and compiler.is_compiling())


def untraced(hook: Callable[..., Any], otherwise: Callable[..., Any] = lambda *args: None) -> Callable[..., Any]:
    """Return a hook that `torch.compile` leaves out of the programs that it traces; they call `otherwise` instead.

    If nothing has been compiled yet, return the hook itself.
    """
    if "torch._dynamo" not in sys.modules:
        return hook
    compiler = pytorch().compiler
    apart = compiler.disable(hook)

    @functools.wraps(hook)
    def told(*args: Any) -> Any:
        return otherwise(*args) if compiler.is_compiling() else apart(*args)

    return told


def uncompiled(model: Module) -> Module:
    """Return the module that `torch.compile` was given; return any other module unchanged."""
    return getattr(model, "_orig_mod", model) if is_torch(model) else model


def is_torch_compiled(model: Module) -> bool:
    """Tell whether a PyTorch module runs as a compiled program, which calls no hooks."""
    return is_torch(model) and (hasattr(model, "_orig_mod") or getattr(model, "_compiled_call_impl", None) is not None)


def gradient(parameter: Tensor) -> Array | None:
    """Return the gradient of a parameter as an array, None if it has none."""
    held = getattr(parameter, "_grad", None) if hasattr(parameter, "array") else parameter.grad
    return numbers(held)


def values(parameter: Tensor) -> Array:
    """Return the numbers of a parameter."""
    held: Any = getattr(parameter, "data", None)
    return cast("Array", held if isinstance(held, np.ndarray) else numbers(parameter))  # a parameter always has numbers


def is_half(parameter: Tensor) -> bool:
    """Tell whether a tensor keeps its numbers in 16 bits."""
    return str(getattr(parameter, "dtype", "")).endswith("float16")


def trainable(parameter: Tensor) -> bool:
    """Tell whether gradients are wanted for a parameter."""
    return bool(getattr(parameter, "requires_grad", True))


def trained_by(*optimizers: Optimizer) -> list[Tensor]:
    """Return the parameters that optimizers have in their groups."""
    groups = [group for one in optimizers for group in getattr(one, "param_groups", ())]
    return [parameter for group in groups for parameter in group["params"]]


def named_leaves(model: Module) -> Iterator[tuple[str, Module]]:
    """Yield the modules that contain no others, with their names; hand-written layers take no hooks, so have none."""
    if not hasattr(model, "named_modules"):
        return
    for name, module in model.named_modules():
        if hasattr(module, "register_forward_hook") and not any(True for _ in module.children()):
            yield name, module


def is_recording(model: Module) -> bool:
    """Tell whether ops of the model's library are recorded for gradients now."""
    if is_torch(model):
        return bool(pytorch().is_grad_enabled())
    mode = sys.modules.get("glassgrad.engine.mode")
    return mode is None or bool(mode.MODE.flags & mode.RECORDING)


def first_tensor(value: Any) -> Tensor | None:
    """Return the first tensor in nested tuples, lists and dictionaries, or an object's `logits`."""
    if is_tensor(value):
        return value
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, tuple | list):
        found = (first_tensor(part) for part in value)
        return next((part for part in found if part is not None), None)
    return first_tensor(value.logits) if hasattr(value, "logits") else None


def mapped(value: Any, now: Callable[[Tensor], Tensor]) -> Any:
    """Return arguments with each tensor and each array replaced by what a function gives for it."""
    if isinstance(value, dict):
        return {name: mapped(part, now) for name, part in value.items()}
    if type(value) in {tuple, list}:
        return type(value)(mapped(part, now) for part in value)
    return now(value) if isinstance(value, np.ndarray) or is_tensor(value) else value


def tensors_of(model: Module) -> list[Tensor]:
    """Return the parameters and the buffers of a model."""
    buffers = model.named_buffers() if hasattr(model, "named_buffers") else ()
    return [tensor for _, tensor in (*model.named_parameters(), *buffers)]


def tensor_of(array: Array, torch: bool) -> Tensor:
    """Return a PyTorch tensor, or one of ours, that shares the memory of an array."""
    return sys.modules["torch" if torch else "glassgrad.engine.tensors.creation"].from_numpy(array)


def hook_of(module: Module, hook: Callable[..., object]) -> Callable[..., object]:
    """Return a hook that calls another for one module only, and not for its copies, which have its hooks as well.

    A function is not copied with the module; a method would be, with all that its object holds.
    """

    def heard(called: Module, *args: object) -> object:
        return hook(called, *args) if called is module else None

    return heard


def remove_hooks(model: Module, handles: Collection[Handle]) -> None:
    """Remove hooks from the modules of a model, so that calls run as before."""
    for handle in handles:
        handle.remove()
    if handles:
        drop_empty_hooks(model)


def is_by_hand(model: Module) -> bool:
    """Tell whether a model's layers are written by hand: arrays in, arrays out, and a backward pass to call."""
    return hasattr(model, "backward") and not hasattr(model, "register_forward_hook")


def is_cut(loss: Tensor) -> bool:
    """Tell whether a loss has no history, so that it has no gradient."""
    if is_torch(loss):
        return loss.grad_fn is None
    return hasattr(loss, "array") and loss.node is None


def producer(tensor: Tensor) -> tuple[str, int] | None:
    """Return name and number of the op that computed a tensor's numbers, ignoring views; None for a leaf.

    Names are lowercase: "tanh", "relu", "addmm". The number identifies the application of the op.
    """
    node = tensor.grad_fn if is_torch(tensor) else getattr(tensor, "node", None)
    for _ in range(_FARTHEST):
        if node is None:
            return None
        name = _name(node)
        if name not in _VIEWS:
            return name, _number(node)
        node = _first_parent(node)
    return None


def made_by(tensor: Tensor) -> str:
    """Return the op that made a tensor and, if the library knows it, the user's line; empty for a leaf."""
    node = tensor.grad_fn if is_torch(tensor) else getattr(tensor, "node", None)
    if node is None:
        return ""
    return f"{_name(node)} at {node.place}" if hasattr(node, "prim") else _name(node)


def _name(node: Any) -> str:
    if hasattr(node, "prim"):
        return str(node.prim.name)
    return re.sub(r"Backward\d*$", "", type(node).__name__).lower()


def _number(node: Any) -> int:
    return int(node.seq) if hasattr(node, "prim") else int(node._sequence_nr())


def _first_parent(node: Any) -> Any:
    if hasattr(node, "prim"):
        parent = node.parents[0] if node.parents else None
        return parent if hasattr(parent, "prim") else None
    return node.next_functions[0][0] if node.next_functions else None


def alive(*kinds: type) -> Iterator[Any]:
    """Yield the objects of these classes that are alive."""
    known: dict[int, bool] = {}  # a look-up for each object; `isinstance` would take several times as long
    for thing in gc.get_objects():
        kind = type(thing)
        wanted = known.get(id(kind))
        if wanted is None:
            wanted = known[id(kind)] = issubclass(kind, kinds)
        if wanted:
            yield thing


def drop_empty_hooks(model: Module) -> None:
    """Remove the traces of removed hooks from our modules, so that calls take the fast path again."""
    for module in model.modules() if hasattr(model, "modules") and not is_torch(model) else ():
        hooks = getattr(module, "_hooks", None)
        if hooks is not None and not (hooks.before or hooks.after or hooks.backward or hooks.backward_before):
            del module._hooks
