"""Infer the types of results while tracing, and check the operands.

Shape rules assume that the operands fit. In eager mode NumPy raises if they do not; a native program would not. So
ops with several arrays are checked here, with errors like NumPy's, which the interpreter turns into messages that
name the user's variables.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from glassgrad.compile.front.calls.parameters import Args
from glassgrad.compile.ir.graph import Params
from glassgrad.ops.core import Array, Primitive
from glassgrad.ops.places import join_index


def infer(prim: Primitive, args: Args, params: Params) -> Args:
    """Return shape and dtype of each result; raise `ValueError` if the operands do not fit."""
    check = CHECKS.get(prim.name)
    if check is not None:
        check(*args, **params)
    if prim.shape_rule is not None:
        found = prim.abstract(*args, **params)
    else:
        with np.errstate(all="ignore"):  # only the types matter; the numbers are arbitrary
            found = prim.abstract(*args, **params)
    return found if prim.multiple else (found,)


def _shape(x: Array) -> tuple[int, ...]:
    return tuple(np.shape(x)) if not hasattr(x, "shape") else tuple(x.shape)


def _reshape(x: Array, *, shape: tuple[int, ...]) -> None:
    if math.prod(_shape(x)) != math.prod(shape):
        raise ValueError(f"cannot reshape array of size {math.prod(_shape(x))} into shape {shape}")


def _broadcast(x: Array, *, shape: tuple[int, ...]) -> None:
    if np.broadcast_shapes(_shape(x), shape) != tuple(shape):
        raise ValueError(f"cannot broadcast shape {_shape(x)} to {shape}")


def _matmul(a: Array, b: Array) -> None:
    left, right = _shape(a), _shape(b)
    if not left or not right:
        raise ValueError("matmul: an operand has no dimensions")
    inner = right[-2] if len(right) > 1 else right[0]
    if left[-1] != inner:
        raise ValueError(f"matmul: the inner sizes {left[-1]} and {inner} differ")


def _concatenate(*xs: Array, axis: int) -> None:
    shapes = {tuple(n for at, n in enumerate(_shape(x)) if at != axis) for x in xs}
    if len(shapes) > 1 or len({len(_shape(x)) for x in xs}) > 1:
        raise ValueError("all the input array dimensions except for the concatenation axis must match exactly")


def _place(shape: tuple[int, ...], arrays: tuple[Array, ...], spec: Any) -> tuple[int, ...]:
    """Return the shape of ``x[index]`` for x of this shape."""
    zeros = [np.broadcast_to(np.int64(0), _shape(array)) for array in arrays]
    return tuple(np.broadcast_to(np.empty(()), shape)[join_index(spec, zeros)].shape)


def _at_set(x: Array, value: Array, *arrays: Array, spec: Any) -> None:
    place = _place(_shape(x), arrays, spec)
    # As in NumPy, drop extra leading dimensions of length 1 of the value.
    given = _shape(value)
    while len(given) > len(place) and given[0] == 1:
        given = given[1:]
    if np.broadcast_shapes(given, place) != place:
        raise ValueError(f"could not broadcast input array from shape {_shape(value)} into shape {place}")


def _put_add(g: Array, *arrays: Array, spec: Any, shape: tuple[int, ...]) -> None:
    place = _place(tuple(shape), arrays, spec)
    if np.broadcast_shapes(_shape(g), place) != place:
        raise ValueError(f"could not broadcast input array from shape {_shape(g)} into shape {place}")


def _take_along(x: Array, index: Array, *, axis: int, **_rest: object) -> None:
    have, want = _shape(x), _shape(index)
    if len(have) != len(want) or any(w > h for at, (h, w) in enumerate(zip(have, want, strict=True)) if at != axis):
        raise ValueError(f"an index of shape {want} does not fit an array of shape {have} along axis {axis}")


def _extreme(x: Array, *, axis: tuple[int, ...], **_rest: object) -> None:
    extents = [(extent, at in axis) for at, extent in enumerate(_shape(x))]
    if any(not extent for extent, reduced in extents if reduced) and all(n for n, reduced in extents if not reduced):
        raise ValueError("zero-size array to reduction operation maximum or minimum, which has no identity")


def _place_of_extreme(x: Array, *, axis: int | None = None, **_rest: object) -> None:
    shape = _shape(x)
    if not (math.prod(shape) if axis is None else shape[axis]):
        raise ValueError("attempt to get the place of an extreme of an empty sequence")


CHECKS: dict[str, Callable[..., None]] = {
    "reshape": _reshape,
    "broadcast_to": _broadcast,
    "matmul": _matmul,
    "concat": _concatenate,
    "at_set": _at_set,
    "put_add": _put_add,
    "take_along_axis": _take_along,
    "max": _extreme,
    "min": _extreme,
    "argmax": _place_of_extreme,
    "argmin": _place_of_extreme,
}
