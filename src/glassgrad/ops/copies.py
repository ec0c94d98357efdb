"""PyTorch's spellings that copy: `view_copy` and the like, parts cut out, and a tensor with a part replaced."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from glassgrad.ops import arrange, complexes, shape, strided
from glassgrad.ops.axes import as_row
from glassgrad.ops.complex_input import all_take_complex
from glassgrad.ops.core import Array, bad_option, canonical_axis
from glassgrad.ops.expects import as_index, expect_dtype, expect_slices
from glassgrad.ops.index import at_set_p
from glassgrad.ops.reduce import sum_p
from glassgrad.ops.scatter import at_set, scatter_reduce
from glassgrad.ops.shape import broadcast_to_p, copy_p, reshape_p

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
    **{
        name: getattr(module, name)
        for module, names in (
            (arrange, "narrow select split t unbind"),
            (shape, "expand permute squeeze transpose unsqueeze view"),
            (strided, "as_strided diagonal unfold"),
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
    wanted = tuple(strided.diagonal(x, offset, dim1, dim2).shape)
    if tuple(src.shape) != wanted:
        raise bad_option("diagonal_scatter", "src", f"an array of shape {tuple(src.shape)}", f"the shape {wanted}")
    places = {"offset": offset, "axis1": axis1, "axis2": axis2}
    return strided._set_diagonal(x, src, lambda y, value, at, spec: at_set_p(y, value, *at, spec=spec), **places)


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
