"""Primitives that read an array along its diagonals or through a sliding window, and their transposes.

Below them: copies of what views show, and tensors with a part replaced.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

import numpy as np

from glassgrad.ops import arrange, complexes, shape
from glassgrad.ops.axes import as_row, concrete
from glassgrad.ops.complex_input import all_take_complex
from glassgrad.ops.core import Array, Linear, bad_option, canonical_axis, linear
from glassgrad.ops.expects import as_index, expect_dtype, expect_slices
from glassgrad.ops.index import at_set_p
from glassgrad.ops.memory import own_memory
from glassgrad.ops.places import ARRAY, EVERYTHING
from glassgrad.ops.reduce import sum_p
from glassgrad.ops.samples import S
from glassgrad.ops.scatter import at_set, scatter_reduce
from glassgrad.ops.shape import broadcast_to_p, copy_p, movedim, reshape_p
from glassgrad.ops.views import memory_owner, read_only
from glassgrad.ops.vmap.rules import shifted

Shape = tuple[int, ...]

# --- diagonals ------------------------------------------------------------------------------------


def _diagonal(xp: ModuleType, x: Array, *, offset: int, axis1: int, axis2: int) -> Array:
    """Return a writable view of a diagonal; the view of `np.diagonal` is read-only."""
    square = np.moveaxis(x, (axis1, axis2), (-2, -1))[..., max(-offset, 0) :, max(offset, 0) :]
    n = min(square.shape[-2:])
    return np.einsum("...ii->...i", square[..., :n, :n])


def _diagonal_shape(x: Array, *, offset: int, axis1: int, axis2: int) -> Shape:
    rest = tuple(n for axis, n in enumerate(x.shape) if axis not in {axis1, axis2})
    rows, columns = x.shape[axis1] - max(-offset, 0), x.shape[axis2] - max(offset, 0)
    return (*rest, max(0, min(rows, columns)))


def _put_diagonal(xp: ModuleType, x: Array, *, offset: int, axis1: int, axis2: int, shape: Shape) -> Array:
    out = np.zeros(shape, x.dtype)
    _diagonal(np, out, offset=offset, axis1=axis1, axis2=axis2)[...] = x
    return out


def _diagonal_places(at: Any, x: Array, *, offset: int, axis1: int, axis2: int) -> Any:
    rest = iter(at)
    ends = {axis1: at[-1] + max(-offset, 0), axis2: at[-1] + max(offset, 0)}
    return tuple([ends[axis] if axis in ends else next(rest) for axis in range(len(at) + 1)])


def _set_diagonal(x: Array, view: Array, assign: Any, *, offset: int, axis1: int, axis2: int) -> Array:
    steps = np.arange(view.shape[-1])
    spec = [ARRAY if axis in {axis1, axis2} else EVERYTHING for axis in range(len(x.shape))]
    rows_first = [steps + max(-offset, 0), steps + max(offset, 0)][:: 1 if axis1 < axis2 else -1]
    # NumPy puts the result dimension of adjacent index arrays in their place, that of separate ones first.
    place = min(axis1, axis2) if abs(axis1 - axis2) == 1 else 0
    return assign(x, movedim(view, -1, place), rows_first, tuple(spec))


diagonal_p: Linear = linear(
    "diagonal",
    _diagonal,
    (lambda g, x, **at: put_diagonal_p(g, **at, shape=tuple(x.shape)),),
    indices=_diagonal_places,
    write_back=_set_diagonal,
    shape=_diagonal_shape,
    batch=shifted,
)
diagonal_p.describe("y[i] = x[i, i + offset]", "g on the diagonal of zeros")
diagonal_p.samples = [
    S((3, 4), offset=0, axis1=0, axis2=1),
    S((2, 3, 3), offset=-1, axis1=1, axis2=2),
    S((4, 2, 3), offset=1, axis1=0, axis2=2),
]
put_diagonal_p: Linear = linear(
    "put_diagonal",
    _put_diagonal,
    (lambda g, x, *, shape, **at: diagonal_p(g, **at),),
    shape=lambda x, *, shape, **at: shape,
    batch=shifted,
)
put_diagonal_p.describe("zeros(shape) with x on a diagonal", "the diagonal of g")
put_diagonal_p.samples = [
    S((3,), offset=0, axis1=0, axis2=1, shape=(3, 4)),
    S((2, 2), offset=-1, axis1=1, axis2=2, shape=(2, 3, 3)),
]

# --- windows --------------------------------------------------------------------------------------


def _windows(xp: ModuleType, x: Array, *, axis: int, size: int, step: int) -> Array:
    every = np.lib.stride_tricks.sliding_window_view(x, size, axis=axis)
    return every[(slice(None),) * axis + (slice(None, None, step),)]


def _windows_shape(x: Array, *, axis: int, size: int, step: int) -> Shape:
    return (*x.shape[:axis], (x.shape[axis] - size) // step + 1, *x.shape[axis + 1 :], size)


def _overlap_add(xp: ModuleType, x: Array, *, axis: int, step: int, length: int) -> Array:
    """Add windows (elements along the last axis) at the places where they were read."""
    windows = np.moveaxis(x, (axis, -1), (0, 1))
    count, size = windows.shape[:2]
    out = np.zeros((length, *windows.shape[2:]), x.dtype)
    if size <= count:
        for k in range(size):
            out[k : k + step * count : step][:count] += windows[:, k]
    else:
        for k in range(count):
            out[k * step : k * step + size] += windows[k]
    return np.moveaxis(out, 0, axis)


unfold_p: Linear = linear(
    "sliding_window",
    _windows,
    (lambda g, x, *, axis, size, step: overlap_add_p(g, axis=axis, step=step, length=x.shape[axis]),),
    shape=_windows_shape,
    indices=lambda at, x, *, axis, size, step: (*at[:axis], at[axis] * step + at[-1], *at[axis + 1 : -1]),
    write_back=read_only,
    batch=shifted,
)
unfold_p.describe("y[i, k] = x[i * step + k]", "windows added where they overlap")
unfold_p.samples = [
    S((7,), axis=0, size=3, step=1),
    S((2, 9, 2), axis=1, size=4, step=2),
    S((8,), axis=0, size=2, step=3),
]
overlap_add_p: Linear = linear(
    "overlap_add",
    _overlap_add,
    (lambda g, x, *, axis, step, length: unfold_p(g, axis=axis, size=x.shape[-1], step=step),),
    batch=shifted,
    shape=lambda x, *, axis, step, length: (*x.shape[:axis], length, *x.shape[axis + 1 : -1]),
)
overlap_add_p.describe("y[i * step + k] = sum of x[i, k]", "windows of g")
overlap_add_p.samples = [
    S((5, 3), axis=0, step=1, length=7),
    S((2, 3, 2, 4), axis=1, step=2, length=8),
    S((2, 3), axis=0, step=2, length=5),
]

# --- any strides ----------------------------------------------------------------------------------


def _as_strided(xp: ModuleType, x: Array, *, size: Shape, stride: Shape, offset: int) -> Array:
    """View the elements in memory order with any strides; read-only, since places may overlap."""
    flat = np.ascontiguousarray(x).reshape(-1)
    steps = tuple(step * flat.itemsize for step in stride)
    return np.lib.stride_tricks.as_strided(flat[offset:], size, steps, writeable=False)


def _add_strided(xp: ModuleType, x: Array, *, shape: Shape, stride: Shape, offset: int) -> Array:
    out = np.zeros(math.prod(shape), x.dtype)
    places: Any = np.asarray(offset)
    for n, step in zip(x.shape, stride, strict=True):
        places = places[..., None] + np.arange(n) * step
    np.add.at(out, places, x)
    return out.reshape(shape)


def _strided_batch(prim: Any, size: int, values: list[Any], batched: list[bool], params: dict[str, Any]) -> Array:
    """Treat the batch as one more stride: examples are consecutive in memory."""
    (x,) = values
    named = "size" if "size" in params else "shape"
    width = math.prod(x.shape[1:] if named == "size" else params["shape"])
    moved = {named: (size, *params[named]), "stride": (width, *params["stride"]), "offset": params["offset"]}
    return prim(x, **moved)


as_strided_p: Linear = linear(
    "as_strided",
    _as_strided,
    (lambda g, x, *, size, stride, offset: add_strided_p(g, shape=tuple(x.shape), stride=stride, offset=offset),),
    shape=lambda x, *, size, stride, offset: size,
    write_back=read_only,
    batch=_strided_batch,
    takes_complex=True,
)
as_strided_p.describe("y[i, j] = element offset + i stride[0] + j stride[1] of x", "g added at these elements")
as_strided_p.samples = [
    S((12,), size=(3, 4), stride=(2, 1), offset=1),
    S((3, 4), size=(2, 2, 2), stride=(4, 0, 3), offset=0),
    S((2, 3), size=(), stride=(), offset=4),
]
add_strided_p: Linear = linear(
    "add_strided",
    _add_strided,
    (lambda g, x, *, shape, stride, offset: as_strided_p(g, size=tuple(x.shape), stride=stride, offset=offset),),
    shape=lambda x, *, shape, **at: shape,
    batch=_strided_batch,
)
add_strided_p.describe(
    "zeros(shape) with x[i, j] added at element offset + i stride[0] + j stride[1]", "these elements of g"
)
add_strided_p.samples = [S((3, 4), shape=(12,), stride=(2, 1), offset=1), S((), shape=(2, 3), stride=(), offset=4)]

# --- public functions -----------------------------------------------------------------------------


def diagonal(x: Array, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Array:
    """The diagonal of two dimensions, as the new last dimension: a view."""
    ndim = len(x.shape)
    axis1, axis2 = canonical_axis(dim1, ndim), canonical_axis(dim2, ndim)
    if axis1 == axis2:
        raise bad_option("diagonal", "dim2", dim2, f"another dimension than {dim1}")
    return diagonal_p(x, offset=offset, axis1=axis1, axis2=axis2)


@own_memory
def diag(x: Array, diagonal: int = 0) -> Array:
    """A vector as the diagonal of a matrix, or the diagonal of a matrix as a vector."""
    if len(x.shape) not in {1, 2}:
        raise bad_option("diag", "x", f"an array of shape {tuple(x.shape)}", "one dimension or two")
    return diag_embed(x, diagonal) if len(x.shape) == 1 else diagonal_p(x, offset=diagonal, axis1=0, axis2=1)


def diag_embed(x: Array, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Array:
    """The last dimension as the diagonal of a square matrix in the dimensions `dim1` and `dim2` of the result."""
    ndim = len(x.shape) + 1
    axis1, axis2 = canonical_axis(dim1, ndim), canonical_axis(dim2, ndim)
    side = x.shape[-1] + abs(offset)
    shape = list(x.shape[:-1])
    for axis in sorted((axis1, axis2)):
        shape.insert(axis, side)
    if axis1 > axis2:
        axis1, axis2, offset = axis2, axis1, -offset
    return put_diagonal_p(x, offset=offset, axis1=axis1, axis2=axis2, shape=tuple(shape))


def diagflat(x: Array, offset: int = 0) -> Array:
    """All elements as the diagonal of a matrix."""
    return diag_embed(reshape_p(x, shape=(-1,) if 0 not in x.shape else (0,)), offset)


def unfold(x: Array, dimension: int, size: int, step: int = 1) -> Array:
    """All windows of `size` elements along a dimension, `step` apart, with their elements as the last dimension.

    Example:
        >>> import glassgrad as gg
        >>> gg.arange(5).unfold(0, 3, 2).tolist()
        [[0, 1, 2], [2, 3, 4]]
    """
    if not x.shape and size == 1:
        return reshape_p(x, shape=(1,))
    axis = canonical_axis(dimension, len(x.shape))
    if not x.shape or not 1 <= size <= x.shape[axis] or step < 1:
        most = x.shape[axis] if x.shape else 1
        raise bad_option("unfold", "size", size, f"between 1 and {most}, with a positive step")
    return unfold_p(x, axis=axis, size=int(size), step=int(step))


def sliding_window_view(x: Array, window_shape: Any, dim: Any = None) -> Array:
    """NumPy's `sliding_window_view`: windows along one or several axes, their elements in new last axes."""
    sizes = tuple(window_shape) if isinstance(window_shape, tuple | list) else (window_shape,)
    axes = tuple(range(len(x.shape))) if dim is None else tuple(dim) if isinstance(dim, tuple | list) else (dim,)
    if len(axes) != len(sizes):
        raise bad_option("sliding_window_view", "window_shape", window_shape, f"{len(axes)} sizes")
    ndim = len(x.shape)
    for axis, size in zip(axes, sizes, strict=True):
        x = unfold(x, canonical_axis(axis, ndim), size, 1)
    return x


def as_strided(x: Array, size: Any, stride: Any, storage_offset: int | None = None) -> Array:
    """The elements `stride` apart in memory, starting at `storage_offset`; read-only, with a gradient.

    The memory must be the tensor's own and hold the elements in order: a transpose is refused. A `storage_offset` into
    a view of a larger tensor is refused, since PyTorch counts it from the start of the larger tensor.

    Example:
        >>> import glassgrad as gg
        >>> gg.as_strided(gg.arange(5), (3, 3), (1, 1)).tolist()
        [[0, 1, 2], [1, 2, 3], [2, 3, 4]]
    """
    memory = _values_of_examples(x)
    if memory is None:
        memory = concrete(x, "as_strided")
        if not memory.flags.c_contiguous:
            expected = "a contiguous tensor: call .contiguous()"
            raise bad_option("as_strided", "input", f"strides {memory.strides}", expected)
    if storage_offset is not None and memory_owner(memory).size > memory.size:
        expected = "None for a part of a larger tensor, or .clone()"
        raise bad_option("as_strided", "storage_offset", storage_offset, expected)
    sizes, steps = tuple(map(int, size)), tuple(map(int, stride))
    offset = 0 if storage_offset is None else int(storage_offset)
    if len(sizes) != len(steps) or min((*sizes, *steps, offset)) < 0:
        raise bad_option("as_strided", "stride", stride, f"one step for each of {len(sizes)} sizes, none below 0")
    # The last element that is read; none if the result is empty.
    last = offset + sum((n - 1) * step for n, step in zip(sizes, steps, strict=True)) if 0 not in sizes else -1
    most = math.prod(x.shape) - 1
    if last > most:
        raise bad_option("as_strided", "size", sizes, f"elements up to {most}; the last one would be {last}")
    return as_strided_p(x, size=sizes, stride=steps, offset=offset)


def _values_of_examples(x: Array) -> Array | None:
    """Return the values of all examples inside vmap if each example is in memory order; else None."""
    array = outer = x.array if hasattr(x, "_tracks") else x
    while hasattr(outer, "level"):
        outer = outer.value
    if outer is array or not isinstance(outer, np.ndarray) or not array.lies_in_order():
        return None
    return outer


# --- copies of views ------------------------------------------------------------------------------


def _slice(x: Array, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1) -> Array:
    return x[(*(slice(None),) * canonical_axis(dim, len(x.shape)), slice(start, end, step))]


def _itself(x: Array) -> Array:
    return x


def _detached(x: Array) -> Array:
    return x.detach() if hasattr(x, "detach") else x


# The function whose result is copied, by the name without `_copy`.
_VIEWS: dict[str, Callable[..., Any]] = {
    "alias": _itself,
    "detach": _detached,
    "slice": _slice,
    "split_with_sizes": arrange.split,
    "as_strided": as_strided,
    "diagonal": diagonal,
    "unfold": unfold,
    **{
        name: getattr(module, name)
        for module, names in (
            (arrange, "narrow select split t unbind"),
            (shape, "expand permute squeeze transpose unsqueeze view"),
            (complexes, "view_as_complex view_as_real"),
        )
        for name in names.split()
    },
}


def _copying(name: str, view: Callable[..., Any]) -> Callable[..., Any]:
    def copy(x: Array, *args: object, **kwargs: object) -> Array:
        found = view(x, *args, **kwargs)
        return tuple(map(copy_p, found)) if isinstance(found, tuple) else copy_p(found)

    copy.__name__ = copy.__qualname__ = f"{name}_copy"
    vars(copy)["__wrapped__"] = view  # whose signature it has
    copy.__doc__ = f"`{name}` with memory of its own." if name != "alias" else "A copy, as `clone` makes it."
    return copy


globals().update({f"{_name}_copy": _copying(_name, _view) for _name, _view in _VIEWS.items()})


# --- a part replaced ------------------------------------------------------------------------------


def diagonal_scatter(x: Array, src: Array, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Array:
    """x with `src` as the diagonal of two dimensions."""
    ndim = len(x.shape)
    axis1, axis2 = canonical_axis(dim1, ndim), canonical_axis(dim2, ndim)
    wanted = tuple(diagonal(x, offset, dim1, dim2).shape)
    if tuple(src.shape) != wanted:
        raise bad_option("diagonal_scatter", "src", f"an array of shape {tuple(src.shape)}", f"the shape {wanted}")
    places = {"offset": offset, "axis1": axis1, "axis2": axis2}
    return _set_diagonal(x, src, lambda y, value, at, spec: at_set_p(y, value, *at, spec=spec), **places)


def as_strided_scatter(
    x: Array, src: Array, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None
) -> Array:
    """x with `src` at the elements that lie `stride` apart, in the order of x, from `storage_offset` on."""
    wanted = tuple(map(int, size))
    if tuple(src.shape) != wanted:
        expected = f"the shape {wanted}"
        raise bad_option("as_strided_scatter", "src", f"an array of shape {tuple(src.shape)}", expected)
    places: Array = np.asarray(storage_offset or 0)
    for n, step in zip(wanted, stride, strict=True):
        places = places[..., None] + np.arange(n) * int(step)
    flat = reshape_p(x, shape=(math.prod(x.shape),))
    return reshape_p(at_set(flat, places, src), shape=tuple(x.shape))


def index_reduce(x: Array, dim: int, index: Array, source: Array, reduce: str, *, include_self: bool = True) -> Array:
    """x reduced with the slices of `source` at `index` along `dim`: "prod", "mean", "amax" or "amin".

    With `include_self=False` slices of x stay only where nothing is written. Equal extremes share the gradient.
    """
    if reduce not in {"prod", "mean", "amax", "amin"}:
        raise bad_option("index_reduce", "reduce", reduce, "'prod', 'mean', 'amax' or 'amin'")
    if not x.shape:
        given = (as_row(x), dim, as_row(index), as_row(source), reduce)
        return reshape_p(index_reduce(*given, include_self=include_self), shape=())
    places = as_index("index_reduce", index, vector=True)
    expect_dtype("index_reduce", x, source)
    axis = canonical_axis(dim, len(x.shape))
    expect_slices("index_reduce", x, axis, places, source)
    column = reshape_p(places, shape=tuple(-1 if at == axis else 1 for at in range(len(x.shape))))
    spread = broadcast_to_p(column, shape=tuple(source.shape))
    return scatter_reduce(x, axis, spread, source, reduce, include_self=include_self)


# --- other spellings ------------------------------------------------------------------------------


def sum_to_size(x: Array, *size: int | Sequence[int]) -> Array:
    """x summed over the dimensions along which the shape `size` would be broadcast to that of x."""
    wanted = shape._ints(size)
    lead = len(x.shape) - len(wanted)
    if lead < 0 or any(n not in {1, m} for n, m in zip(wanted, x.shape[lead:], strict=True)):
        raise bad_option("sum_to_size", "size", wanted, f"a shape that broadcasts to {tuple(x.shape)}")
    axes = tuple(at for at, n in enumerate(x.shape) if at < lead or (wanted[at - lead] == 1 and n != 1))
    summed = sum_p(x, axis=axes, keepdims=False) if axes or not wanted else x  # booleans are counted by PyTorch, too
    return reshape_p(summed, shape=wanted)


def adjoint(x: Array) -> Array:
    """The conjugate transpose of (..., n, m): shape (..., m, n)."""
    return complexes._adjoint(x)


def resolve_conj(x: Array) -> Array:
    """x itself: a conjugate is computed at once here."""
    return x


def constant_pad_nd(x: Array, pad: Sequence[int], value: float = 0) -> Array:
    """`pad` with a constant: widths before and after for the last dimension, then the one before it, and so on."""
    return arrange.pad(x, pad, "constant", value)


all_take_complex(globals(), but=("index_reduce",))
