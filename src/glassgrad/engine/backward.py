"""`backward` and `grad`: from tensors to a walk over the tape, and from its result to `.grad`."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from glassgrad import errors
from glassgrad.base import provenance
from glassgrad.engine import tape
from glassgrad.engine.mode import MODE, RECORDING, TRACING, is_grad_enabled
from glassgrad.engine.node import Freed
from glassgrad.engine.tensor import Tensor
from glassgrad.engine.tensors import creation
from glassgrad.engine.tensors.devices import DType
from glassgrad.engine.walks.plain_walk import run_plain
from glassgrad.ops.core import Array
from glassgrad.ops.shape import stack

_ndarray = np.ndarray
_new = object.__new__
_getframe = sys._getframe
_LISTS = (list, tuple)


def backward(
    tensors: Sequence[Tensor] | Tensor,
    grad_tensors: Sequence[Array] | Array = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Sequence[Tensor] | Tensor | None = None,
) -> None:
    """Accumulate the gradients of `tensors` into `.grad` of the leaves; see `Tensor.backward`.

    Example:
        >>> import glassgrad as gg
        >>> x = gg.tensor([1.0, 2.0], requires_grad=True)
        >>> gg.autograd.backward((x * x).sum())
        >>> x.grad
        tensor([2., 4.])
    """
    witness = MODE.witness
    looks = witness is not None and witness.backward(tensors)
    _walk(tensors, grad_tensors, retain_graph, create_graph, inputs, witness if looks else None)
    if witness is not None:
        witness.left()


def _walk(
    tensors: Sequence[Tensor] | Tensor,
    grad_tensors: Array,
    retain_graph: bool | None,
    create_graph: bool,
    inputs: Sequence[Tensor] | Tensor | None,
    witness: Any = None,
) -> None:
    """Do the work of `backward`; a witness is given only if it wants to see the gradients."""
    if isinstance(tensors, Tensor):  # usually one tensor: no lists needed
        node = tensors.node
        roots, seeds = (tensors if node is None else node,), (_seed(tensors, _only(grad_tensors)),)
    else:
        roots, seeds = _seeds(list(tensors), grad_tensors)
    retain = create_graph if retain_graph is None else retain_graph
    if inputs is not None:
        _accumulate_wanted(_listed(inputs), roots, seeds, retain, create_graph)
        return
    kept = tape.Kept() if witness is not None and not retain else None
    found = tape.backward(roots, seeds, retain_graph=retain, create_graph=create_graph, kept=kept)
    _fill(found)
    if kept is not None:
        _show(witness, roots, seeds, found, kept)


def _fill(found: dict[Any, Array], turns: bool = False) -> None:
    """Add the gradients of a walk to those of the leaves; conjugate complex ones if that was not done yet."""
    for leaf, g in found.items():
        if leaf._extra is None and leaf._grad is None and type(g) is _ndarray and g.dtype.kind != "c":
            leaf._grad = own = _new(Tensor)  # like `make`
            own.array, own.node, own._tracks, own._grad, own._extra = g, None, False, None, None
        else:
            _accumulate(leaf, tape.turned(g) if turns else g)


def _accumulate_wanted(sources: list[Any], roots: Any, seeds: Array, retain: bool, create_graph: bool) -> None:
    wanted = [_place_of(x) for x in sources]
    found = tape.backward(roots, seeds, retain_graph=retain, create_graph=create_graph, wanted=wanted)
    for x, place in zip(sources, wanted, strict=True):
        if place in found:
            _accumulate(x, found[place])


def grad(
    outputs: Sequence[Tensor] | Tensor,
    inputs: Sequence[Tensor] | Tensor,
    grad_outputs: Sequence[Array] | Array = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    allow_unused: bool | None = None,
    only_inputs: bool = True,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> tuple[Tensor | None, ...]:
    """Return the gradients of `outputs` with respect to `inputs`, without changing any `.grad`.

    Args:
        only_inputs: has no effect: no other tensor gets a gradient.
        is_grads_batched: each of `grad_outputs` has a first dimension more than its output; each gradient has it too.
        materialize_grads: inputs that were not used get zeros.

    Raises:
        AutogradError: when an input was not used and `allow_unused` and `materialize_grads` are False.

    Example:
        >>> import glassgrad as gg
        >>> x = gg.tensor(3.0, requires_grad=True)
        >>> (g,) = gg.autograd.grad(x**2, x, create_graph=True)
        >>> gg.autograd.grad(g, x)
        (tensor(2.),)
    """
    if is_grads_batched:
        return _grads_of_rows(outputs, inputs, _listed(grad_outputs), retain_graph, create_graph, allow_unused)
    sources = _listed(inputs)
    roots, seeds = _seeds(_listed(outputs), grad_outputs)
    retain = create_graph if retain_graph is None else retain_graph
    wanted = [_place_of(x) for x in sources]
    found = tape.backward(roots, seeds, retain_graph=retain, create_graph=create_graph, wanted=wanted)
    gradients: list[Tensor | None] = []
    for position, place in enumerate(wanted):
        g = found.get(place)
        if g is None and materialize_grads:
            gradients.append(creation.zeros_like(sources[position].detach()))
            continue
        if g is None and not allow_unused:
            raise errors.NOT_REACHED(index=position, where=provenance.here())
        gradients.append(None if g is None else tape.wrap(g))
    return tuple(gradients)


def _grads_of_rows(
    outputs: Array, inputs: Array, rows: list[Array], retain: bool | None, create: bool, unused: bool | None
) -> tuple[Tensor | None, ...]:
    """Return the gradients for each of several cotangents, stacked: one backward pass each."""
    count = len(rows[0])
    found = []
    for at in range(count):
        seeds = [None if row is None else row[at] for row in rows]
        kept = True if at < count - 1 else retain
        found.append(grad(outputs, inputs, seeds, kept, create, unused))
    return tuple(None if parts[0] is None else stack(parts) for parts in zip(*found, strict=True))


def _show(witness: Any, roots: Any, seeds: Array, found: dict[Any, Array], kept: tape.Kept) -> None:
    """Show the gradients to a witness while the graph can still be walked again, then free the graph."""
    try:
        witness.walked(found, lambda: tape.backward(roots, seeds, retain_graph=True, create_graph=False))
    finally:
        kept.free()


def _listed(value: Array) -> list[Array]:
    if type(value) is list:
        return value
    return [value] if isinstance(value, Tensor) or not isinstance(value, Iterable) else list(value)


def _place_of(x: Tensor) -> Any:
    """Return a tensor's vertex on the tape: its node, or the tensor itself if it is a leaf."""
    return x if x.node is None else x.node


def _only(value: Array) -> Any:
    """Return the only element of a list or tuple, or the value itself."""
    if isinstance(value, _LISTS):
        (value,) = value
    return value


def _seeds(outputs: list[Tensor], gradients: Array) -> tuple[tuple[Array, ...], tuple[Array, ...]]:
    """Return the outputs' vertices on the tape, and their cotangents."""
    given = [None] * len(outputs) if gradients is None else _listed(gradients)
    if len(given) != len(outputs):
        raise errors.GRADIENT_COUNT(given=len(given), expected=len(outputs), where=provenance.here())
    seeds = [_seed(output, gradient) for output, gradient in zip(outputs, given, strict=True)]
    return tuple(_place_of(output) for output in outputs), tuple(seeds)


def _seed(output: Tensor, gradient: Array) -> Array:
    """Return the initial cotangent of an output."""
    if not output._tracks:
        raise errors.NO_GRADIENT_PATH(what=_named(output), cut=_cut(), where=provenance.here())
    array = output.array
    if gradient is None:
        if math.prod(array.shape) != 1:
            raise errors.BACKWARD_NEEDS_SCALAR(shape=array.shape, where=provenance.here())
        if array.dtype.kind == "c":
            raise errors.BACKWARD_NEEDS_REAL(dtype=array.dtype, where=provenance.here())
        return _one(array.shape, array.dtype)
    if isinstance(gradient, Tensor) and not gradient._tracks:
        gradient = gradient.array
    if gradient.shape != array.shape:
        raise errors.GRADIENT_SHAPE(given=tuple(gradient.shape), expected=array.shape, where=provenance.here())
    return gradient


@lru_cache(maxsize=64)
def _one(shape: tuple[int, ...], dtype: DType) -> np.ndarray:
    one = np.ones(shape, dtype)
    one.flags.writeable = False  # it is shared; gradients that alias it are copied
    return one


def _named(output: Tensor) -> str:
    """Name the tensor that backward() was called on as in the user's line."""
    operands = provenance.here(2).operands
    return f"'{operands[0]}'" if operands and operands[0].isidentifier() else f"the tensor of shape {output.shape}"


def _cut() -> str:
    """Suggest where the path to the parameters was cut."""
    if not is_grad_enabled():
        return ", and recording is off here (no_grad)"
    exit_ = provenance.EXITS.last()
    if exit_ is None:
        return ""
    call, place = exit_
    return f".\nThe last value to leave the graph did so at {call}, {place}: {place.source}"


def _accumulate(leaf: Tensor, g: Array) -> None:
    """Add to the gradient of a leaf, through its hooks."""
    extra = leaf._extra
    if extra is not None and leaf.node is None:
        for hook in list(extra.get("hooks", ())):
            replaced = hook(tape.wrap(g))
            if replaced is not None:
                g = replaced if isinstance(g, Tensor) else tape.unwrap(replaced)
    gradient = tape.wrap(g)  # NumPy's arithmetic on 0-d arrays returns scalars; `wrap` turns them into arrays
    if MODE.levels and set(tape.levels_of(gradient)) - set(tape.levels_of(leaf)):
        raise errors.VMAP_BACKWARD(where=provenance.here())
    before = leaf._grad
    if before is None:
        leaf._grad = gradient
    elif gradient._tracks or type(before.array) is not np.ndarray or before._tracks:
        leaf._grad = before + gradient
    else:
        before.array += gradient.array
    if extra is not None and "after" in extra:
        for hook in list(extra["after"]):
            hook(leaf)


class _Variables(type):
    """The type of `Variable`: a call makes a tensor, and every tensor is an instance."""

    def __call__(cls, data: Array, requires_grad: bool = False, volatile: bool = False) -> Tensor:
        x = data.detach() if isinstance(data, Tensor) else creation.tensor(data)
        x.requires_grad = requires_grad
        return x

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, Tensor)


class Variable(metaclass=_Variables):
    """PyTorch's older spelling of a tensor that requires a gradient: the same memory as `data`.

    Every tensor is an instance of it.

    Example:
        >>> import glassgrad as gg
        >>> gg.autograd.Variable(gg.ones(2), requires_grad=True).requires_grad
        True
    """

    def __init__(self, data: Array, requires_grad: bool = False, volatile: bool = False) -> None:
        """Make a tensor, see the class."""


# --- Tensor.backward ------------------------------------------------------------------------------


def _backward(
    self: Tensor,
    gradient: Array | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Sequence[Tensor] | Tensor | None = None,
) -> None:
    """Add the gradient of this tensor to `.grad` of the leaves it was computed from.

    Args:
        self: the tensor to differentiate.
        gradient: cotangent of this tensor, of its shape; optional for one element.
        retain_graph: keep the graph for another backward; default: as `create_graph`.
        create_graph: record the backward pass, so that gradients can be differentiated.
        inputs: accumulate only into these.

    Raises:
        AutogradError: without a path to a leaf that requires a gradient, or on a freed graph.
    """
    node: Any = self.node
    flags, witness = MODE.flags, MODE.witness
    looks = witness is not None and witness.backward(self)
    if node is None or create_graph or inputs is not None or looks or _is_special(flags):
        seed = None
    elif type(gradient) is Tensor and not gradient._tracks and self._tracks:
        seed = gradient.array
    else:
        seed = _seed(self, _only(gradient))
    if type(seed) is _ndarray and seed.dtype is node.dtype and seed.shape == node.shape and seed.dtype.kind != "c":
        # The same as `_walk` and `tape.backward` for one tensor, without a `Walk` until it is needed.
        freed = None
        if not retain_graph:
            frame = _getframe(1)
            if provenance.INTERNAL[frame.f_code.co_filename]:
                frame = provenance.user_frame(1)
            freed = _new(Freed)
            freed.code, freed.lasti = frame.f_code, frame.f_lasti
        MODE.flags = flags & ~RECORDING
        try:
            found = run_plain(None, node, seed, freed)
        finally:
            MODE.flags = flags
        _fill(found, turns=True)
    else:
        _walk(self, gradient, retain_graph, create_graph, inputs, witness if looks else None)
    if witness is not None:
        witness.left()


def _is_special(flags: int) -> Any:
    """Tell whether the general walk is needed because something may observe it."""
    return flags & TRACING or tape.BEFORE_WALK or MODE.observer is not None or MODE.levels


_backward.__name__, _backward.__qualname__ = "backward", "Tensor.backward"
Tensor.backward = _backward  # type: ignore[method-assign, assignment]  # declared there for type checkers
