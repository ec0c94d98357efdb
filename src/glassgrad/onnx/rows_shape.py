"""Rows of ops that arrange elements: shapes, slices, indices, borders."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from glassgrad.onnx.extents import Dim
from glassgrad.onnx.rows_elementwise import Row
from glassgrad.onnx.traced import Step
from glassgrad.onnx.writer import Value, Writer
from glassgrad.ops.places import IndexArray, Slice

_END = np.iinfo(np.int64).max


# --- shapes ---------------------------------------------------------------------------------------


def reshaped(w: Writer, x: Value, shape: Sequence[Dim]) -> Value:
    """Return a value in another shape; one extent may depend on the call without being computed."""
    if x.shape is not None and tuple(shape) == x.shape and None not in shape:
        return x
    open_ends = [at for at, dim in enumerate(shape) if not isinstance(dim, int)]
    if len(open_ends) == 1 and 0 not in shape:
        dims = w.ints(*[-1 if at in open_ends else dim for at, dim in enumerate(shape)])
    else:
        dims = w.ints(*shape)
    return w.op("Reshape", x, dims, shape=shape, **({"allowzero": 1} if 0 in shape else {}))


def _reshape(w: Writer, step: Step, x: Value, *, shape: tuple[Dim, ...]) -> Value:
    return reshaped(w, x, step.out.shape)


def transposed(w: Writer, x: Value, axes: Sequence[int]) -> Value:
    """Return a value with its axes in another order."""
    if tuple(axes) == tuple(range(len(axes))):
        return x
    shape = None if x.shape is None else [x.shape[axis] for axis in axes]
    return w.op("Transpose", x, shape=shape, perm=list(axes))


def _permute(w: Writer, step: Step, x: Value, *, axes: tuple[int, ...]) -> Value:
    return transposed(w, x, axes)


def expanded(w: Writer, x: Value, shape: Sequence[Dim]) -> Value:
    """Return a value repeated to a shape."""
    if x.shape is not None and x.shape == tuple(shape) and None not in shape:
        return x
    # Write 1 for an extent that x already has, so that it need not be known.
    own = (*(1,) * (len(shape) - x.ndim), *(x.shape or ()))
    dims = [1 if dim == have and not isinstance(dim, int) else dim for dim, have in zip(shape, own, strict=True)]
    return w.op("Expand", x, w.ints(*dims), shape=shape)


def _broadcast(w: Writer, step: Step, x: Value, *, shape: tuple[Dim, ...]) -> Value:
    return expanded(w, x, step.out.shape)


def _astype(w: Writer, step: Step, x: Value, *, dtype: Any) -> Value:
    return w.cast(x, step.out.dtype)


def _same(w: Writer, step: Step, x: Value) -> Value:
    return x


def _concat(w: Writer, step: Step, *xs: Value, axis: int) -> Value:
    parts = [w.cast(x, step.out.dtype) for x in xs]
    return w.op("Concat", *parts, shape=step.out.shape, axis=axis)


def sliced(w: Writer, x: Value, cuts: Sequence[tuple[int, Any, Any, int]]) -> Value:
    """Return x with axes cut: (axis, start, stop, step), None if there is no end."""
    if not cuts:
        return x
    axes = [axis for axis, *_ in cuts]
    begins = [(0 if by > 0 else _END) if start is None else start for _, start, _, by in cuts]
    ends = [(_END if by > 0 else -_END) if stop is None else stop for _, _, stop, by in cuts]
    return w.op("Slice", x, w.ints(*begins), w.ints(*ends), w.ints(*axes), w.ints(*[by for *_, by in cuts]))


def _flip(w: Writer, step: Step, x: Value, *, axis: tuple[int, ...]) -> Value:
    return _with(sliced(w, x, [(at, None, None, -1) for at in axis]), step)


def _with(value: Value, step: Step) -> Value:
    """Note the shape of a result."""
    value.shape = step.out.shape
    return value


def _roll(w: Writer, step: Step, x: Value, *, shift: Any, axis: Any) -> Value:
    flat = axis is None
    sizes = x.shape or ()
    if flat:
        sizes = (int(np.prod(w.fixed(sizes))),)
        x, shift, axis = w.op("Reshape", x, w.ints(-1)), (shift,), (0,)
    shifts = shift if isinstance(shift, tuple) else (shift,)
    axes = axis if isinstance(axis, tuple) else (axis,)
    for by, at in zip(shifts, axes, strict=True):
        (n,) = w.fixed(sizes[at : at + 1])
        cut = n - by % max(n, 1)
        x = w.op("Concat", sliced(w, x, [(at, cut, None, 1)]), sliced(w, x, [(at, 0, cut, 1)]), axis=at)
    return _with(reshaped(w, x, step.out.shape) if flat else x, step)


def _triangle(upper: int) -> Row:
    def row(w: Writer, step: Step, x: Value, *, diagonal: int) -> Value:
        as_bytes = x.dtype == np.bool_
        found = w.op(
            "Trilu", w.cast(x, np.int32) if as_bytes else x, w.number(diagonal), upper=upper, shape=step.out.shape
        )
        return w.cast(found, x.dtype)

    return row


def _pad(w: Writer, step: Step, x: Value, *, widths: Any, value: Any) -> Value:
    ends = [before for before, _ in widths] + [after for _, after in widths]
    return w.op("Pad", x, w.ints(*ends), w.cast(value, x.dtype), shape=step.out.shape)


# --- indices --------------------------------------------------------------------------------------


def _entries(spec: Sequence[Any], ndim: int) -> list[Any]:
    """Return an index without `...`, which stands for whole axes."""
    count = sum(entry is not None and entry is not Ellipsis and not isinstance(entry, bool) for entry in spec)
    found: list[Any] = []
    for entry in spec:
        found += [Slice(None, None, None)] * (ndim - count) if entry is Ellipsis else [entry]
    return found if Ellipsis in spec else found + [Slice(None, None, None)] * (ndim - count)


def indexed(w: Writer, x: Value, arrays: Sequence[Value], spec: Sequence[Any]) -> Value:
    """Return x[spec] with NumPy's meaning."""
    entries = _entries(spec, x.ndim)
    if any(isinstance(entry, bool) for entry in entries):
        raise w.refused("True and False as an index have no operator")
    # Slices and single positions first, with one operator for all of them.
    cuts: list[tuple[int, Any, Any, int]] = []
    singles: list[int] = []
    kept: list[Any] = []
    axis = 0
    fancy = any(isinstance(entry, IndexArray) for entry in entries)
    supply = iter(arrays)
    for entry in entries:
        if entry is None:
            kept.append(None)
            continue
        if isinstance(entry, Slice):
            if entry != Slice(None, None, None):
                cuts.append((axis, entry.start, entry.stop, entry.step or 1))
            kept.append("axis")
        elif isinstance(entry, IndexArray):
            kept.append(next(supply))
        elif fancy:  # beside index arrays, an integer acts as an array
            kept.append(w.constant(np.int64(entry)))
        else:
            cuts.append((axis, entry, None if entry == -1 else entry + 1, 1))
            singles.append(axis)
        axis += 1
    y = sliced(w, x, cuts)
    if singles:
        y = w.op("Squeeze", y, w.ints(*singles))
    chosen = [part for part in kept if isinstance(part, Value)]
    if chosen:
        return _gathered(w, y, kept, chosen)
    new = [at for at, part in enumerate(kept) if part is None]
    return w.op("Unsqueeze", y, w.ints(*new)) if new else y


def _gathered(w: Writer, y: Value, kept: list[Any], chosen: list[Value]) -> Value:
    """Read by index arrays. Their axes replace adjacent indexed axes, or come first if those are not adjacent."""
    places = [at for at, part in enumerate(kept) if isinstance(part, Value)]
    inner = [part for part in kept if part is not None]  # the axes of y
    axes = [at for at, part in enumerate(inner) if isinstance(part, Value)]
    together = places == list(range(places[0], places[0] + len(places)))
    indices = [w.cast(part, np.int64) for part in chosen]
    depth = max(part.ndim for part in indices)
    if len(axes) == 1:
        y = w.op("Gather", y, indices[0], axis=axes[0])
    else:
        rest = [at for at in range(len(inner)) if at not in axes]
        order = [*axes, *rest]
        total = indices[0]
        for other in indices[1:]:
            total = w.op("Add", total, w.op("Mul", other, w.constant(np.int64(0))))
        like = w.op("Shape", total, dtype=np.int64)
        wide = [w.op("Unsqueeze", w.op("Expand", one, like), w.ints(-1)) for one in indices]
        y = w.op("GatherND", w.op("Transpose", y, perm=order), w.op("Concat", *wide, axis=-1))
        if together and axes[0]:
            before = axes[0]
            moved = [*range(depth, depth + before), *range(depth), *range(depth + before, depth + len(rest))]
            y = w.op("Transpose", y, perm=moved)
    new, at = [], 0 if together else depth
    for number, part in enumerate(kept):
        if part is None:
            new.append(at)
        if not isinstance(part, Value):
            at += 1
        elif number == places[0] and together:
            at += depth
    return w.op("Unsqueeze", y, w.ints(*new)) if new else y


def _getitem(w: Writer, step: Step, x: Value, *arrays: Value, spec: tuple[Any, ...]) -> Value:
    return _with(indexed(w, x, arrays, spec), step)


def _flat_places(w: Writer, shape: Sequence[Dim], arrays: Sequence[Value], spec: Sequence[Any]) -> Value:
    """Return the flat positions that an index selects in an array of that shape."""
    if all(isinstance(dim, int) for dim in shape):
        fixed = [dim for dim in shape if isinstance(dim, int)]
        numbers = w.constant(np.arange(int(np.prod(fixed)), dtype=np.int64).reshape(fixed))
    else:
        count = w.op("ReduceProd", w.ints(*shape), keepdims=0)
        steps = w.op("Range", w.constant(np.int64(0)), count, w.constant(np.int64(1)), dtype=np.int64)
        numbers = w.op("Reshape", steps, w.ints(*shape), shape=shape)
    return indexed(w, numbers, arrays, spec)


def _scattered(
    w: Writer, step: Step, x: Value, value: Value, arrays: Sequence[Value], spec: Any, reduction: str
) -> Value:
    """Write to (or add at) an index of x."""
    places = _flat_places(w, step.out.shape, arrays, spec)
    updates = w.op("Expand", value, w.op("Shape", places, dtype=np.int64))
    line = w.ints(-1)
    parts = [w.op("Reshape", one, line) for one in (x, places, updates)]
    extra: dict[str, Any] = {} if reduction == "none" else {"reduction": reduction}
    flat = w.op("ScatterElements", *parts, axis=0, **extra)
    return w.op("Reshape", flat, w.ints(*step.out.shape), shape=step.out.shape)


def _put_add(w: Writer, step: Step, g: Value, *arrays: Value, spec: Any, shape: Any) -> Value:
    return _scattered(w, step, zeros(w, step), w.cast(g, step.out.dtype), arrays, spec, "add")


def zeros(w: Writer, step: Step) -> Value:
    """Return zeros in the shape of the result."""
    return expanded(w, w.constant(np.zeros((1,) * step.out.ndim, step.out.dtype)), step.out.shape)


def _at_set(w: Writer, step: Step, x: Value, value: Any, *arrays: Value, spec: Any) -> Value:
    return _scattered(w, step, x, w.cast(value, step.out.dtype), arrays, spec, "none")


def _take_along(w: Writer, step: Step, x: Value, index: Value, *, axis: int) -> Value:
    return w.op("GatherElements", x, w.cast(index, np.int64), shape=step.out.shape, axis=axis)


def _put_along(reduction: str) -> Row:
    def row(w: Writer, step: Step, x: Value, value: Any, index: Value, *, axis: int) -> Value:
        updates = w.op("Expand", w.cast(value, step.out.dtype), w.op("Shape", index, dtype=np.int64))
        extra: dict[str, Any] = {} if reduction == "none" else {"reduction": reduction}
        return w.op("ScatterElements", x, w.cast(index, np.int64), updates, shape=step.out.shape, axis=axis, **extra)

    return row


def _put_along_add(w: Writer, step: Step, value: Value, index: Value, *, axis: int, shape: Any) -> Value:
    found: Value = _put_along("add")(w, step, zeros(w, step), value, index, axis=axis)
    return found


def _scatter_extreme(w: Writer, step: Step, x: Value, value: Value, index: Value, *, axis: int, largest: bool) -> Value:
    found: Value = _put_along("max" if largest else "min")(w, step, x, value, index, axis=axis)
    return found


def _one_hot(w: Writer, step: Step, x: Value, *, count: Dim) -> Value:
    steps = w.op("Range", w.constant(np.int64(0)), w.number(count), w.constant(np.int64(1)), dtype=np.int64)
    beside = w.op("Unsqueeze", w.cast(x, np.int64), w.ints(-1))
    return _with(w.cast(w.op("Equal", beside, steps, dtype=np.bool_), step.out.dtype), step)


def _isin(w: Writer, step: Step, x: Value, choices: Value) -> Value:
    beside = w.op("Unsqueeze", x, w.ints(-1))
    same = w.op("Equal", *w.alike((beside, w.op("Reshape", choices, w.ints(-1)))), dtype=np.int32)
    same.dtype = np.dtype(np.bool_)
    found = w.op("ReduceMax", w.cast(same, np.int32), w.ints(-1), keepdims=0)
    return _with(w.cast(found, np.bool_), step)


# --- reads by a table of positions ------------------------------------------------------------------


def _diagonal(w: Writer, step: Step, x: Value, *, offset: int, axis1: int, axis2: int) -> Value:
    rest = [axis for axis in range(x.ndim) if axis not in {axis1, axis2}]
    y = transposed(w, x, (axis1, axis2, *rest))
    (n,) = w.fixed(step.out.shape[-1:])
    places = np.arange(n)[:, None] + [max(-offset, 0), max(offset, 0)]
    read = w.op("GatherND", y, w.constant(places.astype(np.int64)))
    return _with(w.op("Transpose", read, perm=[*range(1, len(rest) + 1), 0]), step)


def _put_diagonal(w: Writer, step: Step, x: Value, *, offset: int, axis1: int, axis2: int, shape: Any) -> Value:
    fixed = w.fixed(step.out.shape)
    numbers = np.arange(int(np.prod(fixed))).reshape(fixed)
    moved = np.moveaxis(numbers, (axis1, axis2), (-2, -1))[..., max(-offset, 0) :, max(offset, 0) :]
    places = np.diagonal(moved, axis1=-2, axis2=-1).reshape(-1).astype(np.int64)
    line = w.ints(-1)
    flat = w.op("Reshape", zeros(w, step), line)
    put = w.op("ScatterElements", flat, w.constant(places), w.op("Reshape", x, line), axis=0)
    return reshaped(w, put, step.out.shape)


def _sliding_window(w: Writer, step: Step, x: Value, *, axis: int, size: int, step_: int) -> Value:
    (count,) = w.fixed(step.out.shape[axis : axis + 1])
    places = np.arange(count)[:, None] * step_ + np.arange(size)
    y = w.op("Gather", x, w.constant(places.astype(np.int64)), axis=axis)
    last = x.ndim
    order = [at for at in range(last + 1) if at != axis + 1] + [axis + 1]
    return _with(w.op("Transpose", y, perm=order), step)


def _overlap_add(w: Writer, step: Step, x: Value, *, axis: int, step_: int, length: int) -> Value:
    count, size = w.fixed((x.shape or ())[axis : axis + 1] + (x.shape or ())[-1:])
    spread = np.zeros((count * size, length), x.dtype)
    for at in range(count):
        spread[np.arange(size) + at * size, at * step_ + np.arange(size)] = 1
    rest = [at for at in range(x.ndim - 1) if at != axis]
    y = transposed(w, x, (*rest, axis, x.ndim - 1))
    # A matrix product: each element of a window has a row that marks its position.
    rows = w.op("Reshape", y, w.ints(*[step.out.shape[at] for at in rest], count * size))
    y = w.op("MatMul", rows, w.constant(spread))
    back = np.argsort([*rest, axis]).tolist()
    return _with(transposed(w, y, back) if y.shape else w.op("Transpose", y, perm=back), step)


def _renamed(row: Row) -> Row:
    """Pass a parameter named `step` on as `step_`."""
    return lambda w, step_of, x, *, step, **params: row(w, step_of, x, step_=step, **params)


def _as_strided(w: Writer, step: Step, x: Value, *, size: Any, stride: Any, offset: int) -> Value:
    w.fixed(x.shape or ())
    places = np.full(w.fixed(size), offset, np.int64)
    for at, (extent, by) in enumerate(zip(size, stride, strict=True)):
        places += (np.arange(extent) * by).reshape(-1, *(1,) * (len(size) - at - 1))
    return _with(w.op("Gather", w.op("Reshape", x, w.ints(-1)), w.constant(places), axis=0), step)


SHAPE: dict[str, Row] = {
    "reshape": _reshape,
    "permute_dims": _permute,
    "broadcast_to": _broadcast,
    "astype": _astype,
    "copy": _same,
    "alias": _same,
    "concat": _concat,
    "flip": _flip,
    "roll": _roll,
    "tril": _triangle(0),
    "triu": _triangle(1),
    "pad": _pad,
    "getitem": _getitem,
    "put_add": _put_add,
    "at_set": _at_set,
    "take_along_axis": _take_along,
    "put_along_axis": _put_along("none"),
    "put_along_add": _put_along_add,
    "scatter_extreme": _scatter_extreme,
    "one_hot": _one_hot,
    "isin": _isin,
    "diagonal": _diagonal,
    "put_diagonal": _put_diagonal,
    "sliding_window": _renamed(_sliding_window),
    "overlap_add": _renamed(_overlap_add),
    "as_strided": _as_strided,
}
