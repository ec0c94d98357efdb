"""Activation functions: relu, sigmoid, gelu and relatives, each stable for inputs of any size.

Where PyTorch's function has a threshold against overflow, these use a form that needs none.
"""

from __future__ import annotations

import math
from types import ModuleType
from typing import Any

import numpy as np

from glassgrad.ops import elementwise as ew
from glassgrad.ops.axes import as_real
from glassgrad.ops.complex_input import takes_complex
from glassgrad.ops.core import Array, bad_option, canonical_axis, elementwise, select
from glassgrad.ops.elementwise import EDGES
from glassgrad.ops.kernels import channels
from glassgrad.ops.kernels.blocks import in_native_blocks
from glassgrad.ops.kernels.choose import choose, numbers_of, positive
from glassgrad.ops.samples import reals
from glassgrad.ops.shape import astype
from glassgrad.ops.special import erfc

_HALF = frozenset("e?bB")  # half precision, and the integers for which NumPy's exp returns half precision


def _choose(xp: ModuleType, mask: Array, a: Array, b: Array) -> Array:
    return choose(mask, a, b) if xp is np else xp.where(mask, a, b)


# --- smooth ---------------------------------------------------------------------------------------


@in_native_blocks
def _sigmoid(xp: ModuleType, x: Array) -> Array:
    # e / (1 + e) keeps the small values for very negative x. For large x, e is capped where the quotient rounds to 1,
    # so it cannot overflow; half precision overflows earlier.
    half = getattr(getattr(x, "dtype", None), "char", None) in _HALF
    e = xp.exp(xp.minimum(x, 11.0 if half else 40.0))
    return e / (1 + e)


@in_native_blocks
def _sigmoid_slope(y: Array, x: Array) -> Array:
    return y * (1 - y)


sigmoid = elementwise("sigmoid", _sigmoid, (_sigmoid_slope,), saves="y", takes_complex=True)
sigmoid.describe("1 / (1 + exp(-x))", "y * (1 - y)", reals(-4, 4), edge=EDGES)


softplus_p = elementwise(
    "softplus",
    in_native_blocks(lambda xp, x: xp.maximum(x, 0) + xp.log1p(xp.exp(-xp.abs(x)))),
    (in_native_blocks(lambda y, x: sigmoid(x)),),
    saves="x",
)
softplus_p.describe("log(1 + exp(x))", "sigmoid(x)", reals(-4, 4), edge=EDGES)
log_sigmoid = elementwise(
    "log_sigmoid",
    in_native_blocks(lambda xp, x: xp.minimum(x, 0) - xp.log1p(xp.exp(-xp.abs(x)))),
    (in_native_blocks(lambda y, x: sigmoid(-x)),),
    saves="x",
)
log_sigmoid.describe("log(1 / (1 + exp(-x)))", "sigmoid(-x)", reals(-4, 4), edge=EDGES)


@in_native_blocks
def _silu_slope(y: Array, x: Array) -> Array:
    s = sigmoid(x)
    return s * (1 + x * (1 - s))


silu = elementwise(
    "silu", in_native_blocks(lambda xp, x: x * sigmoid.within(xp, x)), (_silu_slope,), saves="x", takes_complex=True
)
silu.describe("x * sigmoid(x)", "s * (1 + x * (1 - s)), s = sigmoid(x)", reals(-4, 4), edge=EDGES)


@in_native_blocks
def _mish_slope(y: Array, x: Array) -> Array:
    inner = ew.tanh(softplus_p(x))
    return inner + x * sigmoid(x) * (1 - inner * inner)


mish = elementwise(
    "mish", in_native_blocks(lambda xp, x: x * xp.tanh(softplus_p.within(xp, x))), (_mish_slope,), saves="x"
)
mish.describe(
    "x * tanh(softplus(x))", "u + x * sigmoid(x) * (1 - u**2), u = tanh(softplus(x))", reals(-4, 4), edge=EDGES
)

_DENSITY = 1 / math.sqrt(2 * math.pi)
_TWICE_SLOPE = 2 * math.sqrt(2 / math.pi)
_CUBE = 0.044715  # Hendrycks and Gimpel, Gaussian Error Linear Units, 2016


@in_native_blocks
def _gelu(xp: ModuleType, x: Array) -> Array:
    return x * (0.5 * erfc.within(xp, x * -math.sqrt(0.5)))


@in_native_blocks
def _gelu_slope(y: Array, x: Array) -> Array:
    # Not y / x for Phi(x): the rule is differentiated in turn, and near 0 its digits cancel.
    u = x * -math.sqrt(0.5)
    return 0.5 * erfc(u) + x * (_DENSITY * ew.exp(-u * u))  # the same exponential as in erfc(u)


gelu_p = elementwise("gelu", _gelu, (_gelu_slope,), saves="x")
gelu_p.describe(
    "x * Phi(x), Phi the normal distribution function",
    "Phi(x) + x * exp(-x**2 / 2) / sqrt(2 * pi)",
    reals(-4, 4),
    edge=EDGES,
)


@in_native_blocks
def _gelu_tanh_slope(y: Array, x: Array) -> Array:
    s = sigmoid(_TWICE_SLOPE * (x + _CUBE * x * x * x))
    return s + x * s * (1 - s) * (_TWICE_SLOPE * (1 + 3 * _CUBE * x * x))


gelu_tanh_p = elementwise(
    "gelu_tanh",
    in_native_blocks(lambda xp, x: x * sigmoid.within(xp, _TWICE_SLOPE * (x + _CUBE * x * x * x))),
    (_gelu_tanh_slope,),
    saves="x",
)
gelu_tanh_p.describe(
    "x / 2 * (1 + u), u = tanh(sqrt(2 / pi) * (x + 0.044715 * x**3))",
    "(1 + u) / 2 + x / 2 * (1 - u**2) * sqrt(2 / pi) * (1 + 0.134145 * x**2)",
    reals(-4, 4),
    edge=EDGES,
    notes="gelu with approximate='tanh'; sigmoid(2 * u), which is (1 + tanh(u)) / 2, keeps its digits far to the left",
)

# --- with a kink ----------------------------------------------------------------------------------


def _relu(xp: ModuleType, x: Array) -> Array:
    if xp is not np:
        return xp.maximum(x, 0)
    found = channels.inside(x, x, 0.0, math.nan) if type(x) is np.ndarray and x.size >= channels.STEP_FROM else None
    return positive(x) if found is None else found


relu = elementwise(
    "relu",
    _relu,
    (select(lambda y, x: y <= 0, keep=False, natively=lambda c, y, x: channels.inside(c, y, 0.0, math.nan)),),
    saves="y",
)
relu.describe("max(x, 0)", "x > 0", reals(-3, 3, 0), edge=EDGES)


@in_native_blocks
def _leaky_relu(xp: ModuleType, x: Array, *, slope: Any) -> Array:
    # For a slope between 0 and 1 this is max(x, slope * x); a slope of 0 would give NaN at infinite x.
    between = isinstance(slope, float) and 0 < slope <= 1
    return xp.maximum(x, slope * x) if between else _choose(xp, x > 0, x, slope * x)


@in_native_blocks
def _leaky_relu_slope(y: Array, x: Array, *, slope: float) -> Array:
    return astype(numbers_of(x) > 0, x.dtype) * (1 - slope) + slope


leaky_relu_p = elementwise("leaky_relu", _leaky_relu, (_leaky_relu_slope,), saves="x", sample_params={"slope": 0.1})
leaky_relu_p.describe("x if x > 0 else slope * x", "1 if x > 0 else slope", reals(-3, 3, 0), edge=EDGES)


@in_native_blocks
def _elu_slope(y: Array, x: Array, *, alpha: float) -> Array:
    return ew.where(x > 0, 1.0, alpha * ew.exp(ew.minimum(x, 0.0)))


elu_p = elementwise(
    "elu",
    in_native_blocks(lambda xp, x, *, alpha: _choose(xp, x > 0, x, alpha * xp.expm1(xp.minimum(x, 0)))),
    (_elu_slope,),
    saves="x",
    sample_params={"alpha": 1.5},
)
elu_p.describe("x if x > 0 else alpha * (exp(x) - 1)", "1 if x > 0 else alpha * exp(x)", reals(-3, 3, 0), edge=EDGES)
hardtanh_p = elementwise(
    "hardtanh",
    ew._clip,
    (
        select(
            lambda y, x, *, low, high: ew.logical_or(x <= low, x >= high),
            keep=False,
            natively=lambda c, y, x, *, low, high: channels.inside(c, x, low, high),
        ),
    ),
    saves="x",
    sample_params={"low": -1.0, "high": 1.0},
)
hardtanh_p.describe("min(max(x, low), high)", "low < x < high", reals(-3, 3, -1, 1), edge=EDGES)


@in_native_blocks
def _hardswish_slope(y: Array, x: Array) -> Array:
    return ew.where(x >= 3, 1.0, ew.where(x <= -3, 0.0, x / 3 + 0.5))


hardswish = elementwise(
    "hardswish", in_native_blocks(lambda xp, x: x * xp.clip(x + 3, 0, 6) / 6), (_hardswish_slope,), saves="x"
)
hardswish.describe(
    "x * min(max(x + 3, 0), 6) / 6", "0 if x <= -3 else 1 if x >= 3 else x / 3 + 1/2", reals(-4, 4, -3, 3), edge=EDGES
)

# --- public functions -----------------------------------------------------------------------------


def softplus(x: Array, beta: float = 1.0, threshold: float | None = None) -> Array:
    """log(1 + exp(beta * x)) / beta, exact for x of any size.

    PyTorch returns x itself where beta * x > threshold, by default 20; this function does so only if a threshold is
    given.

    Example:
        >>> import glassgrad as gg
        >>> gg.softplus(gg.tensor([-1e4, 0.0, 1e4])).tolist()
        [0.0, 0.6931471824645996, 10000.0]
    """
    y = softplus_p(x) if beta == 1 else softplus_p(x * beta) / beta
    return y if threshold is None else ew.where(x * beta > threshold, x, y)


def gelu(x: Array, approximate: str = "none") -> Array:
    """Gaussian error linear unit, x * Phi(x); `approximate="tanh"` is the formula of GPT-2."""
    if approximate not in {"none", "tanh"}:
        raise bad_option("gelu", "approximate", approximate, "'none' or 'tanh'")
    return gelu_p(x) if approximate == "none" else gelu_tanh_p(x)


def leaky_relu(x: Array, negative_slope: float = 0.01) -> Array:
    """x where it is positive, else `negative_slope` * x."""
    return leaky_relu_p(x, slope=float(negative_slope))


def prelu(x: Array, weight: Array) -> Array:
    """Leaky relu with a learned slope: one, or one for each channel (dimension 1)."""
    if math.prod(weight.shape) == 1:
        weight = weight.reshape(())  # so that it also broadcasts against a scalar
    elif len(x.shape) > 1:
        weight = weight.reshape(weight.shape[0], *(1,) * (len(x.shape) - 2))
    return ew.where(x > 0, x, weight * x)


def elu(x: Array, alpha: float = 1.0) -> Array:
    """x where it is positive, else alpha * (exp(x) - 1)."""
    return elu_p(x, alpha=float(alpha))


def celu(x: Array, alpha: float = 1.0) -> Array:
    """x where it is positive, else alpha * (exp(x / alpha) - 1)."""
    return ew.where(x > 0, x, alpha * ew.expm1(ew.where(x > 0, 0.0, x) / alpha))


def selu(x: Array) -> Array:
    """Scaled elu, whose fixed point has mean 0 and variance 1 (Klambauer et al. 2017)."""
    return 1.0507009873554804934193349852946 * elu_p(x, alpha=1.6732632423543772848170429916717)


def hardtanh(x: Array, min_val: float = -1.0, max_val: float = 1.0) -> Array:
    """x limited to [min_val, max_val]; unlike `clip` it has no gradient at the bounds themselves."""
    if x.dtype.kind in "iu":
        return ew.minimum(ew.maximum(x, int(min_val)), int(max_val))
    return hardtanh_p(x, low=float(min_val), high=float(max_val))


def relu6(x: Array) -> Array:
    """x limited to [0, 6]."""
    return hardtanh(x, 0, 6)


def hardsigmoid(x: Array) -> Array:
    """x / 6 + 1/2 limited to [0, 1]."""
    return hardtanh_p(x + 3, low=0.0, high=6.0) / 6


@takes_complex
def softsign(x: Array) -> Array:
    """x / (1 + |x|)."""
    return x / (1 + ew.abs(x))


@takes_complex
def tanhshrink(x: Array) -> Array:
    """x - tanh(x)."""
    return x - ew.tanh(x)


def softshrink(x: Array, lambd: float = 0.5) -> Array:
    """x moved towards 0 by `lambd`; 0 where |x| <= `lambd`."""
    return ew.where(x > lambd, x - lambd, ew.where(x < -lambd, x + lambd, 0 * x))


def hardshrink(x: Array, lambd: float = 0.5) -> Array:
    """x where |x| > `lambd`, else 0."""
    return ew.where(ew.abs(x) <= lambd, 0.0, x)


def threshold(x: Array, threshold: float, value: float) -> Array:
    """x where it is above `threshold`, else `value`."""
    return ew.where(x <= threshold, value, x)


def glu(x: Array, dim: int = -1) -> Array:
    """a * sigmoid(b), where a and b are the halves of x along `dim` (Dauphin et al. 2016)."""
    axis = canonical_axis(dim, len(x.shape))
    size = x.shape[axis] if x.shape else 1
    if size % 2:
        raise bad_option("glu", f"size of dim {dim}", size, "an even size")
    lead = (slice(None),) * axis
    return x[(*lead, slice(0, size // 2))] * sigmoid(x[(*lead, slice(size // 2, size))])


def logit(x: Array, eps: float | None = None) -> Array:
    """log(x / (1 - x)); with `eps`, x is limited to [eps, 1 - eps] first."""
    if eps is not None:
        x = ew.clip_p(x, low=eps, high=1 - eps)
    x = as_real(x)
    y = ew.log(x) - ew.log1p(-x)
    # Outside [0, 1] the derivatives of the two logarithms are finite, but the function is undefined.
    return y * ew.where(ew.logical_or(x < 0, x > 1), y.dtype.type(math.nan), y.dtype.type(1)) if eps is None else y
