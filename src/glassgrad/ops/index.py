"""Primitives that pick elements by position and put them back: indexing, gather, scatter, embedding.

An index is split into its arrays, which are arguments (they may be Tensors or Symbols), and a static
`spec` of everything else, so that one primitive serves slices, integers, new axes and integer arrays.
Reading is linear in x and its transpose is adding at the same places; each is the other's transpose.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from glassgrad.ops import elementwise as ew
from glassgrad.ops.core import Array, canonical_axis, custom, linear
from glassgrad.ops.places import ARRAY, Shape, Slice, Spec, add_at, join_index, split_index
from glassgrad.ops.samples import S, integers

# --- reading and adding ---------------------------------------------------------------------------


def _getitem(xp: Any, x: Array, *arrays: Array, spec: Spec) -> Array:
    if len(spec) == 1 and arrays:
        return x.take(arrays[0], axis=0) if xp is np else xp.take(x, arrays[0], axis=0)
    return x[join_index(spec, arrays)]


def _put_add(xp: Any, g: Array, *arrays: Array, spec: Spec, shape: Shape) -> Array:
    return add_at(xp, g, spec, arrays, shape)


def _no_gradients(count: int) -> tuple[None, ...]:
    return (None,) * count


_ROWS = (
    S((5, 2), integers(0, 5, 4), spec=(ARRAY,)),
    S((4, 3), spec=(Slice(None, None, 2), 1)),
    S((4, 3), integers(0, 4, 2, 2), integers(0, 3, 2), spec=(ARRAY, ARRAY)),
    S((3, 2), spec=(None, Ellipsis, Slice(None, None, -1))),
    S((4, 3, 2), integers(0, 3, 5), spec=(Slice(1, 3, None), ARRAY)),
)


def _first(rule: Any) -> Any:
    """Make a joint rule of one that only concerns the first argument."""
    return lambda g, needs, *x, **params: (rule(g, *x, **params), *_no_gradients(len(x) - 1))


def _first_jvp(primitive: Any) -> Any:
    return lambda tangents, y, x, *arrays, **params: primitive()(tangents[0], *arrays, **params)


getitem_p = linear(
    "getitem", _getitem,
    joint_transpose=_first(lambda g, x, *arrays, spec: put_add_p(g, *arrays, spec=spec, shape=x.shape)),
    saves="x", formula="x[index]", derivative="zeros with g added at index", samples=_ROWS,
)  # fmt: skip
getitem_p.joint_jvp = _first_jvp(lambda: getitem_p)
put_add_p = linear(
    "put_add", _put_add,
    joint_transpose=_first(lambda g, x, *arrays, spec, shape: getitem_p(g, *arrays, spec=spec)),
    saves="x", formula="zeros(shape) with x added at index", derivative="g[index]",
    shape=lambda x, *arrays, spec, shape: shape,
    samples=(S((4, 2), integers(0, 5, 4), spec=(ARRAY,), shape=(5, 2)),
             S((3,), integers(0, 4, 3), integers(0, 3, 3), spec=(ARRAY, ARRAY), shape=(4, 3))),
)  # fmt: skip
put_add_p.joint_jvp = _first_jvp(lambda: put_add_p)


# --- writing --------------------------------------------------------------------------------------


def _at_set(xp: Any, x: Array, value: Array, *arrays: Array, spec: Spec) -> Array:
    out = x.copy()
    out[join_index(spec, arrays)] = value
    return out


def _at_set_vjp(g: Array, needs: Sequence[bool], y: Any, x: Any, value: Any, *arrays: Array, spec: Spec) -> Any:
    to_x = at_set_p(g, 0, *arrays, spec=spec) if needs[0] else None
    to_value = getitem_p(g, *arrays, spec=spec) if needs[1] else None
    return (to_x, to_value, *_no_gradients(len(arrays)))


def _at_set_jvp(tangents: Sequence[Any], y: Any, x: Any, value: Any, *arrays: Array, spec: Spec) -> Array:
    t_x = np.zeros(x.shape, x.dtype) if tangents[0] is None else tangents[0]
    t_value = 0 if tangents[1] is None else tangents[1]
    return at_set_p(t_x, t_value, *arrays, spec=spec)


at_set_p = custom(
    "at_set", _at_set, joint_vjp=_at_set_vjp, joint_jvp=_at_set_jvp, saves="x", formula="x with x[index] = value",
    derivative="g with 0 at index, g[index]", shape=lambda x, *rest, spec: x.shape,
    samples=(S((4, 3), (3,), spec=(1,)), S((4, 3), (2, 3), lambda rng: rng.permutation(4)[:2], spec=(ARRAY,))),
)  # fmt: skip


# --- along an axis --------------------------------------------------------------------------------


def _along(index: Array, axis: int) -> tuple[Any, ...]:
    grids: list[Any] = list(np.ogrid[tuple(slice(n) for n in index.shape)]) if index.ndim else []
    grids[axis] = index
    return tuple(grids)


def _take_along(xp: Any, x: Array, index: Array, *, axis: int) -> Array:
    return x[_along(index, axis)] if xp is np else xp.take_along_axis(x, index, axis=axis)


def _put_along_add(xp: Any, g: Array, index: Array, *, axis: int, shape: Shape) -> Array:
    out = xp.zeros(shape, dtype=g.dtype)
    np.add.at(out, _along(index, axis), g)
    return out


take_along_axis_p = linear(
    "take_along_axis", _take_along,
    (lambda g, x, index, *, axis: put_along_add_p(g, index, axis=axis, shape=x.shape), None), saves="x",
    formula="x[..., index, ...]", derivative="zeros with g added at index",
    shape=lambda x, index, *, axis: index.shape,
    samples=(S((3, 4), integers(0, 4, 3, 2), axis=1), S((3, 4), integers(0, 3, 2, 4), axis=0)),
)  # fmt: skip
put_along_add_p = linear(
    "put_along_add", _put_along_add,
    (lambda g, x, index, *, axis, shape: take_along_axis_p(g, index, axis=axis), None), saves="x",
    formula="zeros(shape) with x added at index", derivative="g[..., index, ...]",
    shape=lambda x, index, *, axis, shape: shape, samples=(S((3, 2), integers(0, 4, 3, 2), axis=1, shape=(3, 4)),),
)  # fmt: skip


# --- public functions -----------------------------------------------------------------------------


def getitem(x: Array, index: Any) -> Array:
    """x[index], with slices, integers, None, ..., integer arrays and boolean arrays."""
    spec, arrays = split_index(index)
    return getitem_p(x, *arrays, spec=spec)


def take_along_axis(x: Array, index: Array, axis: int) -> Array:
    """NumPy's `take_along_axis`: pick along one axis; the other axes of `x` and `index` agree."""
    return take_along_axis_p(x, index, axis=canonical_axis(axis, len(x.shape)))


def gather(x: Array, dim: int, index: Array) -> Array:
    """PyTorch's `gather`: y[i, j] = x[index[i, j], j] for dim 0. `index` may be smaller than `x`.

    Example:
        >>> import glassgrad as gg
        >>> x = gg.tensor([[1.0, 2.0], [3.0, 4.0]])
        >>> gg.gather(x, 1, gg.tensor([[1], [0]])).tolist()
        [[2.0], [3.0]]
    """
    return take_along_axis_p(x, index, axis=canonical_axis(dim, len(x.shape)))


def index_select(x: Array, dim: int, index: Array) -> Array:
    """Return the slices of `x` at the positions `index` along `dim`."""
    axis = canonical_axis(dim, len(x.shape))
    return getitem_p(x, index, spec=(Slice(None, None, None),) * axis + (ARRAY,))


def embedding(index: Array, weight: Array) -> Array:
    """Return the rows of `weight` (count, width) at `index`: shape (*index.shape, width)."""
    return getitem_p(weight, index, spec=(ARRAY,))


def masked_fill(x: Array, mask: Array, value: Any) -> Array:
    """`x` with `value` where `mask` is true."""
    return ew.where(mask, value, x)


def one_hot(index: Array, num_classes: int = -1) -> Array:
    """Integers to vectors of 0 and a single 1: shape (*index.shape, num_classes), int64."""
    plain = index.data if hasattr(index, "requires_grad") else np.asarray(index)
    if num_classes < 0:
        num_classes = int(plain.max()) + 1 if plain.size else 0
    return one_hot_p(index, count=num_classes)


one_hot_p = custom(
    "one_hot", lambda xp, index, *, count: (index[..., None] == xp.arange(count)).astype(np.int64),
    vjp=(None,), jvp=(None,), formula="1 at index, else 0", derivative="none",
    shape=lambda index, *, count: (*index.shape, count),
)  # fmt: skip
