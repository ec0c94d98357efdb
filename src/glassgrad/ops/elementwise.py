"""Elementwise primitives: arithmetic, selection, exponentials, trigonometry, rounding, comparisons.

Each entry states the function and its local derivatives; everything else is derived from them.
Edge cases follow NumPy and PyTorch; where the two disagree, the entry says so in `notes`.
"""

from __future__ import annotations

import math
from types import ModuleType
from typing import Any

import numpy as np

from glassgrad.ops.complex_input import complex_dtype
from glassgrad.ops.complexes import conj_p, real
from glassgrad.ops.core import REGISTRY, Array, Elementwise, Rule, elementwise, select
from glassgrad.ops.kernels.blocks import in_blocks, in_native_blocks, natively
from glassgrad.ops.kernels.choose import choose
from glassgrad.ops.kernels.logarithms import log_of_two
from glassgrad.ops.samples import Domain, booleans, reals

_inf = float("inf")
_nan = float("nan")
_LN2 = math.log(2.0)
_LN10 = math.log(10.0)
EDGES = (0.0, -0.0, 1.0, -1.0, 1e3, -1e3, 1e-30, _inf, -_inf, _nan)


def _smooth(name: str, forward: str, slope: Rule, saves: str, native: bool = False) -> Elementwise:
    """Declare a NumPy function of one argument that also takes complex numbers."""
    return elementwise(name, forward, (slope,), saves=saves, takes_complex=True, native=native)


# --- arithmetic -----------------------------------------------------------------------------------

add = elementwise("add", "add", (1, 1), takes_complex=True)
add.describe("a + b", "1, 1", reals(-3, 3), reals(-3, 3), edge=EDGES)
subtract = elementwise("subtract", "subtract", (1, -1), takes_complex=True)
subtract.describe("a - b", "1, -1", reals(-3, 3), reals(-3, 3), edge=EDGES)
multiply = elementwise("multiply", "multiply", (lambda y, a, b: b, lambda y, a, b: a), saves="x", takes_complex=True)
multiply.describe("a * b", "b, a", reals(-3, 3), reals(-3, 3), edge=EDGES)
divide = elementwise(
    "divide",
    "divide",
    saves="x",
    partials=(in_native_blocks(lambda y, a, b: reciprocal(b)), in_native_blocks(lambda y, a, b: -(a / b) / b)),
    takes_complex=True,
)
divide.describe("a / b", "1 / b, -a / b**2", reals(-3, 3), reals(0.3, 3), edge=EDGES)
negative = elementwise("negative", "negative", (-1,), takes_complex=True)
negative.describe("-x", "-1", reals(-3, 3), edge=EDGES)
remainder = elementwise(
    "remainder", "remainder", (1, in_native_blocks(lambda y, a, b: -floor_divide(a, b))), saves="x", native=True
)
remainder.describe("a - floor(a / b) * b", "1, -floor(a / b)", reals(0.1, 0.9), reals(1.1, 3))
reciprocal: Elementwise = elementwise(
    "reciprocal", lambda xp, x: 1 / x, (in_native_blocks(lambda y, x: -y * y),), saves="y", takes_complex=True
)
reciprocal.describe("1 / x", "-y**2", reals(0.3, 3), edge=EDGES)
square = _smooth("square", "square", in_native_blocks(lambda y, x: 2 * x), saves="x")
square.describe("x**2", "2 * x", reals(-3, 3), edge=EDGES)


def _power_base(y: Array, a: Array, b: Array) -> Array:
    # b * a**(b-1), and 0 where b is 0, also at a = 0 where the product would be 0 * inf.
    if isinstance(b, int | float):
        return b * power(a, b - 1) if b != 0 else where(a == a, 0, a)  # noqa: PLR0124 - 0, and NaN for NaN
    return where(b == 0, 0, b * power(a, b - 1))


def _power_exponent(y: Array, a: Array, b: Array) -> Array:
    # a**b * log(a), and 0 where a is 0 and b is not negative: the limit from above.
    zero = logical_and(a == 0, _real_part(b) >= 0)
    base: Any = where(zero, 1, a)
    if complex_dtype((b,)) is not None:
        base = base - 0j  # so that the logarithm of a negative number is complex; an imaginary -0.0 stays unchanged
    return where(zero, 0, power(a, b) * log(base))


def _real_part(x: Array) -> Array:
    return real(x) if complex_dtype((x,)) is not None else x


power = elementwise(
    "power",
    lambda xp, a, b: xp.power(a, b) if not isinstance(b, int | float) else a**b,
    (_power_base, _power_exponent),
    saves="x",
    takes_complex=True,
)
power.describe(
    "a ** b", "b * a**(b-1), a**b * log(a)", reals(0.3, 3), reals(-2, 3), edge=(0.0, 0.5, 1.0, 2.0, 3.0, _inf, _nan)
)

fmod = elementwise("fmod", "fmod", (1, in_native_blocks(lambda y, a, b: -trunc(a / b))), saves="x")
fmod.describe("a - trunc(a / b) * b", "1, -trunc(a / b)", reals(0.1, 0.9), reals(1.1, 3), edge=EDGES)
copysign = elementwise(
    "copysign", "copysign", (in_native_blocks(lambda y, a, b: sign(a) * sign(y)), 0), saves=("x", "y"), native=True
)
copysign.describe("|a| with the sign of b", "sign(a) * sign(y), 0", reals(-3, 3, 0), reals(-3, 3, 0), edge=EDGES)
hypot = elementwise(
    "hypot",
    "hypot",
    (in_native_blocks(lambda y, a, b: _ratio(a, y)), in_native_blocks(lambda y, a, b: _ratio(b, y))),
    saves=("x", "y"),
    native=True,
)
hypot.describe("sqrt(a**2 + b**2)", "a / y, b / y; 0 at the origin", reals(0.3, 3), reals(-3, 3), edge=EDGES)


def _ratio(a: Array, b: Array) -> Array:
    """a / b, and 0 where b is 0."""
    zero = b == 0
    return where(zero, 0.0, a / where(zero, 1.0, b))


@in_native_blocks
def _lerp(xp: ModuleType, a: Array, b: Array, weight: Array) -> Array:
    # Two formulas, so that both ends are exact.
    d = b - a
    return xp.where(xp.abs(weight) < 0.5, a + weight * d, b - (1 - weight) * d)


lerp = elementwise(
    "lerp",
    _lerp,
    saves="x",
    partials=(
        in_native_blocks(lambda y, a, b, w: 1 - w),
        lambda y, a, b, w: w,
        in_native_blocks(lambda y, a, b, w: b - a),
    ),
    takes_complex=True,
)
lerp.describe("a + w * (b - a)", "1 - w, w, b - a", reals(-3, 3), reals(-3, 3), reals(0, 1))

# --- selection ------------------------------------------------------------------------------------


def _where(xp: ModuleType, c: Array, a: Array, b: Array) -> Array:
    return choose(c, a, b) if xp is np else xp.where(c, a, b)


where = elementwise(
    "where",
    _where,
    (None, select(lambda y, c, a, b: c), select(lambda y, c, a, b: c, keep=False)),
    saves_to=1,
    takes_complex=True,
)
where.describe("a if c else b", "-, c, not c", booleans, reals(-3, 3), reals(-3, 3))


def _larger(a: Array, b: Array) -> Array:
    # On ties each argument gets half of the gradient. NaN compares false, so both get all of it.
    if type(a) is type(b) is np.ndarray and a.dtype == b.dtype:
        # The same formula as below, without branches and in the dtype of the arguments.
        half = (a <= b).astype(a.dtype)
        half += a < b
        half *= -0.5
        half += 1
        return half
    return where(a == b, 0.5, where(a < b, 0.0, 1.0))


_LARGER = (in_blocks(lambda y, a, b: _larger(a, b)), in_blocks(lambda y, a, b: _larger(b, a)))

maximum = elementwise("maximum", "maximum", _LARGER, saves="x")
maximum.describe("max(a, b)", "a > b, b > a; halves on ties", reals(-3, 0), reals(0.1, 3), edge=EDGES)
minimum = elementwise("minimum", "minimum", _LARGER[::-1], saves="x")
minimum.describe("min(a, b)", "a < b, b < a; halves on ties", reals(-3, 0), reals(0.1, 3), edge=EDGES)

fmax = elementwise(
    "fmax",
    "fmax",
    (
        select(lambda y, a, b: logical_or(a >= b, isnan(b))),
        select(lambda y, a, b: logical_or(a >= b, isnan(b)), keep=False),
    ),
    saves="x",
)
fmax.describe("max(a, b), ignoring a NaN", "a >= b, a < b", reals(-3, 0), reals(0.1, 3), edge=EDGES)
fmin = elementwise(
    "fmin",
    "fmin",
    (
        select(lambda y, a, b: logical_or(a <= b, isnan(b))),
        select(lambda y, a, b: logical_or(a <= b, isnan(b)), keep=False),
    ),
    saves="x",
)
fmin.describe("min(a, b), ignoring a NaN", "a <= b, a > b", reals(-3, 0), reals(0.1, 3), edge=EDGES)


def _heaviside(xp: ModuleType, a: Array, b: Array) -> Array:
    y = xp.heaviside(a, b)
    if xp is not np:
        return y
    wanted = np.result_type(a, b)  # NumPy's function returns floats
    return y if wanted.kind in "fV" else y.astype(wanted)


heaviside = elementwise("heaviside", _heaviside, (0, select(lambda y, a, b: a == 0)), saves="x")
heaviside.describe(
    "0 if a < 0, b if a == 0, else 1",
    "0, a == 0",
    reals(-3, 3, 0),
    reals(-3, 3),
    edge=EDGES,
    notes="of integers an integer, as in PyTorch",
)


def _inside(y: Array, x: Array, *, low: float | None, high: float | None) -> Array:
    if low is None:
        return x <= high
    return x >= low if high is None else logical_and(x >= low, x <= high)


def _clip(xp: ModuleType, x: Array, *, low: Any, high: Any) -> Array:
    return xp.clip(x, low, high)


clip_p = elementwise("clip", _clip, (select(_inside),), saves="x", sample_params={"low": -1.0, "high": 1.0})
clip_p.describe("min(max(x, low), high)", "low <= x <= high", reals(-3, 3, -1, 1), edge=EDGES)

# --- exponentials and logarithms ------------------------------------------------------------------

exp = _smooth("exp", "exp", lambda y, x: y, saves="y")
exp.describe("exp(x)", "y", reals(-3, 3), edge=EDGES)
expm1 = _smooth("expm1", "expm1", in_native_blocks(lambda y, x: y + 1), saves="y", native=True)
expm1.describe("exp(x) - 1", "y + 1", reals(-3, 3), edge=EDGES)
log = _smooth("log", "log", in_native_blocks(lambda y, x: reciprocal(x)), saves="x")
log.describe("log(x)", "1 / x", reals(0.3, 4), edge=EDGES)
log1p = _smooth("log1p", "log1p", in_native_blocks(lambda y, x: reciprocal(1 + x)), saves="x", native=True)
log1p.describe("log(1 + x)", "1 / (1 + x)", reals(-0.7, 3), edge=EDGES)
sqrt = _smooth("sqrt", "sqrt", in_native_blocks(lambda y, x: reciprocal(2 * y)), saves="y")
sqrt.describe("sqrt(x)", "1 / (2 * y)", reals(0.3, 4), edge=EDGES)
root_p = elementwise("root", "sqrt", (lambda y, x: _ratio(0.5, y),), saves="y", scalar="sqrt")
root_p.describe(
    "sqrt(x)",
    "1 / (2 * y); 0 at 0",
    reals(0.3, 4),
    edge=(0.0, 1.0, 1e-30, _inf, _nan),
    notes="what norms and standard deviations are made of: their gradient where they vanish is 0, not NaN",
)
rsqrt = elementwise(
    "rsqrt",
    in_native_blocks(lambda xp, x: 1 / xp.sqrt(x)),
    (in_native_blocks(lambda y, x: -0.5 * y * y * y),),
    saves="y",
    takes_complex=True,
)
rsqrt.describe("1 / sqrt(x)", "-y**3 / 2", reals(0.3, 4), edge=EDGES)

exp2 = _smooth("exp2", "exp2", in_native_blocks(lambda y, x: y * _LN2), saves="y")
exp2.describe("2 ** x", "y * log(2)", reals(-3, 3), edge=EDGES)
# NumPy's function takes real numbers only.
exp2.evaluate = lambda x: np.exp(x * _LN2) if np.iscomplexobj(x) else np.exp2(x)
log2 = _smooth("log2", "log2", in_native_blocks(lambda y, x: reciprocal(x * _LN2)), saves="x")
log2.describe("log(x) / log(2)", "1 / (x * log(2))", reals(0.3, 4), edge=EDGES)
log10 = _smooth("log10", "log10", in_native_blocks(lambda y, x: reciprocal(x * _LN10)), saves="x")
log10.describe("log(x) / log(10)", "1 / (x * log(10))", reals(0.3, 4), edge=EDGES)


def _softmax2(a: Array, b: Array) -> Array:
    """exp(a) / (exp(a) + exp(b)), the slope of logaddexp."""
    return REGISTRY["sigmoid"](a - b)


logaddexp = elementwise(
    "logaddexp",
    "logaddexp",
    (in_blocks(lambda y, a, b: _softmax2(a, b)), in_blocks(lambda y, a, b: _softmax2(b, a))),
    saves="x",
    takes_complex=True,
)
logaddexp.describe("log(exp(a) + exp(b))", "sigmoid(a - b), sigmoid(b - a)", reals(-3, 3), reals(-3, 3), edge=EDGES)
logaddexp.evaluate = log_of_two
logaddexp2 = elementwise(
    "logaddexp2",
    "logaddexp2",
    (
        in_native_blocks(lambda y, a, b: _softmax2(a * _LN2, b * _LN2)),
        in_native_blocks(lambda y, a, b: _softmax2(b * _LN2, a * _LN2)),
    ),
    native=True,
    saves="x",
)
logaddexp2.describe(
    "log2(2**a + 2**b)", "sigmoid((a - b) * log(2)), sigmoid((b - a) * log(2))", reals(-3, 3), reals(-3, 3), edge=EDGES
)

# --- trigonometry ---------------------------------------------------------------------------------

sin = _smooth("sin", "sin", lambda y, x: cos(x), saves="x")
sin.describe("sin(x)", "cos(x)", reals(-4, 4), edge=EDGES)
cos: Elementwise = _smooth("cos", "cos", lambda y, x: -sin(x), saves="x")
cos.describe("cos(x)", "-sin(x)", reals(-4, 4), edge=EDGES)
tan = _smooth("tan", "tan", in_native_blocks(lambda y, x: 1 + y * y), saves="y")
tan.describe("tan(x)", "1 + y**2", reals(-1.2, 1.2), edge=EDGES)
asin = _smooth("asin", "arcsin", in_native_blocks(lambda y, x: rsqrt(1 - x * x)), saves="x")
asin.describe("arcsin(x)", "1 / sqrt(1 - x**2)", reals(-0.8, 0.8), edge=EDGES)
acos = _smooth("acos", "arccos", in_native_blocks(lambda y, x: -rsqrt(1 - x * x)), saves="x")
acos.describe("arccos(x)", "-1 / sqrt(1 - x**2)", reals(-0.8, 0.8), edge=EDGES)
atan = _smooth("atan", "arctan", in_native_blocks(lambda y, x: reciprocal(1 + x * x)), saves="x")
atan.describe("arctan(x)", "1 / (1 + x**2)", reals(-4, 4), edge=EDGES)
sinh = _smooth("sinh", "sinh", in_native_blocks(lambda y, x: cosh(x)), saves="x", native=True)
sinh.describe("sinh(x)", "cosh(x)", reals(-3, 3), edge=EDGES)
cosh: Elementwise = _smooth("cosh", "cosh", in_native_blocks(lambda y, x: sinh(x)), saves="x", native=True)
cosh.describe("cosh(x)", "sinh(x)", reals(-3, 3), edge=EDGES)
tanh = _smooth("tanh", "tanh", in_native_blocks(lambda y, x: 1 - y * y), saves="y")
tanh.describe("tanh(x)", "1 - y**2", reals(-3, 3), edge=EDGES)
asinh = _smooth("asinh", "arcsinh", in_native_blocks(lambda y, x: rsqrt(x * x + 1)), saves="x")
asinh.describe("arcsinh(x)", "1 / sqrt(x**2 + 1)", reals(-4, 4), edge=EDGES)
acosh = _smooth("acosh", "arccosh", in_native_blocks(lambda y, x: rsqrt(x * x - 1)), saves="x")
acosh.describe("arccosh(x)", "1 / sqrt(x**2 - 1)", reals(1.2, 4), edge=EDGES)
atanh = _smooth("atanh", "arctanh", in_native_blocks(lambda y, x: reciprocal(1 - x * x)), saves="x")
atanh.describe("arctanh(x)", "1 / (1 - x**2)", reals(-0.8, 0.8), edge=EDGES)


def _turn(a: Array, b: Array) -> Array:
    """b / (a**2 + b**2) without overflow, and 0 at the origin."""
    r = hypot(a, b)
    return _ratio(_ratio(b, r), r)


atan2 = elementwise(
    "atan2",
    "arctan2",
    (in_native_blocks(lambda y, a, b: _turn(a, b)), in_native_blocks(lambda y, a, b: -_turn(b, a))),
    saves="x",
)
atan2.describe(
    "angle of the point (b, a)",
    "b / (a**2 + b**2), -a / (a**2 + b**2); 0 at the origin",
    reals(0.3, 3),
    reals(-3, 3),
    edge=EDGES,
)


# The coefficients of u, u**3, ... in (u cos(u) - sin(u)) / u**2.
_SINC_SERIES = tuple((-1) ** k * 2 * k / math.factorial(2 * k + 1) for k in range(1, 7))


@in_blocks
def _sinc_slope(y: Array, x: Array) -> Array:
    # (cos(pi x) - sinc(x)) / x, and its series near 0, where the difference cancels.
    near = abs(x) < 0.1
    u = math.pi * where(near, x, 0.0)
    series: Array = _SINC_SERIES[-1]
    for coefficient in _SINC_SERIES[-2::-1]:
        series = series * (u * u) + coefficient
    apart = where(near, 1.0, x)
    return where(near, math.pi * u * series, (cos(math.pi * apart) - sinc(apart)) / apart)


sinc = elementwise("sinc", "sinc", (_sinc_slope,), saves="x", takes_complex=True)
sinc.describe("sin(pi * x) / (pi * x)", "(cos(pi * x) - y) / x", reals(0.2, 3), edge=EDGES)

# --- absolute values and rounding -----------------------------------------------------------------


@in_native_blocks
def _abs_slope(y: Array, x: Array) -> Array:
    if x.dtype.kind != "c":
        return sign(x)
    return _ratio(conj_p(x), abs(x))  # dy = re(this * dx)


abs = elementwise("abs", "abs", (_abs_slope,), saves="x", takes_complex=True)
abs.describe("|x|", "sign(x)", reals(-3, 3, 0), edge=EDGES, notes="at NaN the gradient is NaN; PyTorch's is 0")


def _step(name: str, forward: str, formula: str, sample: Domain, notes: str = "") -> Elementwise:
    return elementwise(name, forward, (0,)).describe(formula, "0", sample, edge=EDGES, notes=notes)


_BETWEEN_WHOLE = reals(-1.9, 1.9, -1.0, 0.0, 1.0)
_BETWEEN_HALVES = reals(-1.9, 1.9, -1.5, -0.5, 0.5, 1.5)
sign: Elementwise = _step(
    "sign", "sign", "sign(x)", reals(-1.9, 1.9, 0.0), notes="sign(NaN) is NaN, as in NumPy; PyTorch's is 0"
)
# The sign of a boolean is the boolean itself, as in PyTorch; NumPy's function refuses booleans.
sign.evaluate = natively(lambda x: x.copy() if getattr(x, "dtype", None) == np.bool_ else np.sign(x), "sign")
floor = _step("floor", "floor", "largest integer <= x", _BETWEEN_WHOLE)
ceil = _step("ceil", "ceil", "smallest integer >= x", _BETWEEN_WHOLE)
trunc: Elementwise = _step("trunc", "trunc", "x without its fraction", _BETWEEN_WHOLE)
round_p = _step("round", "round", "nearest integer, to even on ties", _BETWEEN_HALVES)


nan_to_num_p = elementwise(
    "nan_to_num",
    lambda xp, x, **limits: getattr(xp, "nan_to_num", np.nan_to_num)(x, **limits),
    (select(lambda y, x, **_: isfinite(x)),),
    saves="x",
    sample_params={"nan": 0.0, "posinf": None, "neginf": None},
)
nan_to_num_p.describe("x with numbers for NaN and inf", "isfinite(x)", reals(-3, 3), edge=EDGES)

# --- without a derivative -------------------------------------------------------------------------


def _companion(name: str, forward: str, formula: str, arity: int = 2, **facts: Any) -> Elementwise:
    return elementwise(name, forward, (None,) * arity, **facts).describe(formula, "none")


equal = eq = _companion("equal", "equal", "a == b", takes_complex=True)
not_equal = _companion("not_equal", "not_equal", "a != b", takes_complex=True)
less = _companion("less", "less", "a < b")
less_equal = _companion("less_equal", "less_equal", "a <= b")
greater = _companion("greater", "greater", "a > b")
greater_equal = _companion("greater_equal", "greater_equal", "a >= b")
logical_and = _companion("logical_and", "logical_and", "a and b", takes_complex=True)
logical_or: Elementwise = _companion("logical_or", "logical_or", "a or b", takes_complex=True)
logical_xor = _companion("logical_xor", "logical_xor", "a xor b", takes_complex=True)
logical_not: Elementwise = _companion("logical_not", "logical_not", "not x", arity=1, takes_complex=True)
bitwise_and = _companion("bitwise_and", "bitwise_and", "a & b")
bitwise_or = _companion("bitwise_or", "bitwise_or", "a | b")
bitwise_xor = _companion("bitwise_xor", "bitwise_xor", "a ^ b")
bitwise_not = _companion("bitwise_not", "invert", "~x", arity=1)
isnan: Elementwise = _companion("isnan", "isnan", "x is NaN", arity=1, takes_complex=True)
isinf = _companion("isinf", "isinf", "x is infinite", arity=1, takes_complex=True)
isfinite: Elementwise = _companion("isfinite", "isfinite", "x is finite", arity=1, takes_complex=True)
floor_divide: Elementwise = elementwise("floor_divide", "floor_divide", (0, 0))
floor_divide.describe("floor(a / b)", "0, 0", reals(0.1, 0.9), reals(1.1, 3))
left_shift = _companion("left_shift", "left_shift", "a << b")
right_shift = _companion("right_shift", "right_shift", "a >> b")
gcd = _companion("gcd", "gcd", "greatest common divisor")
lcm = _companion("lcm", "lcm", "least common multiple")
signbit = _companion("signbit", "signbit", "x is negative or -0", arity=1)

nextafter: Elementwise = elementwise("nextafter", "nextafter", (None, None))
nextafter.describe("the number next to a on the way to b", "none", reals(-3, 3), reals(-3, 3), edge=EDGES)
