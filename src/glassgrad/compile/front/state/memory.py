"""Find tensors that share memory, and the views that lead from one array to another.

A tensor that the traced function made from known numbers stays an array until it is written to. Then every tensor that
shares its memory must become a Symbol, each a view of one root; otherwise the write would not reach the others.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Collection, Iterator, Sequence
from typing import Any

import numpy as np

from glassgrad import errors
from glassgrad.base import provenance
from glassgrad.compile.front.state import alive
from glassgrad.compile.ir.graph import Params
from glassgrad.engine.tensor import Tensor, make
from glassgrad.ops.core import Array, Primitive
from glassgrad.ops.index import getitem_p
from glassgrad.ops.places import EVERYTHING, Slice
from glassgrad.ops.shape import broadcast_to_p, permute_p, reshape_p
from glassgrad.ops.views import memory_owner

Step = tuple[Primitive, Params]


def _holders(target: Tensor) -> int:
    return sys.getrefcount(target.array)


_ALONE = _holders(make(np.zeros(1), None, False))


def is_alone(target: Tensor, held: int) -> bool:
    """Tell whether only `held` variables of the caller refer to a tensor's array, so it has no views."""
    return _holders(target) <= _ALONE + held


def sharers(owner: Array) -> list[Tensor]:
    """Return the tensors whose arrays are in the memory of `owner` and are not traced yet."""
    arrays = ((one, getattr(one, "array", None)) for one in alive.tensors())  # a tensor under construction has no array
    return [one for one, array in arrays if type(array) is np.ndarray and memory_owner(array) is owner]


def whole(base: Array, tensors: Sequence[Tensor]) -> set[tuple[int, ...]]:
    """Return the shapes of the tensors that cover the whole memory of `base`."""
    return {one.shape for one in tensors if one.array.size == base.size and one.array.flags.c_contiguous}


def seen(base: Array, root: Array, array: Array, shapes: Collection[tuple[int, ...]] = ()) -> Any:
    """Return `array`, which is in the memory of `base`, as views of `root`, which represents `base`.

    Args:
        base, root, array: as above.
        shapes: other shapes in which the program views the whole memory; slices are searched in these.

    Raises:
        CompileError: if no chain of views is known.
    """
    steps = path(base, array, shapes)
    if steps is None:
        what = f"an array of shape {list(array.shape)} that the function made"
        raise errors.TRACE_VIEW_WRITE(where=provenance.here(2), what=what, op="view")
    for prim, params in steps:
        root = prim(root, **params)
    return root


def path(base: Array, array: Array, shapes: Collection[tuple[int, ...]] = ()) -> list[Step] | None:
    """Return the views that lead from `base` to an array in the same memory; None if none are known."""
    if array.dtype != base.dtype:
        return None
    for steps in _candidates(base, array, shapes):
        seen = base
        for prim, params in steps:
            seen = prim.compute((seen,), params)
        if _is_same(seen, array):
            return steps
    return None


def _is_same(one: Array, other: Array) -> bool:
    moves = [[step for step, n in zip(array.strides, array.shape, strict=True) if n > 1] for array in (one, other)]
    start, theirs = (array.__array_interface__["data"][0] for array in (one, other))
    return bool(one.shape == other.shape and moves[0] == moves[1] and start == theirs)


def _candidates(base: Array, array: Array, shapes: Collection[tuple[int, ...]]) -> Iterator[list[Step]]:
    yield []
    sliced = _sliced(base, array)
    if sliced is not None:
        yield sliced
    if not base.flags.c_contiguous:
        return
    flat = (base.size,)
    first = _distance(base, array)
    piece = (Slice(first, first + array.size, None),)
    yield [(reshape_p, {"shape": array.shape})] if array.size == base.size else []
    yield [(reshape_p, {"shape": flat}), (getitem_p, {"spec": piece}), (reshape_p, {"shape": array.shape})]
    for shape in (flat, _blocks(base.size, array), *shapes):
        sliced = None if shape is None else _sliced(base.reshape(shape), array)
        if sliced is not None:
            yield [(reshape_p, {"shape": shape}), *sliced]


def _distance(base: Array, array: Array) -> int:
    """Return the offset of `array` in `base`, in elements."""
    start, theirs = (one.__array_interface__["data"][0] for one in (base, array))
    return int((theirs - start) // base.itemsize)


def _blocks(size: int, array: Array) -> tuple[int, ...] | None:
    """Return a shape of the flat memory along which the array may be sliced."""
    pairs = zip(array.strides, array.shape, strict=True)
    steps = sorted({abs(step) // array.itemsize for step, n in pairs if step and n > 1}, reverse=True)
    bounds = [size, *steps, 1]
    if any(long % short for long, short in itertools.pairwise(bounds)):
        return None
    return tuple(long // short for long, short in itertools.pairwise(bounds))


def _sliced(base: Array, array: Array) -> list[Step] | None:
    """Return an index, a permutation and a broadcast that may lead from `base` to the array."""
    steps = [step // base.itemsize for step in base.strides]
    if any(step <= 0 for step in steps):
        return None
    starts, rest = [0] * base.ndim, _distance(base, array)
    for axis in sorted(range(base.ndim), key=lambda axis: -steps[axis]):
        starts[axis], rest = divmod(rest, steps[axis]) if base.shape[axis] > 1 else (0, rest)
    spec: list[Any] = list(starts)
    owners: dict[int, int] = {}  # axis of the base -> axis of the array
    for at, (step, n) in enumerate(zip(array.strides, array.shape, strict=True)):
        if step == 0 or n == 1:
            continue
        mine = _axis_of(step // base.itemsize, n, steps, starts, base.shape, owners)
        if mine is None:
            return None
        owners[mine] = at
        by = step // base.itemsize // steps[mine]
        stop = starts[mine] + n * by
        spec[mine] = Slice(starts[mine], stop if stop >= 0 else None, by)
    if rest or any(not 0 <= start < n for start, n in zip(starts, base.shape, strict=True)):
        return None
    found: list[Step] = [(getitem_p, {"spec": tuple(spec)})]
    order = [owners[axis] for axis in sorted(owners)]
    if order != sorted(order):
        found.append((permute_p, {"axes": tuple(int(axis) for axis in np.argsort(order))}))
    if len(order) < array.ndim:
        found.append((getitem_p, {"spec": tuple(EVERYTHING if at in order else None for at in range(array.ndim))}))
    if any(n > 1 and at not in order for at, n in enumerate(array.shape)):
        found.append((broadcast_to_p, {"shape": array.shape}))
    return found


def _axis_of(
    step: int, count: int, steps: Sequence[int], starts: Sequence[int], shape: Sequence[int], taken: dict[int, int]
) -> int | None:
    """Return the axis of the base that is long enough and whose stride divides that of the array's axis."""
    fitting = [
        axis
        for axis, one in enumerate(steps)
        if axis not in taken and step % one == 0 and 0 <= starts[axis] + (count - 1) * (step // one) < shape[axis]
    ]
    return max(fitting, key=lambda axis: steps[axis], default=None)
