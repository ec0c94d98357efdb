"""Reductions: sum, mean, var, max, logsumexp and the functions composed of them.

Primitives take canonical axes (sorted, non-negative); the public functions below take PyTorch's `dim`
and `keepdim` or NumPy's `axis` and `keepdims`.
"""

from __future__ import annotations

import math
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from glassgrad.ops import elementwise as ew
from glassgrad.ops.axes import Axes, as_real, count, like_one_element, reduced_shape, restore, spread, summed, widened
from glassgrad.ops.complex_input import takes_complex
from glassgrad.ops.complexes import _squared_size, is_complex, real
from glassgrad.ops.core import Array, canonical_axes, canonical_axis, custom, fused, linear
from glassgrad.ops.kernels import softmaxes, sums
from glassgrad.ops.kernels.choose import add_over, all_over, max_along, min_along
from glassgrad.ops.kernels.parts import along_last, pays
from glassgrad.ops.samples import S, distinct
from glassgrad.ops.shape import astype, reshape_p

_ndarray, _SUM_FROM = np.ndarray, sums.FROM

# --- primitives -----------------------------------------------------------------------------------


def _sum(xp: ModuleType, x: Array, *, axis: Axes, keepdims: bool) -> Array:
    # NumPy widens small integers by itself; floats keep their dtype.
    if xp is np:
        small = type(x) is not _ndarray or x.size < _SUM_FROM  # a call would take a third of the time of a small sum
        return add_over(x, axis, None, None, keepdims) if small else sums.over(x, axis, keepdims)
    return xp.sum(x, axis=axis, keepdims=keepdims)


REDUCTION_SAMPLES = (
    S((2, 3), axis=(0, 1), keepdims=False),
    S((2, 3, 2), axis=(1,), keepdims=True),
    S((2, 3, 2), axis=(0, 2), keepdims=False),
    S((), axis=(), keepdims=False),
)


sum_p = linear("sum", _sum, (lambda g, x, *, axis, keepdims: spread(g, x.shape, axis, keepdims),), shape=summed)
sum_p.describe("sum of x over axes", "broadcast g")
sum_p.samples = REDUCTION_SAMPLES


def _extreme_share(y: Array, x: Array, axis: Axes, keepdims: bool) -> Array:
    """1/k at each of the k places where x reaches the extreme, 0 elsewhere."""
    mask = astype(x == restore(y, x.shape, axis, keepdims), x.dtype)
    if type(mask) is np.ndarray:
        mask /= sums.over(mask, axis, True)
        return mask
    return mask / sum_p(mask, axis=axis, keepdims=True)


def _extreme(name: str, formula: str) -> Any:
    along = max_along if name == "max" else min_along

    def forward(xp: ModuleType, x: Array, *, axis: Axes, keepdims: bool) -> Array:
        if xp is np:
            return along(x, axis, keepdims)
        return getattr(xp, name)(x, axis=axis, keepdims=keepdims)

    prim = custom(
        name,
        forward,
        vjp=(lambda g, y, x, **how: restore(g, x.shape, **how) * _extreme_share(y, x, **how),),
        jvp=(lambda t, y, x, **how: sum_p(t * _extreme_share(y, x, **how), **how),),
        saves=("x", "y"),
        shape=reduced_shape,
    )
    prim.describe(formula, "g at the extreme, shared equally on ties")
    prim.samples = [S(distinct(2, 3), axis=(0, 1), keepdims=False), S(distinct(2, 3, 2), axis=(1,), keepdims=True)]
    return prim


max_p = _extreme("max", "largest x over axes")
min_p = _extreme("min", "smallest x over axes")


def _logsumexp(xp: ModuleType, x: Array, *, axis: Axes, keepdims: bool) -> Array:
    if not count(x.shape, axis):
        return xp.full(reduced_shape(x, axis=axis, keepdims=keepdims), -math.inf, dtype=x.dtype)
    if xp is np:
        top: Any = max_along(x, axis)
        if all_over(np.isfinite(top), None):  # else handle them one by one
            y = np.log(sums.over(np.exp(x - top), axis, True)) + top
            return y if keepdims else y.reshape(reduced_shape(x, axis=axis, keepdims=False))
    top = xp.max(x, axis=axis, keepdims=True)
    shift = xp.where(xp.isfinite(top), top, 0)
    total = xp.sum(xp.exp(x - shift), axis=axis, keepdims=True)
    with np.errstate(divide="ignore"):  # the log of an empty sum is -inf on purpose
        y = xp.log(total) + shift
    return y if keepdims else xp.reshape(y, reduced_shape(x, axis=axis, keepdims=False))


def _lse_weights(y: Array, x: Array, axis: Axes, keepdims: bool) -> Array:
    """softmax(x), with 0 instead of NaN where every x is -inf."""
    full = restore(y, x.shape, axis, keepdims)
    if type(full) is np.ndarray and all_over(np.isfinite(full), None):
        return np.exp(x - full)
    return ew.exp(x - ew.where(full == -math.inf, 0, full))


logsumexp_p = custom(
    "logsumexp",
    _logsumexp,
    vjp=(lambda g, y, x, *, axis, keepdims: restore(g, x.shape, axis, keepdims) * _lse_weights(y, x, axis, keepdims),),
    jvp=(
        lambda t, y, x, *, axis, keepdims: sum_p(t * _lse_weights(y, x, axis, keepdims), axis=axis, keepdims=keepdims),
    ),
    saves=("x", "y"),
    shape=reduced_shape,
)
logsumexp_p.describe("log(sum(exp(x)))", "softmax(x)")
logsumexp_p.samples = REDUCTION_SAMPLES


def _softmax(xp: ModuleType, x: Array, *, axis: int) -> Array:
    if not x.shape[axis]:
        return xp.zeros_like(x)
    if xp is np:
        if pays(x) and (found := along_last(_softmax_of_rows, axis, x)) is not None:
            return found
        return softmaxes.softmax(x, axis)
    y = x - xp.max(x, axis=axis, keepdims=True)
    y = xp.exp(y)
    return y / xp.sum(y, axis=axis, keepdims=True)


def _softmax_rule(c: Array, y: Array, x: Array, *, axis: int) -> Array:
    # The Jacobian diag(y) - y yT is symmetric, so vjp and jvp are the same function.
    if pays(c) and (found := along_last(_softmax_of_rows_rule, axis, c, y)) is not None:
        return found
    if type(c) is np.ndarray and type(y) is np.ndarray:
        return softmaxes.softmax_rule(c, y, axis)
    scaled = c * y
    return scaled - y * sum_p(scaled, axis=(axis,), keepdims=True)


def _softmax_of_rows(x: Array) -> tuple[Array]:
    return (softmax_p(x, axis=1),)


def _softmax_of_rows_rule(c: Array, y: Array) -> tuple[Array]:
    return (_softmax_rule(c, y, None, axis=1),)


_ALONG = (S((2, 4), axis=1), S((3, 2, 2), axis=0))

softmax_p = custom(
    "softmax", _softmax, vjp=(_softmax_rule,), jvp=(_softmax_rule,), saves="y", shape=lambda x, *, axis: x.shape
)
softmax_p.describe("exp(x) / sum(exp(x))", "y * (g - sum(g * y))")
softmax_p.samples = _ALONG


def _log_softmax(xp: ModuleType, x: Array, *, axis: int) -> Array:
    if not x.shape[axis]:
        return xp.zeros_like(x)
    if xp is np:
        if pays(x) and (found := along_last(_log_softmax_of_rows, axis, x)) is not None:
            return found
        return softmaxes.log_softmax(x, axis)
    shifted = x - xp.max(x, axis=axis, keepdims=True)
    return shifted - xp.log(xp.sum(xp.exp(shifted), axis=axis, keepdims=True))


def _log_softmax_vjp(g: Array, y: Array, x: Array, *, axis: int) -> Array:
    if pays(g) and (found := along_last(_log_softmax_of_rows_vjp, axis, g, y)) is not None:
        return found
    if type(g) is np.ndarray and type(y) is np.ndarray:
        return softmaxes.log_softmax_vjp(g, y, axis)
    return g - ew.exp(y) * sum_p(g, axis=(axis,), keepdims=True)


def _log_softmax_of_rows(x: Array) -> tuple[Array]:
    return (log_softmax_p(x, axis=1),)


def _log_softmax_of_rows_vjp(g: Array, y: Array) -> tuple[Array]:
    return (_log_softmax_vjp(g, y, None, axis=1),)


log_softmax_p = custom(
    "log_softmax",
    _log_softmax,
    vjp=(_log_softmax_vjp,),
    jvp=(lambda t, y, x, *, axis: t - sum_p(t * ew.exp(y), axis=(axis,), keepdims=True),),
    saves="y",
    shape=lambda x, *, axis: x.shape,
)
log_softmax_p.describe("x - logsumexp(x)", "g - softmax(x) * sum(g)")
log_softmax_p.samples = _ALONG


# --- fused: variance ------------------------------------------------------------------------------


def _weight_in_variance(x: Array, axis: Axes, correction: Any) -> float:
    left = count(x.shape, axis) - correction
    return 1 / left if left > 0 else math.inf  # as in PyTorch: nothing is known of the variance


def _weighted(x: Array, weight: float) -> Array:
    if math.isfinite(weight):
        return x * weight
    with np.errstate(invalid="ignore"):  # 0 * inf is the NaN that 0 / 0 is
        return x * weight


def _var(xp: ModuleType, x: Array, *, axis: Axes, keepdims: bool, correction: Any) -> tuple[Array, Array]:
    share = x.dtype.type(1 / (count(x.shape, axis) or math.nan))
    mean: Any = sums.over(x, axis, True) * share
    centred = x - mean
    rest = sums.over(centred, axis, True) * share  # what rounding has left out of the mean
    centred = x - (mean + rest)
    centred *= centred
    total = sums.over(centred, axis, keepdims)
    return _weighted(total, x.dtype.type(_weight_in_variance(x, axis, correction))), mean


def _var_vjp(
    g: Array, needs: Any, mean: Array, x: Array, *, axis: Axes, keepdims: bool, correction: Any
) -> tuple[Array]:
    # The mean moves with x, but the deviations from it sum to 0.
    dx = x - mean
    weight = x.dtype.type(2 * _weight_in_variance(x, axis, correction))
    if math.isfinite(weight):  # the smaller factors first
        return (dx * (restore(g, x.shape, axis, keepdims) * weight),)
    return (_weighted(dx * restore(g, x.shape, axis, keepdims), weight),)


def _var_decomposed(x: Array, *, axis: Axes, keepdims: bool, correction: Any) -> Array:
    centred = x - mean(x, axis, True)
    total = sum_p(_squared_size(centred), axis=axis, keepdims=keepdims)
    return _weighted(total, _weight_in_variance(x, axis, correction))


var_p = fused("var", _var, joint_vjp=_var_vjp, decompose=_var_decomposed)
var_p.describe("sum((x - mean(x))**2) / (n - correction)", "2 * (x - mean(x)) / (n - correction)")
var_p.samples = [
    S((2, 3), axis=(0, 1), keepdims=False, correction=1),
    S((2, 3, 2), axis=(1,), keepdims=True, correction=0),
]

# --- positions and truth --------------------------------------------------------------------------


def _without_slope(name: str, formula: str, takes_complex: bool = False, forward: Any = None) -> Any:
    return custom(
        name,
        forward or (lambda xp, x, *, axis, keepdims: getattr(xp, name)(x, axis=axis, keepdims=keepdims)),
        vjp=(None,),
        jvp=(None,),
        takes_complex=takes_complex,
    ).describe(formula, "none")


def _by_method(name: str) -> Any:
    """Return a forward that calls an array's own method: half the time of NumPy's function."""
    method = getattr(np.ndarray, name)

    def forward(xp: ModuleType, x: Array, *, axis: int | None, keepdims: bool) -> Array:
        find = method if type(x) is np.ndarray else getattr(xp, name)
        return find(x, axis=axis, keepdims=keepdims)

    return forward


argmax_p = _without_slope("argmax", "index of the maximum", forward=_by_method("argmax"))
argmin_p = _without_slope("argmin", "index of the minimum", forward=_by_method("argmin"))
all_p = _without_slope("all", "all of x over axes", takes_complex=True)
any_p = _without_slope("any", "any of x over axes", takes_complex=True)

# --- public functions -----------------------------------------------------------------------------


class Extreme(NamedTuple):
    """The result of `max(dim=...)`, `min(dim=...)`, `sort` and `topk`."""

    values: Any
    indices: Any


@takes_complex
def sum(x: Array, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Array:
    """Sum over `dim` (an int, several, or None for all).

    Example:
        >>> import glassgrad as gg
        >>> gg.ones(2, 3).sum(dim=1).tolist()
        [3.0, 3.0]
    """
    if dtype is not None:
        x = astype(x, dtype)
    return widened(sum_p(x, axis=canonical_axes(dim, len(x.shape)), keepdims=keepdim), x, dtype)


@takes_complex
def mean(x: Array, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Array:
    """Arithmetic mean over `dim`; NaN if there are no elements."""
    if dtype is not None:
        x = astype(x, dtype)
    shape = x.shape
    axes = canonical_axes(dim, len(shape))
    total = count(shape, axes)
    return sum_p(x, axis=axes, keepdims=keepdim) / (total or math.nan)


_PLAIN_NUMBERS = (int, float)


def _correction(dim: Any, correction: Any, unbiased: bool | None) -> tuple[Any, Any]:
    """Read PyTorch's older forms: var(False), var(dim, False), var(dim, unbiased=False)."""
    if isinstance(dim, bool):
        return None, int(dim)
    if correction is None:
        correction = 1
    return dim, correction if unbiased is None else int(unbiased)


@takes_complex
def var(
    x: Array, dim: Any = None, correction: Any = 1, keepdim: bool = False, *, unbiased: bool | None = None
) -> Array:
    """Variance over `dim`, the sum of squares divided by n - `correction`.

    The default correction is 1 (Bessel), as in PyTorch. `unbiased=False`, or False instead of `correction`, means 0.
    """
    dim, correction = _correction(dim, correction, unbiased)
    axes = canonical_axes(dim, len(x.shape))
    if x.dtype.kind in "fV" and type(correction) in _PLAIN_NUMBERS:
        return var_p(x, axis=axes, keepdims=keepdim, correction=correction)
    return _var_decomposed(x, axis=axes, keepdims=keepdim, correction=correction)


@takes_complex
def std(
    x: Array, dim: Any = None, correction: Any = 1, keepdim: bool = False, *, unbiased: bool | None = None
) -> Array:
    """Standard deviation, the square root of `var`; its gradient is 0 where it is 0."""
    return ew.root_p(var(x, dim, correction, keepdim, unbiased=unbiased))


@takes_complex
def var_mean(
    x: Array, dim: Any = None, correction: Any = 1, keepdim: bool = False, *, unbiased: bool | None = None
) -> tuple[Array, Array]:
    """Variance and mean over `dim`; see `var`."""
    dim, correction = _correction(dim, correction, unbiased)
    return var(x, dim, correction, keepdim), mean(x, dim, keepdim)


@takes_complex
def std_mean(
    x: Array, dim: Any = None, correction: Any = 1, keepdim: bool = False, *, unbiased: bool | None = None
) -> tuple[Array, Array]:
    """Standard deviation and mean over `dim`; see `var`."""
    dim, correction = _correction(dim, correction, unbiased)
    return std(x, dim, correction, keepdim), mean(x, dim, keepdim)


def nansum(x: Array, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Array:
    """Sum over `dim` of the elements that are not NaN."""
    return sum(ew.where(ew.isnan(x), 0, x), dim, keepdim, dtype=dtype)


def nanmean(x: Array, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Array:
    """Mean over `dim` of the elements that are not NaN; NaN where there are none."""
    valid = sum(astype(ew.logical_not(ew.isnan(x)), x.dtype), dim, keepdim)
    return nansum(x, dim, keepdim, dtype=dtype) / valid


def argmax(x: Array, dim: int | None = None, keepdim: bool = False) -> Array:
    """Index of the largest element along `dim`, or in the flattened array without it; no gradient."""
    return argmax_p(x, axis=None if dim is None else canonical_axis(dim, len(x.shape)), keepdims=keepdim)


def argmin(x: Array, dim: int | None = None, keepdim: bool = False) -> Array:
    """Index of the smallest element along `dim`, or in the flattened array without it; no gradient."""
    return argmin_p(x, axis=None if dim is None else canonical_axis(dim, len(x.shape)), keepdims=keepdim)


@takes_complex
def all(x: Array, dim: Any = None, keepdim: bool = False) -> Array:
    """Whether all elements are true; with `dim=()`, whether each is."""
    if isinstance(dim, tuple | list) and not dim:
        return ew.not_equal(x, 0)
    return all_p(x, axis=canonical_axes(dim, len(x.shape)), keepdims=keepdim)


@takes_complex
def any(x: Array, dim: Any = None, keepdim: bool = False) -> Array:
    """Whether any element is true; with `dim=()`, whether each is."""
    if isinstance(dim, tuple | list) and not dim:
        return ew.not_equal(x, 0)
    return any_p(x, axis=canonical_axes(dim, len(x.shape)), keepdims=keepdim)


def amax(x: Array, dim: Any = None, keepdim: bool = False) -> Array:
    """Largest element over `dim`; ties share the gradient equally."""
    return max_p(x, axis=canonical_axes(dim, len(x.shape)), keepdims=keepdim)


def amin(x: Array, dim: Any = None, keepdim: bool = False) -> Array:
    """Smallest element over `dim`; ties share the gradient equally."""
    return min_p(x, axis=canonical_axes(dim, len(x.shape)), keepdims=keepdim)


@like_one_element
def _extreme_along(x: Array, dim: int, keepdim: bool, arg: Any) -> Any:
    from glassgrad.ops.index import take_along_axis_p

    axis = canonical_axis(dim, len(x.shape))
    indices = arg(x, axis, True)
    values = take_along_axis_p(x, indices, axis=axis)
    if keepdim:
        return Extreme(values, indices)
    shape = reduced_shape(x, axis=(axis,), keepdims=False)
    return Extreme(reshape_p(values, shape=shape), reshape_p(indices, shape=shape))


def max(x: Array, dim: Any = None, keepdim: bool = False, *, other: Any = None) -> Any:
    """Largest element of all; with an int `dim`, `(values, indices)` along it; with a tensor, `maximum`."""
    if isinstance(dim, int | np.integer):  # a NumPy integer has a shape, too
        return _extreme_along(x, int(dim), keepdim, argmax)
    if other is None and not hasattr(dim, "shape"):
        return amax(x, dim, keepdim)
    return ew.maximum(x, dim if other is None else other)


def min(x: Array, dim: Any = None, keepdim: bool = False, *, other: Any = None) -> Any:
    """Smallest element of all; with an int `dim`, `(values, indices)` along it; with a tensor, `minimum`."""
    if isinstance(dim, int | np.integer):  # a NumPy integer has a shape, too
        return _extreme_along(x, int(dim), keepdim, argmin)
    if other is None and not hasattr(dim, "shape"):
        return amin(x, dim, keepdim)
    return ew.minimum(x, dim if other is None else other)


def aminmax(x: Array, dim: Any = None, keepdim: bool = False) -> tuple[Array, Array]:
    """The smallest and the largest element over `dim`."""
    return amin(x, dim, keepdim), amax(x, dim, keepdim)


@takes_complex
def logsumexp(x: Array, dim: Any = None, keepdim: bool = False) -> Array:
    """log(sum(exp(x))) over `dim`, without overflow; -inf where every element is -inf."""
    x, axis = as_real(x), canonical_axes(dim, len(x.shape))
    if is_complex(x):
        return _complex_logsumexp(x, axis, keepdim)
    return logsumexp_p(x, axis=axis, keepdims=keepdim)


def _complex_logsumexp(x: Array, axis: Axes, keepdim: bool) -> Array:
    """Shift by the largest real part, as in PyTorch; it is rounded to an integer and so has no gradient."""
    if not count(x.shape, axis):
        return sum_p(x, axis=axis, keepdims=keepdim) - math.inf
    top = ew.floor(max_p(real(x), axis=axis, keepdims=True))
    shift = ew.where(ew.isinf(top), 0.0, top)
    total = sum_p(ew.exp(x - shift), axis=axis, keepdims=True)
    with np.errstate(divide="ignore"):  # as above
        y = ew.log(total) + shift
    return y if keepdim else reshape_p(y, shape=reduced_shape(x, axis=axis, keepdims=False))


def _softmax_input(x: Array, dtype: Any) -> Array:
    """Convert the input to `dtype`; complex numbers lose their imaginary part in a real dtype, as in PyTorch."""
    return as_real(x) if dtype is None else astype(real(x) if np.dtype(dtype).kind != "c" else x, dtype)


@takes_complex
@like_one_element
def softmax(x: Array, dim: int = -1, dtype: Any = None) -> Array:
    """exp(x) / sum(exp(x)) along `dim`."""
    return softmax_p(_softmax_input(x, dtype), axis=canonical_axis(dim, len(x.shape)))


@takes_complex
def softmin(x: Array, dim: int = -1, dtype: Any = None) -> Array:
    """softmax(-x) along `dim`."""
    return softmax(ew.negative(as_real(x)), dim, dtype=dtype)


@takes_complex
@like_one_element
def log_softmax(x: Array, dim: int = -1, dtype: Any = None) -> Array:
    """x - logsumexp(x) along `dim`."""
    return log_softmax_p(_softmax_input(x, dtype), axis=canonical_axis(dim, len(x.shape)))
