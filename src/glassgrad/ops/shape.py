"""Primitives that only move numbers: reshape, transpose, broadcast, join, pad, cast.

All are linear. The public functions with PyTorch's names and argument forms are below the entries.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from functools import lru_cache
from types import ModuleType
from typing import Any

import numpy as np

from glassgrad.ops.complex_input import all_take_complex
from glassgrad.ops.core import Array, Aval, Custom, Linear, bad_option, canonical_axis, custom, distinct_axes, linear
from glassgrad.ops.expects import expect_dimension
from glassgrad.ops.kernels import parallel
from glassgrad.ops.samples import S
from glassgrad.ops.views import broadcast_indices, in_order, read_only

Shape = tuple[int, ...]

# --- one array ------------------------------------------------------------------------------------


reshape_p: Linear = linear(
    "reshape",
    lambda xp, x, *, shape: x.reshape(shape) if xp is np else xp.reshape(x, shape),
    (lambda g, x, *, shape: g.reshape(x.shape) if type(g) is np.ndarray else reshape_p(g, shape=x.shape),),
    indices=in_order,
    write_back=lambda x, view, assign, *, shape: reshape_p(view, shape=x.shape),
    shape=lambda x, *, shape: shape,
)
reshape_p.describe("the same numbers in another shape", "reshape back")
reshape_p.samples = [S((2, 6), shape=(3, 4)), S((4,), shape=(2, 1, 2)), S((1,), shape=())]


@lru_cache(maxsize=256)  # in the middle of a step, sorting with NumPy takes tens of microseconds
def _inverse(axes: Shape) -> Shape:
    return tuple(int(axis) for axis in np.argsort(axes))


permute_p: Linear = linear(
    "permute_dims",
    lambda xp, x, *, axes: x.transpose(axes) if xp is np else xp.permute_dims(x, axes),
    (lambda g, x, *, axes: permute_p(g, axes=_inverse(axes)),),
    shape=lambda x, *, axes: tuple(x.shape[axis] for axis in axes),
    indices=lambda at, x, *, axes: tuple([at[axes.index(axis)] for axis in range(len(axes))]),
    write_back=lambda x, view, assign, *, axes: permute_p(view, axes=_inverse(axes)),
)
permute_p.describe("axes in another order", "the inverse order")
permute_p.samples = [S((2, 3), axes=(1, 0)), S((2, 3, 4), axes=(2, 0, 1))]


def _unbroadcast(g: Array, x: Array, **_params: Any) -> Array:
    return g  # the tape sums a cotangent to the shape of x: the transpose of broadcasting


broadcast_to_p = linear(
    "broadcast_to",
    lambda xp, x, *, shape: xp.broadcast_to(x, shape),
    (_unbroadcast,),
    indices=lambda at, x, *, shape: broadcast_indices(at, x.shape),
    write_back=read_only,
    shape=lambda x, *, shape: shape,
)
broadcast_to_p.describe("x repeated along new and size-1 axes", "sum over them")
broadcast_to_p.samples = [S((3, 1), shape=(2, 3, 4)), S((), shape=(2,))]


def _astype(xp: ModuleType, x: Array, *, dtype: Any) -> Array:
    x = xp.asarray(x)
    if x.dtype.kind == "c" and np.dtype(dtype).kind in "fV":
        x = x.real  # the cotangent of a real input of a complex op; explicit, to avoid NumPy's warning
    return x.astype(dtype, copy=False) if xp is np else xp.astype(x, dtype)


def _bits_shape(x: Array, *, dtype: Any) -> Shape:
    """The shape of the same bytes in another dtype, which changes the size of the last dimension."""
    before, after = x.dtype.itemsize, dtype.itemsize
    if before == after:
        return tuple(x.shape)
    if not x.shape or x.shape[-1] * before % after:
        raise bad_option("view", "dtype", dtype, f"one that the last dimension of {tuple(x.shape)} divides into")
    return (*x.shape[:-1], x.shape[-1] * before // after)


astype_p = linear("astype", _astype, (_unbroadcast,))
astype_p.describe("x in another dtype", "cast back")
astype_p.samples = [S((2, 3), dtype=np.dtype("f8"))]


def _view_bits(xp: ModuleType, x: Array, *, dtype: Any) -> Array:
    shape = _bits_shape(x, dtype=dtype)
    try:
        return x.view(dtype).reshape(shape)
    except ValueError:  # the elements of the last dimension are not adjacent, and their size changes
        return xp.ascontiguousarray(x).view(dtype).reshape(shape).copy()  # owns its memory, like every copy


view_bits_p: Custom = custom(
    "view_bits",
    _view_bits,
    vjp=(None,),
    jvp=(None,),
    shape=lambda x, *, dtype: Aval(_bits_shape(x, dtype=dtype), dtype),
    write_back=lambda x, view, assign, *, dtype: reshape_p(view_bits_p(view, dtype=x.dtype), shape=tuple(x.shape)),
    takes_complex=True,
)
view_bits_p.describe("the bits of x as another dtype", "none")
copy_p = linear(
    "copy",
    lambda xp, x: x.copy() if xp is np else xp.asarray(x, copy=True),
    (lambda g, x: g,),
    indices=in_order,
)
copy_p.describe("x", "1")
copy_p.samples = [S((2, 3))]
alias_p = linear("alias", lambda xp, x: x, (lambda g, x: g,), indices=in_order, write_back=lambda x, view, assign: view)
alias_p.describe("x", "1", notes="the same memory under a new place on the tape")
alias_p.samples = [S((2, 3))]


def _flip(xp: ModuleType, x: Array, *, axis: Shape) -> Array:
    if xp is np:  # np.flip with a tenth of its overhead; a copy, so that writes do not reach x
        return x[tuple([_BACKWARDS if at in axis else _ALL for at in range(x.ndim)])].copy()
    return xp.flip(x, axis=axis)


_ALL, _BACKWARDS = slice(None), slice(None, None, -1)
flip_p: Linear = linear(
    "flip",
    _flip,
    (lambda g, x, *, axis: flip_p(g, axis=axis),),
    shape=lambda x, *, axis: x.shape,
    indices=lambda at, x, *, axis: tuple(
        [place * -1 + (x.shape[number] - 1) if number in axis else place for number, place in enumerate(at)]
    ),
)
flip_p.describe("reversed along the axes", "flip")
flip_p.samples = [S((2, 3), axis=(1,)), S((2, 3), axis=(0, 1))]


def _roll(xp: ModuleType, x: Array, *, shift: Shape, axis: Shape) -> Array:
    if xp is not np or len(axis) != 1 or not x.shape[axis[0]]:
        return xp.roll(x, shift, axis=axis)
    lead, cut = (_ALL,) * axis[0], -shift[0] % x.shape[axis[0]]
    return parallel.joined(np, (x[(*lead, slice(cut, None))], x[(*lead, slice(cut))]), axis[0])


roll_p: Linear = linear(
    "roll",
    _roll,
    (lambda g, x, *, shift, axis: roll_p(g, shift=tuple(-step for step in shift), axis=axis),),
    shape=lambda x, *, shift, axis: x.shape,
)
roll_p.describe("shifted cyclically", "roll back")
roll_p.samples = [S((2, 5), shift=(2,), axis=(1,))]


def _triangle(keep_lower: bool) -> Any:
    def forward(xp: ModuleType, x: Array, *, diagonal: int) -> Array:
        if xp is np and x.ndim == 2 and x.size <= _MASK_UP_TO:
            lower = _lower(*x.shape, diagonal if keep_lower else diagonal - 1)
            zero = x.dtype.type(0)
            return np.where(lower, x, zero) if keep_lower else np.where(lower, zero, x)
        return (xp.tril if keep_lower else xp.triu)(x, k=diagonal)

    return forward


_MASK_UP_TO = 4096  # elements; for larger matrices, making the mask costs little


@lru_cache(maxsize=64)
def _lower(rows: int, columns: int, diagonal: int) -> Array:
    """The mask of the elements on and below a diagonal."""
    return np.tri(rows, columns, diagonal, bool)


tril_p: Linear = linear(
    "tril",
    _triangle(True),
    (lambda g, x, *, diagonal: tril_p(g, diagonal=diagonal),),
    shape=lambda x, *, diagonal: x.shape,
)
tril_p.describe("x where j <= i + diagonal, else 0", "tril")
tril_p.samples = [S((4, 4), diagonal=0), S((2, 3, 5), diagonal=-1)]
triu_p: Linear = linear(
    "triu",
    _triangle(False),
    (lambda g, x, *, diagonal: triu_p(g, diagonal=diagonal),),
    shape=lambda x, *, diagonal: x.shape,
)
triu_p.describe("x where j >= i + diagonal, else 0", "triu")
triu_p.samples = [S((4, 4), diagonal=0), S((3, 5), diagonal=1)]

Pairs = tuple[tuple[int, int], ...]


def _pad(xp: ModuleType, x: Array, *, widths: Pairs, value: float) -> Array:
    out = xp.full(tuple(n + a + b for n, (a, b) in zip(x.shape, widths, strict=True)), value, dtype=x.dtype)
    out[tuple(slice(a, a + n) for n, (a, _) in zip(x.shape, widths, strict=True))] = x
    return out


pad_p = linear(
    "pad",
    _pad,
    (lambda g, x, *, widths, value: g[tuple(slice(a, n - b) for n, (a, b) in zip(g.shape, widths, strict=True))],),
    shape=lambda x, *, widths, value: tuple(n + a + b for n, (a, b) in zip(x.shape, widths, strict=True)),
)
pad_p.describe("x with a border of `value`", "cut the border off")
pad_p.samples = [S((2, 3), widths=((1, 0), (2, 1)), value=0.0), S((2,), widths=((0, 3),), value=1.5)]
# Affine instead of linear if value is not 0.
pad_p.jvps = (lambda t, y, x, *, widths, value: pad_p(t, widths=widths, value=0.0),)

# --- several arrays -------------------------------------------------------------------------------


def _split_cotangent(g: Array, needs: Sequence[bool], *xs: Array, axis: int) -> list[Array | None]:
    parts: list[Array | None] = []
    start, lead = 0, (_ALL,) * axis
    for x, needed in zip(xs, needs, strict=True):
        stop = start + x.shape[axis]
        parts.append(g[(*lead, slice(start, stop))] if needed else None)
        start = stop
    return parts


def _joined_shape(*xs: Array, axis: int) -> Shape:
    first = xs[0].shape
    return (*first[:axis], sum(x.shape[axis] for x in xs), *first[axis + 1 :])


concatenate_p = linear(
    "concat",
    lambda xp, *xs, axis: parallel.joined(xp, xs, axis),
    joint_transpose=_split_cotangent,
    saves_from=sys.maxsize,
    shape=_joined_shape,
)
concatenate_p.describe("(x1, x2, ...) joined along an axis", "the matching slice")
concatenate_p.samples = [S((2, 3), (1, 3), axis=0), S((2, 1), (2, 2), (2, 3), axis=1)]


# --- public functions -----------------------------------------------------------------------------


_DTYPES = (np.dtype, type)
_SEQUENCES = (tuple, list)


def _ints(sizes: tuple[Any, ...]) -> Shape:
    """Accept both f(2, 3) and f((2, 3))."""
    if len(sizes) == 1 and isinstance(sizes[0], _SEQUENCES):
        sizes = tuple(sizes[0])
    return tuple([int(size) for size in sizes])


def _full_shape(shape: Shape, size: int) -> Shape:
    """Replace the -1 in `shape` by the size that `size` elements imply."""
    known = -math.prod(shape)  # the product of the other sizes, if there is one -1
    # If another size is 0, the -1 could be any number.
    if shape.count(-1) > 1 or min(shape) < -1 or not known or size % known:
        raise bad_option("reshape", "shape", shape, f"sizes of {size} elements, one of which may be -1")
    return tuple(size // known if n == -1 else n for n in shape)


def reshape(x: Array, *shape: Any) -> Array:
    """Return the same numbers in another shape; one size may be -1.

    Example:
        >>> import glassgrad as gg
        >>> gg.arange(6).reshape(2, -1).shape
        (2, 3)
    """
    wanted = _ints(shape)
    return reshape_p(x, shape=_full_shape(wanted, math.prod(x.shape)) if wanted and min(wanted) < 0 else wanted)


def view(x: Array, *shape: Any) -> Array:
    """`reshape` under PyTorch's name (it copies if no view is possible); with a dtype, read the bits as that dtype.

    Example:
        >>> import glassgrad as gg
        >>> gg.tensor([1.0]).view(gg.int32).tolist()
        [1065353216]
    """
    if isinstance(shape[0], _DTYPES):
        dtype = np.dtype(shape[0])
        return x if x.dtype == dtype else view_bits_p(x, dtype=dtype)
    wanted = _ints(shape)
    return reshape_p(x, shape=_full_shape(wanted, math.prod(x.shape)) if wanted and min(wanted) < 0 else wanted)


def permute(x: Array, *dims: Any) -> Array:
    """Return `x` with its dimensions in the order `dims`."""
    order = distinct_axes(_ints(dims), len(x.shape))
    if len(order) != len(x.shape):
        raise bad_option("permute", "dims", order, f"an order of {len(x.shape)} dimensions")
    return permute_p(x, axes=order)


def transpose(x: Array, dim0: Any = None, dim1: int | None = None) -> Array:
    """Swap two dimensions; without arguments reverse all of them, with one tuple permute, like NumPy."""
    ndim = len(x.shape)
    if dim0 is None:
        return permute_p(x, axes=tuple(reversed(range(ndim))))
    if dim1 is None:
        return permute(x, dim0)
    first, second = canonical_axis(dim0, ndim), canonical_axis(dim1, ndim)
    if not ndim:
        return permute_p(x, axes=())
    order = list(range(ndim))
    order[first], order[second] = order[second], order[first]
    return permute_p(x, axes=tuple(order))


def matrix_transpose(x: Array) -> Array:
    """Swap the last two dimensions."""
    return transpose(x, -2, -1)


def movedim(x: Array, source: Any, destination: Any) -> Array:
    """Move dimensions to other positions; the rest keep their order."""
    ndim = len(x.shape)
    sources = distinct_axes([source] if isinstance(source, int) else source, ndim)
    targets = distinct_axes([destination] if isinstance(destination, int) else destination, ndim)
    if len(sources) != len(targets):
        raise bad_option("movedim", "destination", destination, f"{len(sources)} dimensions, one for each of source")
    order = [axis for axis in range(ndim) if axis not in sources]
    for target, origin in sorted(zip(targets, sources, strict=True)):
        order.insert(target, origin)
    return permute_p(x, axes=tuple(order))


def squeeze(x: Array, dim: Any = None) -> Array:
    """Drop dimensions of size 1: all of them, or those of `dim` that have size 1."""
    ndim = len(x.shape)
    dims = range(ndim) if dim is None else distinct_axes([dim] if isinstance(dim, int) else dim, ndim)
    return reshape_p(x, shape=tuple(n for axis, n in enumerate(x.shape) if not (n == 1 and axis in dims)))


def unsqueeze(x: Array, dim: int) -> Array:
    """Insert a dimension of size 1 at `dim`."""
    at = canonical_axis(dim, len(x.shape) + 1)
    return reshape_p(x, shape=(*x.shape[:at], 1, *x.shape[at:]))


def flatten(x: Array, start_dim: int = 0, end_dim: int = -1) -> Array:
    """Merge the dimensions from `start_dim` to `end_dim`, both included."""
    shape = tuple(x.shape)
    ndim = len(shape)
    start, end = canonical_axis(start_dim, ndim), canonical_axis(end_dim, ndim)
    if start > end:
        raise bad_option("flatten", "end_dim", end_dim, f"none before start_dim={start_dim}")
    if ndim == 0:
        return reshape_p(x, shape=(1,))
    return reshape_p(x, shape=(*shape[:start], math.prod(shape[start : end + 1]), *shape[end + 1 :]))


def unflatten(x: Array, dim: int, sizes: Sequence[int]) -> Array:
    """Split dimension `dim` into `sizes`, one of which may be -1."""
    at = canonical_axis(dim, len(x.shape))
    expect_dimension("unflatten", x)
    return reshape_p(x, shape=(*x.shape[:at], *_parts_of(tuple(sizes), x.shape[at]), *x.shape[at + 1 :]))


def _parts_of(sizes: Shape, size: int) -> Shape:
    if sizes and min(sizes) < 0:
        return _full_shape(sizes, size)
    if not sizes or math.prod(sizes) != size:
        raise bad_option("unflatten", "sizes", sizes, f"sizes whose product is {size}")
    return sizes


def expand(x: Array, *sizes: Any) -> Array:
    """Repeat size-1 dimensions to `sizes` without copying; -1 keeps a size."""
    wanted = _ints(sizes)
    lead = len(wanted) - len(x.shape)
    if -1 in wanted[: max(lead, 0)]:
        raise bad_option("expand", "sizes", wanted, "-1 only for dimensions that there are")
    shape = tuple(x.shape[axis - lead] if n == -1 else n for axis, n in enumerate(wanted))
    return broadcast_to_p(x, shape=shape)


def broadcast_to(x: Array, size: Sequence[int]) -> Array:
    """Broadcast `x` to the shape `size`."""
    return expand(x, tuple(size))


def flip(x: Array, *dims: Any, dim: Any = None) -> Array:
    """Reverse the order of elements along `dims` (all, if none is given)."""
    if dim is not None:
        dims = (dim,)
    axes = _ints(dims) if dims and dims != (None,) else tuple(range(len(x.shape)))
    return flip_p(x, axis=distinct_axes(axes, len(x.shape)))


def roll(x: Array, shifts: Any, dims: Any = None) -> Array:
    """Shift elements cyclically along `dims`; without them over the flattened array."""
    shift = (shifts,) if isinstance(shifts, int) else tuple(shifts)
    if dims is None or (isinstance(dims, _SEQUENCES) and not dims and len(shift) == 1):
        if len(x.shape) != 1:
            return reshape_p(roll(reshape_p(x, shape=(math.prod(x.shape),)), shift, 0), shape=tuple(x.shape))
        dims = 0
    axes = (dims,) if isinstance(dims, int) else tuple(dims)
    if len(shift) != len(axes):
        raise bad_option("roll", "shifts", shifts, f"{len(axes)} of them, one for each of dims={dims}")
    return roll_p(x, shift=shift, axis=tuple(canonical_axis(axis, len(x.shape)) for axis in axes))


def _expect_matrix(op: str, x: Array) -> None:
    if len(x.shape) < 2:
        raise bad_option(op, "x", f"an array of shape {tuple(x.shape)}", "at least two dimensions")


def tril(x: Array, diagonal: int = 0) -> Array:
    """Keep the lower triangle of the last two dimensions."""
    _expect_matrix("tril", x)
    return tril_p(x, diagonal=diagonal)


def triu(x: Array, diagonal: int = 0) -> Array:
    """Keep the upper triangle of the last two dimensions."""
    _expect_matrix("triu", x)
    return triu_p(x, diagonal=diagonal)


def cat(tensors: Sequence[Array], dim: int = 0) -> Array:
    """Join along an existing dimension.

    Example:
        >>> import glassgrad as gg
        >>> gg.cat([gg.zeros(2), gg.ones(1)]).tolist()
        [0.0, 0.0, 1.0]
    """
    xs = list(tensors)
    if not xs:
        raise bad_option("cat", "tensors", [], "at least one")
    if len({len(x.shape) for x in xs}) > 1:
        xs = _as_nothing(xs, dim)
    return concatenate_p(*xs, axis=canonical_axis(dim, len(xs[0].shape)))


def _as_nothing(xs: list[Array], dim: int) -> list[Array]:
    """Give empty vectors the shape of the others with size 0 along `dim`: PyTorch lets loops start with `zeros(0)`."""
    shape = next(tuple(x.shape) for x in xs if tuple(x.shape) != (0,))
    axis = canonical_axis(dim, len(shape))
    nothing = (*shape[:axis], 0, *shape[axis + 1 :])
    return [reshape_p(x, shape=nothing) if tuple(x.shape) == (0,) else x for x in xs]


def stack(tensors: Sequence[Array], dim: int = 0) -> Array:
    """Join along a new dimension."""
    xs = list(tensors)
    shape = xs[0].shape if xs else ()
    at = canonical_axis(dim, len(shape) + 1)
    if at < len(shape) and all(x.shape == shape for x in xs):
        # Joining along the dimension after the new one gives the same memory, without a reshape of every tensor.
        return reshape_p(concatenate_p(*xs, axis=at), shape=(*shape[:at], len(xs), *shape[at:]))
    return cat([unsqueeze(x, dim) for x in xs], dim)


def astype(x: Array, dtype: Any) -> Array:
    """Return `x` in another dtype; `x` itself if it already has that dtype."""
    wanted = np.dtype(dtype)
    return x if x.dtype == wanted else astype_p(x, dtype=wanted)


def clone(x: Array, *, memory_format: str | None = None) -> Array:
    """Return a copy through which gradients flow to `x`."""
    if memory_format not in {None, "contiguous", "preserve"}:
        raise bad_option("clone", "memory_format", memory_format, "'contiguous' or 'preserve'")
    return copy_p(x)


all_take_complex(globals())
