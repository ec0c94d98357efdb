"""PyTorch's checks of indices, masks and sources of indexing ops, made once before any computation.

NumPy would guess the user's intention: it broadcasts, casts and crops where PyTorch raises.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from glassgrad.ops.core import Array, bad_option

_INDEX = (np.dtype(np.int64), np.dtype(np.int32))


def as_index(op: str, index: Any, *, vector: bool = False) -> Any:
    """Return an index as an array of int64 or int32; `vector` allows at most one dimension."""
    array = index
    if not isinstance(getattr(index, "dtype", None), np.dtype):  # a list, or another library's
        array = np.asarray(index)
        array = array if array.size else array.astype(np.int64)
    if not math.prod(array.shape) and array.dtype.kind in "iu":
        array = np.empty(tuple(array.shape), np.int64)  # the dtype of an empty array does not matter
    if array.dtype not in _INDEX:
        raise bad_option(op, "index", f"an array of {array.dtype}", "integers: int64 or int32")
    if vector and len(array.shape) > 1:
        raise bad_option(op, "index", f"an array of shape {tuple(array.shape)}", "one dimension")
    return array


def expect_dimension(op: str, x: Array) -> None:
    """Raise for a 0-d array."""
    if not x.shape:
        raise bad_option(op, "x", "an array of no dimensions", "at least one")


def expect_mask(op: str, mask: Any, name: str = "mask") -> None:
    """Raise unless a mask is boolean."""
    kind = getattr(getattr(mask, "dtype", None), "kind", "b")  # dtypes of other libraries have no `kind`
    if kind != "b":
        raise bad_option(op, name, f"an array of {mask.dtype}", f"booleans: {name} != 0")


def expect_dtype(op: str, x: Array, source: Any) -> None:
    """Raise unless a source has the dtype of its destination."""
    if isinstance(getattr(source, "dtype", None), np.dtype) and source.dtype != x.dtype:
        raise bad_option(op, "src", f"an array of {source.dtype}", f"the dtype of the tensor, {x.dtype}")


def expect_along(op: str, x: Array, axis: int, index: Array, source: Any = None) -> None:
    """Raise unless an index has as many dimensions as x and is no larger, except along the axis.

    A `source` has to be at least as large as the index.
    """
    sizes = [_at_least_one(part) for part in (x, index, *(() if source is None else (source,)))]
    if 0 in sizes[1]:
        return
    if any(len(size) != len(sizes[0]) for size in sizes):
        given = ", ".join(str(tuple(size)) for size in sizes[1:])
        raise bad_option(op, "index", f"shapes {given}", f"{len(sizes[0])} dimensions, as x has")
    if any(sizes[1][at] > n for at, n in enumerate(sizes[0]) if at != axis):
        raise bad_option(op, "index", sizes[1], f"sizes of at most {sizes[0]}, but along dimension {axis}")
    if source is not None and any(n > most for n, most in zip(sizes[1], sizes[2], strict=True)):
        raise bad_option(op, "src", sizes[2], f"sizes of at least {sizes[1]}, those of the index")


def expect_slices(op: str, x: Array, axis: int, index: Array, source: Array) -> None:
    """Raise unless a source holds one slice of x for each place of an index along an axis; one number is one slice."""
    count = index.shape[0] if index.shape else 1
    wanted = (*x.shape[:axis], count, *x.shape[axis + 1 :]) if x.shape else (count,)
    given = tuple(source.shape)
    if given != wanted and not (count == 1 and len(wanted) == 1 and not given):
        raise bad_option(op, "source", f"an array of shape {given}", f"the shape {wanted}")


def _at_least_one(x: Array) -> tuple[int, ...]:
    return tuple(x.shape) or (1,)
