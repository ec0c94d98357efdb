"""Scans along an axis: cumulative sums and products, running extremes, linear recurrences, products.

All derivatives of products go through one primitive, the first-order linear recurrence
h[i] = a[i] * h[i-1] + b[i]: its own derivatives are recurrences again, and no division occurs, so
zeros among the factors are exact to any order.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from types import ModuleType
from typing import Any

import numpy as np

from glassgrad.ops import elementwise as ew
from glassgrad.ops.axes import Axes, count, reduced_shape, restore, widened
from glassgrad.ops.complex_input import all_take_complex
from glassgrad.ops.complexes import real
from glassgrad.ops.core import Array, Aval, Linear, bad_option, canonical_axes, canonical_axis, custom, fused, linear
from glassgrad.ops.index import take_along_axis_p
from glassgrad.ops.kernels.choose import all_over, multiply_over
from glassgrad.ops.kernels.logarithms import complex_log_of_two
from glassgrad.ops.kernels.parts import along_last, pays
from glassgrad.ops.memory import own_memory
from glassgrad.ops.reduce import Extreme, sum_p
from glassgrad.ops.samples import S
from glassgrad.ops.shape import astype, cat, pad_p, permute_p, reshape_p
from glassgrad.ops.vmap.rules import shifted


def _same_shape(x: Array, *_rest: Any, **_params: Any) -> tuple[int, ...]:
    return tuple(x.shape)


def _accumulated(x: Array, **_params: Any) -> Aval:
    return Aval(tuple(x.shape), np.cumsum(np.empty(0, x.dtype)).dtype)  # NumPy widens small integers


def _along(x: Array, axis: int, start: int | None, stop: int | None) -> Array:
    return x[(slice(None),) * axis + (slice(start, stop),)]


def _shifted(x: Array, axis: int, back: bool = False, fill: float = 0.0) -> Array:
    """Shift every element by one place (backwards with `back`), with `fill` in the vacant place."""
    ndim = len(x.shape)
    kept = _along(x, axis, 1, None) if back else _along(x, axis, None, x.shape[axis] - 1)
    widths = tuple(((0, 1) if back else (1, 0)) if at == axis else (0, 0) for at in range(ndim))
    return pad_p(kept, widths=widths, value=fill) if x.shape[axis] else x


# --- sums -----------------------------------------------------------------------------------------


# There are usually few longer rows, and each length needs its own kernel.
_LONGEST_ROW = 8_192


def _cumsum(xp: ModuleType, x: Array, *, axis: int, reverse: bool) -> Array:
    if xp is np:
        if pays(x) and x.shape[-1] <= _LONGEST_ROW:
            found = along_last(_rows_from_behind if reverse else _rows_summed, axis, x)
            if found is not None:
                return found
        turn = (slice(None),) * axis + (slice(None, None, -1),)
        return x[turn].cumsum(axis)[turn] if reverse else x.cumsum(axis)
    if reverse:
        return xp.flip(xp.cumsum(xp.flip(x, axis=axis), axis=axis), axis=axis)
    return xp.cumulative_sum(x, axis=axis)


cumsum_p: Linear = linear(
    "cumsum",
    _cumsum,
    (lambda g, x, *, axis, reverse: cumsum_p(g, axis=axis, reverse=not reverse),),
    shape=_accumulated,
    batch=shifted,
)
cumsum_p.describe("y[i] = x[0] + ... + x[i]", "cumsum of g from behind")
cumsum_p.samples = [S((2, 4), axis=1, reverse=False), S((3, 2), axis=0, reverse=True)]


def _rows_summed(x: Array) -> tuple[Array]:
    """Return running sums of rows, as a formula for native code; NumPy stores and reloads every partial sum."""
    return (cumsum_p(x, axis=1, reverse=False),)


def _rows_from_behind(x: Array) -> tuple[Array]:
    return (cumsum_p(x, axis=1, reverse=True),)


# --- the linear recurrence ------------------------------------------------------------------------


def _recurrence(xp: ModuleType, a: Array, b: Array, *, axis: int, reverse: bool) -> Array:
    turn = slice(None, None, -1) if reverse else slice(None)
    coefficients, terms = np.moveaxis(a, axis, 0)[turn], np.moveaxis(b, axis, 0)[turn]
    out = np.array(terms)
    n = len(out)
    if n <= 64 or out.size > 64 * n:
        for i in range(1, n):
            out[i] += coefficients[i] * out[i - 1]
    else:
        _recurrence_by_blocks(np.array(coefficients), out)
    return np.moveaxis(out[turn], 0, axis)


def _recurrence_by_blocks(a: Array, out: Array) -> None:
    """Run all blocks of length sqrt(n) in parallel, then carry the ends from block to block."""
    length = math.isqrt(len(out))
    whole = len(out) // length * length
    blocks, factors = out[:whole].reshape(-1, length, *out.shape[1:]), a[:whole].reshape(-1, length, *out.shape[1:])
    for j in range(1, length):
        blocks[:, j] += factors[:, j] * blocks[:, j - 1]
        factors[:, j] *= factors[:, j - 1]
    for k in range(1, len(blocks)):
        blocks[k] += factors[k] * blocks[k - 1, -1]
    for i in range(whole, len(out)):
        out[i] += a[i] * out[i - 1]


def _recurrence_vjp(
    g: Array, needs: Sequence[bool], y: Array, a: Array, b: Array, *, axis: int, reverse: bool
) -> Sequence[Array | None]:
    # c[i] = g[i] + a[i+1] * c[i+1];  db = c, da[i] = c[i] * h[i-1].
    c = recurrence_p(_shifted(a, axis, back=not reverse), g, axis=axis, reverse=not reverse)
    return (c * _shifted(y, axis, back=reverse) if needs[0] else None), c


def _recurrence_jvp(tangents: Sequence[Array], y: Array, a: Array, b: Array, *, axis: int, reverse: bool) -> Array:
    ta, tb = tangents
    if ta is not None:
        through = ta * _shifted(y, axis, back=reverse)
        tb = through if tb is None else through + tb
    return recurrence_p(a, tb, axis=axis, reverse=reverse)


recurrence_p = custom(
    "recurrence",
    _recurrence,
    joint_vjp=_recurrence_vjp,
    joint_jvp=_recurrence_jvp,
    saves=("x", "y"),
    batch=shifted,
    shape=_same_shape,
    takes_complex=True,
)
recurrence_p.describe("h[i] = a[i] * h[i-1] + b[i]", "c[i] * h[i-1], c;  c[i] = g[i] + a[i+1] * c[i+1]")
recurrence_p.samples = [
    S((2, 4), (2, 4), axis=1, reverse=False),
    S((3, 2), (3, 2), axis=0, reverse=True),
    S((70,), (70,), axis=0, reverse=False),
]

# --- products -------------------------------------------------------------------------------------


def _cumprod_vjp(g: Array, y: Array, x: Array, *, axis: int) -> Array:
    c = recurrence_p(_shifted(x, axis, back=True), g, axis=axis, reverse=True)
    return c * _shifted(y, axis, fill=1.0)


cumprod_p = custom(
    "cumprod",
    lambda xp, x, *, axis: xp.cumprod(x, axis=axis) if xp is np else xp.cumulative_prod(x, axis=axis),
    vjp=(_cumprod_vjp,),
    jvp=(lambda t, y, x, *, axis: recurrence_p(x, t * _shifted(y, axis, fill=1.0), axis=axis, reverse=False),),
    saves=("x", "y"),
    shape=_accumulated,
    batch=shifted,
    takes_complex=True,
)
cumprod_p.describe("y[i] = x[0] * ... * x[i]", "c[i] * y[i-1];  c[i] = g[i] + x[i+1] * c[i+1]")
cumprod_p.samples = [S((2, 4), axis=1), S(lambda rng: rng.normal(size=(5, 2)) * [[1], [0], [1], [0], [1]], axis=0)]


def _prod(xp: ModuleType, x: Array, *, axis: Axes, keepdims: bool) -> tuple[Array, Array]:
    y: Any = multiply_over(x, axis, None, None, keepdims)
    return y, y


def _prod_vjp(g: Array, needs: Any, y: Array, x: Array, *, axis: Axes, keepdims: bool) -> tuple[Array]:
    full_g, full_y = restore(g, x.shape, axis, keepdims), restore(y, x.shape, axis, keepdims)
    if all_over(np.isfinite(y) & (y != 0), None):
        share = full_g * full_y
        return (share / x,)
    return (full_g * _products_of_others(x, axis),)


def _products_of_others(x: Array, axis: Axes) -> Array:
    """At each place the product of all other elements over `axis`, without division."""
    kept = [at for at in range(x.ndim) if at not in axis]
    order = [*kept, *axis]
    rows = x.transpose(order).reshape(math.prod(x.shape[at] for at in kept), -1)
    ones = np.ones((len(rows), 1), x.dtype)
    before = np.cumprod(np.concatenate([ones, rows[:, :-1]], axis=1), axis=1)
    behind = np.cumprod(np.concatenate([ones, rows[:, :0:-1]], axis=1), axis=1)[:, ::-1]
    return (before * behind).reshape([x.shape[at] for at in order]).transpose(np.argsort(order))


def _prod_decomposed(x: Array, *, axis: Axes, keepdims: bool) -> Array:
    if not count(x.shape, axis):
        return sum_p(x, axis=axis, keepdims=keepdims) + 1
    kept = [at for at in range(len(x.shape)) if at not in axis]
    rows = reshape_p(permute_p(x, axes=(*kept, *axis)), shape=(*(x.shape[at] for at in kept), count(x.shape, axis)))
    last = cumprod_p(rows, axis=len(kept))[..., -1]
    return reshape_p(last, shape=reduced_shape(x, axis=axis, keepdims=keepdims))


prod_p = fused("prod", _prod, joint_vjp=_prod_vjp, decompose=_prod_decomposed, takes_complex=True)
prod_p.describe("product of x over axes", "the product of the others")
prod_p.samples = [
    S((2, 3), axis=(0, 1), keepdims=False),
    S((2, 3, 2), axis=(1,), keepdims=True),
    S(lambda rng: rng.normal(size=(3, 3)) * [[1, 0, 0], [1, 1, 1], [1, 0, 1]], axis=(1,), keepdims=False),
    S((2, 3, 2), axis=(0, 2), keepdims=False),
]

# --- logarithms of sums ---------------------------------------------------------------------------


def _carry(y: Array, axis: int) -> Array:
    """exp(y[i-1] - y[i]), at most 1, and 0 where there is nothing to carry."""
    before = _shifted(y, axis, fill=-math.inf)
    empty = ew.equal(real(before), -math.inf)
    return ew.where(empty, 0.0, ew.exp(ew.where(empty, 0.0, before) - ew.where(empty, 0.0, y)))


def _weight(y: Array, x: Array) -> Array:
    empty = ew.equal(real(y), -math.inf)
    return ew.where(empty, 0.0, ew.exp(x - ew.where(empty, 0.0, y)))


def _logcumsumexp_vjp(g: Array, y: Array, x: Array, *, axis: int) -> Array:
    c = recurrence_p(_shifted(_carry(y, axis), axis, back=True), g, axis=axis, reverse=True)
    return c * _weight(y, x)


def _logcumsumexp(xp: ModuleType, x: Array, *, axis: int) -> Array:
    if x.dtype.kind != "c":
        return np.logaddexp.accumulate(x, axis=axis)
    y = np.array(x)
    rows = np.moveaxis(y, axis, 0)
    for at in range(1, len(rows)):
        rows[at] = complex_log_of_two(rows[at], rows[at - 1])
    return y


logcumsumexp_p = custom(
    "logcumsumexp",
    _logcumsumexp,
    vjp=(_logcumsumexp_vjp,),
    jvp=(lambda t, y, x, *, axis: recurrence_p(_carry(y, axis), t * _weight(y, x), axis=axis, reverse=False),),
    saves=("x", "y"),
    shape=_same_shape,
    batch=shifted,
    takes_complex=True,
)
logcumsumexp_p.describe(
    "y[i] = log(exp(x[0]) + ... + exp(x[i]))", "c[i] * exp(x[i] - y[i]);  c[i] = g[i] + exp(y[i] - y[i+1]) * c[i+1]"
)
logcumsumexp_p.samples = [S((2, 4), axis=1), S((5,), axis=0)]

# --- running extremes -----------------------------------------------------------------------------


def _running(largest: bool) -> Any:
    best = np.maximum if largest else np.minimum

    def positions(xp: ModuleType, x: Array, *, axis: int) -> Array:
        # The last place so far with the extreme value; from the first NaN on, NaN counts as the extreme.
        reached = (x == best.accumulate(x, axis=axis)) | (x != x)  # noqa: PLR0124 - that is what NaN is
        steps = np.arange(x.shape[axis]).reshape((-1,) + (1,) * (x.ndim - 1 - axis))
        return np.maximum.accumulate(np.where(reached, steps, 0), axis=axis)

    name = "cummax_index" if largest else "cummin_index"
    return custom(
        name,
        positions,
        vjp=(None,),
        jvp=(None,),
        batch=shifted,
        shape=lambda x, *, axis: Aval(tuple(x.shape), np.dtype(np.int64)),
    ).describe(f"where the {'largest' if largest else 'smallest'} so far is", "none")


cummax_index_p = _running(largest=True)
cummin_index_p = _running(largest=False)

# --- public functions -----------------------------------------------------------------------------


def _flat_or_along(x: Array, dim: int | None) -> tuple[Array, int]:
    """NumPy's scans run over the flattened array when no axis is given."""
    if dim is None:
        return reshape_p(x, shape=(math.prod(x.shape),)), 0
    if not x.shape:
        return reshape_p(x, shape=(1,)), canonical_axis(dim, 0)
    return x, canonical_axis(dim, len(x.shape))


def cumsum(x: Array, dim: int | None = None, *, dtype: Any = None) -> Array:
    """y[i] = x[0] + ... + x[i] along `dim`, or over the flattened tensor.

    Example:
        >>> import glassgrad as gg
        >>> gg.tensor([1.0, 2.0, 3.0]).cumsum(0).tolist()
        [1.0, 3.0, 6.0]
    """
    flat, axis = _flat_or_along(x if dtype is None else astype(x, dtype), dim)
    return widened(_as_given(cumsum_p(flat, axis=axis, reverse=False), x), flat, dtype)


def cumprod(x: Array, dim: int | None = None, *, dtype: Any = None) -> Array:
    """y[i] = x[0] * ... * x[i] along `dim`, or over the flattened tensor. Zeros have exact derivatives."""
    flat, axis = _flat_or_along(x if dtype is None else astype(x, dtype), dim)
    return widened(_as_given(cumprod_p(flat, axis=axis), x), flat, dtype)


def logcumsumexp(x: Array, dim: int) -> Array:
    """y[i] = log(exp(x[0]) + ... + exp(x[i])) along `dim`, without overflow."""
    flat, axis = _flat_or_along(x, dim)
    return _as_given(logcumsumexp_p(flat, axis=axis), x)


def cummax(x: Array, dim: int) -> Extreme:
    """The largest element so far along `dim`, and where it is."""
    return _extremes_so_far(cummax_index_p, x, dim)


def cummin(x: Array, dim: int) -> Extreme:
    """The smallest element so far along `dim`, and where it is."""
    return _extremes_so_far(cummin_index_p, x, dim)


def _extremes_so_far(index_p: Any, x: Array, dim: int) -> Extreme:
    flat, axis = _flat_or_along(x, dim)
    index = index_p(flat, axis=axis)
    return Extreme(_as_given(take_along_axis_p(flat, index, axis=axis), x), _as_given(index, x))


def _as_given(y: Array, x: Array) -> Array:
    return y if x.shape else reshape_p(y, shape=())


def prod(x: Array, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Array:
    """Product over `dim` (an int, several, or None for all)."""
    x = x if dtype is None else astype(x, dtype)
    return widened(prod_p(x, axis=canonical_axes(dim, len(x.shape)), keepdims=keepdim), x, dtype)


@own_memory
def diff(x: Array, n: int = 1, dim: int = -1, prepend: Array | None = None, append: Array | None = None) -> Array:
    """x[i+1] - x[i] along `dim`, `n` times, after joining `prepend` and `append` to the ends of x."""
    axis = canonical_axis(dim, len(x.shape))
    if n < 0 or not x.shape:
        raise bad_option("diff", "n", n, "0 or more, of at least one dimension")
    if n == 0:
        return x
    parts = [part for part in (prepend, x, append) if part is not None]
    if len(parts) > 1:
        x = cat(parts, axis)
    for _ in range(min(n, x.shape[axis])):
        after, before = _along(x, axis, 1, None), _along(x, axis, None, x.shape[axis] - 1)
        x = ew.not_equal(after, before) if x.dtype.kind == "b" else after - before
    return x


def trapezoid(y: Array, x: Array | None = None, dx: float = 1.0, dim: int = -1) -> Array:
    """The integral along `dim` by the trapezoidal rule, over the points `x` or steps of `dx`."""
    pieces, axis = _trapezoids("trapezoid", y, x, dx, dim)
    return sum_p(pieces, axis=(axis,), keepdims=False) * 0.5


def cumulative_trapezoid(y: Array, x: Array | None = None, *, dx: float = 1.0, dim: int = -1) -> Array:
    """`trapezoid` up to each point after the first one: one element less along `dim`."""
    pieces, axis = _trapezoids("cumulative_trapezoid", y, x, dx, dim)
    return cumsum(pieces, axis) * 0.5


def _trapezoids(op: str, y: Array, x: Array | None, dx: float, dim: int) -> tuple[Array, int]:
    """Return twice the areas between neighbouring points, and the dimension."""
    axis = canonical_axis(dim, len(y.shape))
    middles = _along(y, axis, 1, None) + _along(y, axis, None, y.shape[axis] - 1)
    if x is None:
        return middles * dx, axis
    if x.shape[0 if len(x.shape) == 1 else axis] != y.shape[axis]:
        raise bad_option(op, "x", f"an array of shape {tuple(x.shape)}", f"{y.shape[axis]} points")
    steps = diff(x) if len(x.shape) == 1 else diff(x, dim=axis)
    if len(x.shape) == 1:
        steps = reshape_p(steps, shape=(-1,) + (1,) * (len(y.shape) - 1 - axis))
    return middles * steps, axis


all_take_complex(globals(), but=("cummax", "cummin"))
