"""Repeating, padding, stacking and splitting, composed of the primitives in `shape` and `index`."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from glassgrad.base.tables import pairs
from glassgrad.ops.axes import concrete
from glassgrad.ops.complex_input import all_take_complex
from glassgrad.ops.core import Array, bad_option, canonical_axis, distinct_axes
from glassgrad.ops.expects import expect_dimension
from glassgrad.ops.index import getitem_p
from glassgrad.ops.memory import own_memory
from glassgrad.ops.places import ARRAY, EVERYTHING
from glassgrad.ops.shape import _ints, broadcast_to_p, cat, flip_p, pad_p, permute_p, reshape_p, transpose

Shape = tuple[int, ...]

# --- repeating ------------------------------------------------------------------------------------


@own_memory
def repeat(x: Array, *sizes: Any) -> Array:
    """Lay copies of x side by side, `sizes` of them along each dimension; new dimensions come first.

    This is PyTorch's `repeat`. NumPy's `repeat` repeats single elements, like `repeat_interleave` here.
    """
    times = _ints(sizes)
    lead = len(times) - len(x.shape)
    if lead < 0:
        raise bad_option("repeat", "sizes", times, f"at least {len(x.shape)} numbers")
    shape = (*(1,) * lead, *x.shape)
    apart = tuple(n for size in shape for n in (1, size))
    wide = tuple(n for count, size in zip(times, shape, strict=True) for n in (count, size))
    repeated = broadcast_to_p(reshape_p(x, shape=apart), shape=wide)
    return reshape_p(repeated, shape=tuple(count * size for count, size in zip(times, shape, strict=True)))


def tile(x: Array, *dims: Any) -> Array:
    """`repeat`, with 1 for missing leading dimensions."""
    times = _ints(dims)
    return repeat(x, *(1,) * (len(x.shape) - len(times)), *times)


@own_memory
def repeat_interleave(x: Array, repeats: Any, dim: int | None = None, *, output_size: int | None = None) -> Array:
    """Repeat each element along `dim`, by default of the flattened tensor; `repeats` is a number or one per element."""
    if dim is None:
        x, dim = reshape_p(x, shape=(math.prod(x.shape),)), 0
    axis = canonical_axis(dim, len(x.shape))
    if isinstance(repeats, int):
        before, size, after = x.shape[:axis], x.shape[axis], x.shape[axis + 1 :]
        column = reshape_p(x, shape=(*before, size, 1, *after))
        return reshape_p(
            broadcast_to_p(column, shape=(*before, size, repeats, *after)), shape=(*before, size * repeats, *after)
        )
    counts = np.broadcast_to(concrete(repeats, "repeat_interleave"), (x.shape[axis],))
    return _pick(x, np.repeat(np.arange(x.shape[axis]), counts), axis)


def _pick(x: Array, positions: Array, axis: int) -> Array:
    return getitem_p(x, positions, spec=(EVERYTHING,) * axis + (ARRAY,))


# --- padding --------------------------------------------------------------------------------------

# NumPy's names for PyTorch's modes.
_BORDERS = pairs("reflect=reflect replicate=edge edge=edge circular=wrap wrap=wrap symmetric=symmetric")


@own_memory
def pad(x: Array, pad: Any, mode: str = "constant", value: Any = None, *, constant_values: Any = None) -> Array:
    """Add a border.

    Args:
        x: any shape.
        pad: PyTorch's form, a flat list (left, right, top, bottom, ...) that begins at the last dimension, or NumPy's,
            a pair for each dimension or one number for all. Negative numbers crop.
        mode: "constant", "reflect", "symmetric", "replicate" (or "edge"), "circular" (or "wrap").
        value: the fill value of a constant border; NumPy's name is `constant_values`.

    Example:
        >>> import glassgrad as gg
        >>> gg.pad(gg.arange(3), (2, 1), mode="reflect").tolist()
        [2, 1, 0, 1, 2, 1]
    """
    widths = _widths(pad, len(x.shape))
    cuts = any(a < 0 or b < 0 for a, b in widths)
    if cuts and mode in {"constant", "circular", "wrap"}:  # other modes repeat elements that may be cropped elsewhere
        if any(n + min(a, 0) + min(b, 0) < 0 for n, (a, b) in zip(x.shape, widths, strict=True)):
            raise bad_option("pad", "pad", pad, f"no more cut off than there is of shape {tuple(x.shape)}")
        x = x[tuple(slice(max(-a, 0), n - max(-b, 0)) for n, (a, b) in zip(x.shape, widths, strict=True))]
        widths = tuple((max(a, 0), max(b, 0)) for a, b in widths)
    if mode == "constant":
        fill = constant_values if value is None else value
        return pad_p(x, widths=widths, value=0 if fill is None else fill)
    if mode not in _BORDERS:
        expected = ", ".join(repr(name) for name in ("constant", *_BORDERS))
        raise bad_option("pad", "mode", mode, expected)
    for axis, (a, b) in enumerate(widths):
        if a or b:
            x = _pick(x, _border(x.shape[axis], a, b, mode), axis)
    return x


def _border(n: int, before: int, after: int, mode: str) -> Array:
    """Return the source position of each element of the padded axis; negative widths crop."""
    most = n - 1 if mode == "reflect" else n
    if n == 0 or (mode in {"reflect", "circular"} and max(before, after) > most) or before + n + after < 0:
        raise bad_option(
            "pad", f"border with mode {mode!r}", (before, after), f"at most {max(most, 0)} for a dimension of size {n}"
        )
    border: Any = _BORDERS[mode]  # NumPy's stubs list the modes one by one
    places = np.pad(np.arange(n), (max(before, 0), max(after, 0)), mode=border)
    return places[max(-before, 0) : len(places) - max(-after, 0)]


def _widths(pad: Any, ndim: int) -> tuple[tuple[int, int], ...]:
    """Read PyTorch's flat form or NumPy's nested one."""
    if isinstance(pad, int):
        return ((pad, pad),) * ndim
    if any(isinstance(part, Sequence) for part in pad):
        pairs = [tuple(part) if len(part) == 2 else (part[0], part[0]) for part in pad]
        pairs = pairs * ndim if len(pairs) == 1 else pairs
        if len(pairs) == ndim:
            return tuple((int(a), int(b)) for a, b in pairs)
        raise bad_option("pad", "pad", pad, f"a pair for each of {ndim} dimensions")
    if len(pad) % 2 or len(pad) > 2 * ndim:
        raise bad_option("pad", "pad", pad, f"an even number of widths, at most {2 * ndim}")
    given = [(int(a), int(b)) for a, b in zip(pad[::2], pad[1::2], strict=True)]
    return (*((0, 0),) * (ndim - len(given)), *reversed(given))


# --- joining and cutting --------------------------------------------------------------------------


def atleast_1d(*tensors: Any) -> Any:
    """x with at least one dimension; a tuple for several tensors or a list of them."""
    return _each(lambda x: x if x.shape else reshape_p(x, shape=(1,)), tensors)


def atleast_2d(*tensors: Any) -> Any:
    """x with at least two dimensions, new ones first; a tuple for several tensors or a list of them."""
    return _each(
        lambda x: x if len(x.shape) > 1 else reshape_p(x, shape=(1,) * (2 - len(x.shape)) + tuple(x.shape)), tensors
    )


def atleast_3d(*tensors: Any) -> Any:
    """x with at least three dimensions: (1, n, 1) from a vector, (m, n, 1) from a matrix; a tuple for several."""

    def widen(x: Array) -> Array:
        shape = {0: (1, 1, 1), 1: (1, *x.shape, 1), 2: (*x.shape, 1)}.get(len(x.shape))
        return x if shape is None else reshape_p(x, shape=shape)

    return _each(widen, tensors)


def _each(function: Callable[[Array], Array], given: tuple[Any, ...]) -> Any:
    """Apply a function to one tensor, or to each of several, which may come as one list."""
    if len(given) == 1 and not isinstance(given[0], list | tuple):
        return function(given[0])
    return tuple(function(x) for x in (given[0] if len(given) == 1 else given))


def hstack(tensors: Sequence[Array]) -> Array:
    """Join side by side: along dimension 1, vectors along their only one."""
    xs = [atleast_1d(x) for x in tensors]
    return cat(xs, 0 if len(xs[0].shape) == 1 else 1)


def vstack(tensors: Sequence[Array]) -> Array:
    """Join one below the other: vectors become rows."""
    return cat([atleast_2d(x) for x in tensors], 0)


def dstack(tensors: Sequence[Array]) -> Array:
    """Join along a third dimension."""
    return cat([atleast_3d(x) for x in tensors], 2)


def column_stack(tensors: Sequence[Array]) -> Array:
    """Join side by side: vectors become columns."""
    return cat([reshape_p(x, shape=(math.prod(x.shape), 1)) if len(x.shape) < 2 else x for x in tensors], 1)


def split(x: Array, split_size: int | Sequence[int], dim: int = 0) -> tuple[Array, ...]:
    """Split into pieces of `split_size` along `dim`, the last one possibly smaller, or into the sizes given."""
    axis = canonical_axis(dim, len(x.shape))
    expect_dimension("split", x)
    total = x.shape[axis]
    if isinstance(split_size, int):
        if split_size < 0 or (total and not split_size):
            raise bad_option("split", "split_size", split_size, "more than 0")
        if not total:
            return (x,)
        sizes = [min(split_size, total - start) for start in range(0, max(total, 1), split_size)]
    else:
        sizes = list(split_size)
        if sum(sizes) != total or min(sizes, default=0) < 0:
            raise bad_option("split", "split_size", sizes, f"sizes, none negative, that add up to {total}")
    stops = np.cumsum(sizes).tolist()
    lead = (slice(None),) * axis
    return tuple(x[(*lead, slice(stop - size, stop))] for size, stop in zip(sizes, stops, strict=True))


def chunk(x: Array, chunks: int, dim: int = 0) -> tuple[Array, ...]:
    """Split into at most `chunks` pieces along `dim`, equal but for a smaller last one."""
    axis = canonical_axis(dim, len(x.shape))
    expect_dimension("chunk", x)
    if chunks < 1:
        raise bad_option("chunk", "chunks", chunks, "at least 1")
    total = x.shape[axis]
    return split(x, max(1, -(-total // chunks)) if total else [0] * chunks, dim)


def unbind(x: Array, dim: int = 0) -> tuple[Array, ...]:
    """Return the slices along `dim`, without that dimension."""
    lead = (slice(None),) * canonical_axis(dim, len(x.shape))
    expect_dimension("unbind", x)
    return tuple(x[(*lead, index)] for index in range(x.shape[len(lead)]))


def tensor_split(x: Array, indices_or_sections: Any, dim: int = 0) -> tuple[Array, ...]:
    """Split along `dim` into nearly equal sections, or before each of the given indices: NumPy's `array_split`."""
    axis = canonical_axis(dim, len(x.shape))
    size = x.shape[axis]
    given = concrete(indices_or_sections, "tensor_split")
    if given.ndim:
        ends = given.tolist()
    else:
        sections = int(given)
        if sections < 1:
            raise bad_option("tensor_split", "indices_or_sections", sections, "at least one section")
        each, extra = divmod(size, sections)
        ends = [each * (k + 1) + min(k + 1, extra) for k in range(sections - 1)]
    lead = (slice(None),) * axis
    return tuple(x[(*lead, slice(a, b))] for a, b in zip([0, *ends], [*ends, size], strict=True))


def _checked(x: Array, op: str, least: int) -> None:
    if len(x.shape) < least:
        raise bad_option(op, "input", tuple(x.shape), f"at least {least} dimensions")


def _in_equal_parts(x: Array, op: str, indices_or_sections: Any, dim: int) -> tuple[Array, ...]:
    """`tensor_split`, but the number of sections must divide the size."""
    if isinstance(indices_or_sections, int) and (indices_or_sections < 1 or x.shape[dim] % indices_or_sections):
        raise bad_option(op, "indices_or_sections", indices_or_sections, f"a divisor of the size {x.shape[dim]}")
    return tensor_split(x, indices_or_sections, dim)


def hsplit(x: Array, indices_or_sections: Any) -> tuple[Array, ...]:
    """Split columns (of a vector, elements) into equal parts, or before each of the given indices."""
    _checked(x, "hsplit", 1)
    return _in_equal_parts(x, "hsplit", indices_or_sections, 0 if len(x.shape) == 1 else 1)


def vsplit(x: Array, indices_or_sections: Any) -> tuple[Array, ...]:
    """Split rows into equal parts, or before each of the given indices."""
    _checked(x, "vsplit", 2)
    return _in_equal_parts(x, "vsplit", indices_or_sections, 0)


def dsplit(x: Array, indices_or_sections: Any) -> tuple[Array, ...]:
    """Split along the third dimension into equal parts, or before each of the given indices."""
    _checked(x, "dsplit", 3)
    return _in_equal_parts(x, "dsplit", indices_or_sections, 2)


def block_diag(*tensors: Array) -> Array:
    """One matrix with the given ones along its diagonal and zeros elsewhere; vectors and numbers count as rows.

    Example:
        >>> import glassgrad as gg
        >>> gg.block_diag(gg.tensor([[1, 2]]), gg.tensor([3])).tolist()
        [[1, 2, 0], [0, 0, 3]]
    """
    for x in tensors:
        if len(x.shape) > 2:
            raise bad_option("block_diag", "tensors", tuple(x.shape), "at most two dimensions")
    blocks = [reshape_p(x, shape=(1,) * (2 - len(x.shape)) + tuple(x.shape)) for x in tensors]
    width = sum(x.shape[1] for x in blocks)
    rows, left = [], 0
    for x in blocks:
        rows.append(pad_p(x, widths=((0, 0), (left, width - left - x.shape[1])), value=0))
        left += x.shape[1]
    return cat(rows, 0) if rows else np.zeros((1, 0), np.float32)


def narrow(x: Array, dim: int, start: int, length: int) -> Array:
    """The part of `length` elements from `start` on along `dim`: a view."""
    axis = canonical_axis(dim, len(x.shape))
    start = start + x.shape[axis] if start < 0 else start
    if not 0 <= start <= start + length <= x.shape[axis]:
        raise bad_option("narrow", "length", length, f"a part from {start} on that ends within {x.shape[axis]}")
    return x[(*(slice(None),) * axis, slice(start, start + length))]


def select(x: Array, dim: int, index: int) -> Array:
    """The slice at `index` along `dim`, without that dimension: a view."""
    return x[(*(slice(None),) * canonical_axis(dim, len(x.shape)), int(index))]


def expand_as(x: Array, other: Array) -> Array:
    """x broadcast to the shape of `other`."""
    return broadcast_to_p(x, shape=tuple(other.shape))


def view_as(x: Array, other: Array) -> Array:
    """x in the shape of `other`."""
    return reshape_p(x, shape=tuple(other.shape))


def reshape_as(x: Array, other: Array) -> Array:
    """x in the shape of `other`."""
    return reshape_p(x, shape=tuple(other.shape))


def t(x: Array) -> Array:
    """The transpose of a matrix; a vector itself."""
    if len(x.shape) > 2:
        raise bad_option("t", "number of dimensions", len(x.shape), "at most 2; see .mT")
    return transpose(x)


# --- grids and turns ------------------------------------------------------------------------------


def meshgrid(*tensors: Any, indexing: str = "ij") -> tuple[Array, ...]:
    """The coordinates of the points of a grid, one array per dimension. "xy" swaps the first two dimensions."""
    if indexing not in {"ij", "xy"}:
        raise bad_option("meshgrid", "indexing", indexing, "'ij' or 'xy'")
    xs = list(tensors[0]) if len(tensors) == 1 and isinstance(tensors[0], list | tuple) else list(tensors)
    if any(len(x.shape) > 1 for x in xs):
        raise bad_option("meshgrid", "tensors", [tuple(x.shape) for x in xs], "vectors or numbers")
    order = list(range(len(xs)))
    if indexing == "xy" and len(xs) > 1:
        order[:2] = [1, 0]
    shape = tuple(xs[axis].shape[0] if xs[axis].shape else 1 for axis in order)
    grids = []
    for number, x in enumerate(xs):
        axis = order.index(number)
        column = tuple(shape[axis] if at == axis else 1 for at in range(len(xs)))
        grids.append(broadcast_to_p(reshape_p(x, shape=column), shape=shape))
    return tuple(grids)


def broadcast_tensors(*tensors: Any) -> tuple[Array, ...]:
    """Broadcast all tensors to their common shape."""
    shapes = [tuple(x.shape) for x in tensors]
    try:
        shape = np.broadcast_shapes(*shapes)
    except ValueError as error:
        raise bad_option("broadcast_tensors", "tensors", shapes, "shapes that broadcast to one") from error
    return tuple(broadcast_to_p(x, shape=shape) for x in tensors)


def fliplr(x: Array) -> Array:
    """Reverse the columns."""
    return flip_p(x, axis=(1,))


def flipud(x: Array) -> Array:
    """Reverse the rows."""
    return flip_p(x, axis=(0,))


@own_memory
def rot90(x: Array, k: int = 1, dims: Sequence[int] = (0, 1)) -> Array:
    """Turn by k times 90 degrees, from the first of `dims` towards the second."""
    if len(dims) != 2 or len(x.shape) < 2:
        raise bad_option("rot90", "dims", dims, f"two dimensions of at least two, given {len(x.shape)}")
    first, second = distinct_axes(dims, len(x.shape))
    order = list(range(len(x.shape)))
    order[first], order[second] = second, first
    quarter = k % 4
    if quarter == 2:
        return flip_p(x, axis=tuple(sorted((first, second))))
    if quarter == 1:
        return permute_p(flip_p(x, axis=(second,)), axes=tuple(order))
    return flip_p(permute_p(x, axes=tuple(order)), axis=(second,)) if quarter else x


all_take_complex(globals())
