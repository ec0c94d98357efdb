"""NumPy's version of functions that PyTorch has under the same name with another meaning or with fewer arguments.

`np.dot` multiplies matrices, `np.outer` flattens, `np.squeeze` of an axis that is not 1 raises, and a reduction over
`axis=()` reduces nothing.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from glassgrad.engine.tensors import creation
from glassgrad.engine.tensors.devices import DType
from glassgrad.ops import arrange, elementwise, scan, shape
from glassgrad.ops.core import Array, bad_option, canonical_axes, canonical_axis, distinct_axes
from glassgrad.ops.factorise import qr as _qr
from glassgrad.ops.index import getitem, take
from glassgrad.ops.names import PUBLIC, public
from glassgrad.ops.norms import vector_norm

# An axis as in NumPy: one, several, or None for all.
Axis: TypeAlias = int | Sequence[int] | None


def _array(x: Array) -> Array:
    return x if hasattr(x, "shape") else np.asarray(x)


def _flat(x: Array) -> Array:
    return shape.reshape(_array(x), -1)


def _check(holds: bool, op: str, name: str, given: Array, expected: str) -> None:
    if not holds:
        raise bad_option(f"np.{op}", name, given, expected)


# --- reductions -----------------------------------------------------------------------------------


def over_nothing(function: Callable[..., Any]) -> Callable[..., Any]:
    """Let a reduction over `axis=()` reduce an axis of size 1 that is inserted in front."""

    def call(a: Array, *rest: Array, axis: Axis = None, keepdims: bool = False, **options: Any) -> Array:
        if isinstance(axis, tuple) and not axis:
            return function(shape.unsqueeze(_array(a), 0), *rest, axis=0, **options)
        return function(a, *rest, axis=axis, keepdims=keepdims, **options)

    return call


def _parted(
    function: Callable[..., Any], neutral: Array, joined: Callable[[Array, Array], Array]
) -> Callable[..., Any]:
    """Give a reduction NumPy's `where` and `initial`: elements left out count as `neutral` or as `initial`."""

    def call(
        a: Array, axis: Axis = None, keepdims: bool = False, where: Array = True, initial: Array = None, **options: Any
    ) -> Array:
        if where is not True:
            _expect_within(function.__name__, where, a)
            rest = neutral if neutral is not None else initial
            _check(rest is not None, function.__name__, "where", where, "an `initial` value beside it")
            a = elementwise.where(where, a, rest)
        y = function(a, axis=axis, keepdims=keepdims, **options)
        return y if initial is None else joined(y, np.asarray(initial).astype(y.dtype))

    return call


def _expect_within(op: str, where: Array, a: Array) -> None:
    given = np.shape(where)
    fits = np.broadcast_shapes(given, tuple(a.shape)) == tuple(a.shape)
    _check(fits, op, "where", f"an array of shape {given}", f"one that broadcasts to {tuple(a.shape)}")


def _mean(a: Array, axis: Axis = None, keepdims: bool = False, where: Array = True, dtype: DType = None) -> Array:
    if where is True:
        return PUBLIC["mean"](a, axis, keepdims, dtype=dtype)
    _expect_within("mean", where, a)
    counted = np.broadcast_to(np.asarray(where), a.shape)
    total = PUBLIC["sum"](elementwise.where(where, a, 0), axis, keepdims, dtype=dtype)
    return total / counted.sum(axis=canonical_axes(axis, len(a.shape)), keepdims=keepdims)


_PARTED: dict[str, tuple[Any, Any, Callable[[Any, Any], Any]]] = {
    "sum": ("sum", 0, operator.add),
    "prod": ("prod", 1, operator.mul),
    "all": ("all", True, elementwise.logical_and),
    "any": ("any", False, elementwise.logical_or),
    "max": ("amax", None, elementwise.maximum),
    "min": ("amin", None, elementwise.minimum),
    "amax": ("amax", None, elementwise.maximum),
    "amin": ("amin", None, elementwise.minimum),
}
_REDUCTIONS: dict[str, Callable[..., Any]] = {"mean": _mean} | {
    name: _parted(PUBLIC[ours], neutral, joined) for name, (ours, neutral, joined) in _PARTED.items()
}


# --- products -------------------------------------------------------------------------------------


def _dot(a: Array, b: Array) -> Array:
    a, b = _array(a), _array(b)
    if not a.shape or not b.shape:
        return a * b
    if len(b.shape) > 2:
        return PUBLIC["tensordot"](a, b, ([len(a.shape) - 1], [len(b.shape) - 2]))
    return PUBLIC["matmul"](a, b)


def _crossed(a: Array, b: Array, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None) -> Array:
    if axis is not None:
        axisa = axisb = axisc = axis
    a, b = shape.movedim(_array(a), axisa, -1), shape.movedim(_array(b), axisb, -1)
    a, b = arrange.broadcast_tensors(a, b) if a.shape[-1] == b.shape[-1] else (a, b)
    return shape.movedim(PUBLIC["cross"](a, b, dim=-1), -1, axisc)


def _trace(a: Array, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: DType = None) -> Array:
    return PUBLIC["sum"](PUBLIC["diagonal"](a, offset, axis1, axis2), -1, dtype=dtype)


def matrix_trace(x: Array, /, *, offset: int = 0, dtype: DType = None) -> Array:
    """Sum of the diagonals of the last two dimensions: the standard's `linalg.trace`, and NumPy's."""
    return _trace(x, offset, -2, -1, dtype)


def _correlate(a: Array, v: Array, mode: str = "valid") -> Array:
    a, v = _array(a), _array(v)
    if a.shape[0] < v.shape[0]:
        return PUBLIC["conj"](shape.flip(_correlate(v, a, mode)))
    n = v.shape[0]
    border = {"full": (n - 1, n - 1), "same": (n // 2, (n - 1) // 2), "valid": (0, 0)}[mode]
    return PUBLIC["matmul"](PUBLIC["unfold"](arrange.pad(a, border), 0, n), PUBLIC["conj"](v))


def _convolve(a: Array, v: Array, mode: str = "full") -> Array:
    a, v = _array(a), _array(v)
    long, short = (v, a) if v.shape[0] > a.shape[0] else (a, v)
    return _correlate(long, PUBLIC["conj"](shape.flip(short)), mode)


# --- shapes ---------------------------------------------------------------------------------------


def _squeeze(a: Array, axis: Axis = None) -> Array:
    if axis is not None:
        axes = distinct_axes((axis,) if isinstance(axis, int) else axis, len(a.shape))
        _check(all(not a.shape or a.shape[at] == 1 for at in axes), "squeeze", "axis", axis, "axes of size 1")
    return shape.squeeze(a, axis)


def _expand_dims(a: Array, axis: Axis) -> Array:
    given = axis if isinstance(axis, tuple | list) else (axis,)
    for at in sorted(distinct_axes(given, len(a.shape) + len(given))):
        a = shape.unsqueeze(a, at)
    return a


def _rollaxis(a: Array, axis: int, start: int = 0) -> Array:
    ndim = len(a.shape)
    origin, target = canonical_axis(axis, ndim), start + ndim if start < 0 else start
    return shape.movedim(a, origin, target - (target > origin))


def _roll(a: Array, shift: Array, axis: Array = None) -> Array:
    if axis is None:
        return shape.roll(a, int(np.sum(shift)))
    pairs = np.broadcast(shift, axis)
    for by, along in pairs:  # one after another, because an axis may occur twice
        a = shape.roll(a, int(by), int(along))
    return a


def _at_least(ndim: int, op: str, function: Callable[..., Any]) -> Callable[..., Any]:
    def call(m: Array, *rest: Array) -> Array:
        _check(len(m.shape) >= ndim, op, "m", f"an array of shape {tuple(m.shape)}", f"{ndim} dimensions or more")
        return function(m, *rest)

    return call


def _triangle(name: str) -> Callable[..., Array]:
    def call(m: Array, k: int = 0) -> Array:
        n = m.shape[0]
        return PUBLIC[name](shape.broadcast_to(m, (n, n)) if len(m.shape) == 1 else m, k)

    return call


def _array_split(ary: Array, indices_or_sections: Array, axis: int = 0) -> list[Array]:
    return list(arrange.tensor_split(ary, indices_or_sections, axis))


def split(ary: Array, indices_or_sections: Array, axis: int = 0) -> list[Array]:
    """`np.split`: into equal parts, or at the given positions."""
    if isinstance(indices_or_sections, int) and ary.shape[axis] % indices_or_sections:
        raise ValueError("array split does not result in an equal division")
    return _array_split(ary, indices_or_sections, axis)


def _meshgrid(*xi: Array, copy: bool = True, sparse: bool = False, indexing: str = "xy") -> Array:
    xi = tuple(_flat(x) for x in xi)
    if not sparse:
        return arrange.meshgrid(*xi, indexing=indexing)
    # One long axis each, as in NumPy's open grids.
    dims = len(xi)
    order = [1, 0, *range(2, dims)] if indexing == "xy" and dims > 1 else range(dims)
    return tuple(x.reshape([-1 if at == axis else 1 for at in range(dims)]) for x, axis in zip(xi, order, strict=True))


def _append(arr: Array, values: Array, axis: int | None = None) -> Array:
    values = creation.as_tensor(values)
    return shape.cat([_flat(arr), _flat(values)], 0) if axis is None else shape.cat([arr, values], axis)


def _concatenate(arrays: Array, axis: int | None = 0, dtype: DType = None) -> Array:
    parts = [_flat(x) if axis is None else _array(x) for x in arrays]
    y = shape.cat(parts, 0 if axis is None else axis)
    return y if dtype is None else shape.astype(y, dtype)


def _scan(name: str) -> Callable[..., Array]:
    function: Callable[..., Array] = getattr(scan, name)

    def call(a: Array, axis: int | None = None, dtype: DType = None) -> Array:
        return function(a if a.shape else _flat(a), axis, dtype=dtype)

    return call


# --- elements -------------------------------------------------------------------------------------


def _where(condition: Array, x: Array = None, y: Array = None) -> Array:
    if x is None or y is None:
        return PUBLIC["nonzero"](condition, as_tuple=True)
    mask = condition if getattr(condition, "dtype", None) == np.dtype(bool) else elementwise.not_equal(condition, 0)
    return PUBLIC["where"](mask, x, y)


def _clip(a: Array, a_min: Array = None, a_max: Array = None, *, min: Array = None, max: Array = None) -> Array:
    low, high = a_min if min is None else min, a_max if max is None else max
    return shape.clone(a) if low is None and high is None else PUBLIC["clip"](a, low, high)


def _take_along_axis(arr: Array, indices: Array, axis: int | None = -1) -> Array:
    _check(axis is not None or len(indices.shape) == 1, "take_along_axis", "axis", axis, "one for such indices")
    return PUBLIC["take_along_axis"](arr, indices, axis)


def _compress(condition: Array, a: Array, axis: int | None = None) -> Array:
    at = np.flatnonzero(np.asarray(condition))
    return take(_flat(a), at, 0) if axis is None else take(a, at, axis)


def _qr_of(a: Array, mode: str = "reduced") -> Array:
    found = _qr(a, mode)
    return found.R if mode == "r" else found


def _delete(arr: Array, obj: Array, axis: int | None = None) -> Array:
    arr = _flat(arr) if axis is None else arr
    at = canonical_axis(axis or 0, len(arr.shape))
    kept = np.delete(np.arange(arr.shape[at]), obj)
    return getitem(arr, (*(slice(None),) * at, kept))


MEANINGS: dict[str, Callable[..., Any]] = _REDUCTIONS | {
    "dot": _dot,
    "inner": lambda a, b: PUBLIC["inner"](_array(a), _array(b)),
    "outer": lambda a, b: PUBLIC["outer"](_flat(a), _flat(b)),
    "kron": lambda a, b: PUBLIC["kron"](_array(a), _array(b)),
    "cross": _crossed,
    "trace": _trace,
    "convolve": _convolve,
    "correlate": _correlate,
    "squeeze": _squeeze,
    "expand_dims": _expand_dims,
    "rollaxis": _rollaxis,
    "roll": _roll,
    "fliplr": _at_least(2, "fliplr", arrange.fliplr),
    "flipud": _at_least(1, "flipud", arrange.flipud),
    "tril": _triangle("tril"),
    "triu": _triangle("triu"),
    "split": split,
    "array_split": _array_split,
    "hsplit": lambda ary, sections: split(ary, sections, 1 if len(ary.shape) > 1 else 0),
    "vsplit": _at_least(2, "vsplit", lambda ary, sections: split(ary, sections, 0)),
    "dsplit": _at_least(3, "dsplit", lambda ary, sections: split(ary, sections, 2)),
    "meshgrid": _meshgrid,
    "append": _append,
    "concatenate": _concatenate,
    "cumsum": _scan("cumsum"),
    "cumprod": _scan("cumprod"),
    "where": _where,
    "clip": _clip,
    "take_along_axis": _take_along_axis,
    "compress": _compress,
    "delete": _delete,
}


def _norm(x: Array, ord: float | str | None = None, axis: Axis = None, keepdims: bool = False) -> Array:
    _check(axis is None or isinstance(axis, int) or len(axis) in {1, 2}, "linalg.norm", "axis", axis, "one axis or two")
    from glassgrad.linalg import norm  # few programs need this namespace

    return norm(_array(x), ord, axis, keepdims)


LINALG: dict[str, Callable[..., Any]] = {
    "cross": lambda a, b, axis=-1: _crossed(a, b, axis=axis),
    "trace": matrix_trace,
    "qr": _qr_of,
    "outer": PUBLIC["outer"],
    "norm": _norm,
    "vector_norm": over_nothing(public(vector_norm, "vector_norm")),
    "diagonal": lambda x, offset=0: PUBLIC["diagonal"](x, offset, -2, -1),
}
