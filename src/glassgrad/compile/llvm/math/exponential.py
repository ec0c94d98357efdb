"""exp, expm1, log and log1p.

exp(x) = 2^n exp(r) with r = x - n ln 2 in [-ln 2 / 2, ln 2 / 2] and a polynomial for exp(r).
log(x) = e ln 2 + log(1 + f) with 1 + f in [sqrt(1/2), sqrt(2)]; with s = f / (2 + f),
log(1 + f) = 2 artanh(s) = f - (f^2/2 - s (f^2/2 + R(s^2))), the form that loses the fewest bits.
"""

from __future__ import annotations

from glassgrad.compile.llvm.math.common import (
    FORMATS,
    INF,
    NAN,
    clamp,
    coefficients,
    nearest,
    polynomial,
    power_of_two,
    scale,
    to_integer_bits,
)
from glassgrad.compile.llvm.module.ir import Builder, Value

_LOG2E = 1.4426950408889634

# ln 2 in two parts; products of the first with any exponent are exact.
_LN2 = {"f32": (0.693115234375, 3.194618329871446e-05), "f64": (0.6931471803691238, 1.9082149292705877e-10)}

# (exp(r) - 1 - r) / r^2
_EXP = {
    "f32": (0.5, 0.166665181517601, 0.041666846722364426, 0.008368952199816704, 0.0013899568002671003),
    "f64": coefficients(
        """
        0.5 0.16666666666666666 0.041666666666601855 0.008333333333363606 0.0013888888927576968 0.00019841269743666964
        2.4801507762531672e-05 2.755740462272273e-06 2.762553482988424e-07 2.505038475493359e-08
        """
    ),
}

# (2 artanh(s) / s - 2) / s^2 in powers of s^2
LOG = {
    "f32": (0.6666666269302368, 0.40000849962234497, 0.2851015031337738, 0.24028842151165009),
    "f64": coefficients(
        """
        0.6666666666666666 0.3999999999976928 0.28571428675932153 0.22222204550031563 0.18183285264011287
        0.15320574049730357 0.14735579584307348
        """
    ),
}

# Beyond these exp is 0 or Inf, and expm1 is -1 or Inf.
_EXP_RANGE = {"f32": (-103.98, 89.5), "f64": (-745.14, 710.5)}
_EXPM1_RANGE = {"f32": (-18.0, 88.9), "f64": (-40.0, 709.9)}


def reduce_exponent(b: Builder, x: Value) -> tuple[Value, Value, Value]:
    """Return (r, n, n as a float) with x = n ln 2 + r."""
    whole, n = nearest(b, b.fmul(x, b.like(_LOG2E, x)))
    minus = b.fneg(whole)
    high, low = _LN2[x.kind]
    r = b.fma(minus, b.like(low, x), b.fma(minus, b.like(high, x), x))
    return r, n, whole


def exp_tail(b: Builder, r: Value) -> Value:
    """exp(r) - 1 for reduced r."""
    return b.fma(b.fmul(r, r), polynomial(b, r, _EXP[r.kind]), r)


def exp(b: Builder, x: Value) -> Value:
    """e to the power x."""
    low, high = _EXP_RANGE[x.kind]
    # Lanes that underflow are computed as exp(0) and replaced: arithmetic with denormal results takes the processor
    # a hundred cycles, and a masked softmax is full of exp(-Inf).
    vanishes = b.compare("olt", x, b.like(low, x))
    kept = b.select(vanishes, b.like(0, x), clamp(b, x, None, high))
    r, n, whole = reduce_exponent(b, kept)
    value = scale(b, b.fadd(exp_tail(b, r), b.like(1, x)), n, whole)
    return b.select(vanishes, b.like(0, x), value)


def expm1(b: Builder, x: Value) -> Value:
    """e to the power x, minus 1, accurate also near 0."""
    low, high = _EXPM1_RANGE[x.kind]
    r, n, _ = reduce_exponent(b, clamp(b, x, low, high))
    # Compute half of the result, because 2^n may overflow where the result does not: 2 (2^(n-1) y + 2^(n-1) - 1/2).
    half = power_of_two(b, b.binary("sub", n, b.like(1, n)), x.kind)
    total = b.fma(half, exp_tail(b, r), b.fsub(half, b.like(0.5, x)))
    return b.fadd(total, total)


def expm1_within(b: Builder, x: Value) -> Value:
    """`expm1` for |x| < 60 or NaN, where nothing overflows and no clamp is needed."""
    r, n, _ = reduce_exponent(b, x)
    power = power_of_two(b, n, x.kind)
    return b.fma(power, exp_tail(b, r), b.fsub(power, b.like(1, x)))


def split_exponent(b: Builder, x: Value) -> tuple[Value, Value]:
    """Return (m, e) with x = m 2^e and m in [sqrt(1/2), sqrt(2)); for positive normal x."""
    form = FORMATS[x.kind]
    bits = to_integer_bits(b, x)
    root_half = to_integer_bits(b, b.like(0.7071067811865476, x))
    shifted = b.binary("sub", bits, root_half)
    exponent = b.binary("ashr", shifted, b.like(form.fraction, shifted))
    mantissa = b.binary("sub", bits, b.binary("shl", exponent, b.like(form.fraction, shifted)))
    return b.bitcast(mantissa, x.kind), b.cast(exponent, x.kind)


def normalise(b: Builder, x: Value) -> tuple[Value, Value]:
    """Return (y, k) with x = y 2^-k where y is normal if x is a denormal."""
    form = FORMATS[x.kind]
    small = b.compare("olt", x, b.like(form.smallest_normal, x))
    lift = float(form.fraction + 2)
    lifted = b.select(small, b.fmul(x, b.like(2.0**lift, x)), x)
    return lifted, b.select(small, b.like(lift, x), b.like(0, x))


def log_of_split(b: Builder, f: Value, e: Value, correction: Value | None = None) -> Value:
    """log(1 + f) + e ln 2 + correction."""
    high, low = _LN2[f.kind]
    s = b.fdiv(f, b.fadd(f, b.like(2, f)))
    z = b.fmul(s, s)
    tail = b.fmul(z, polynomial(b, z, LOG[f.kind]))
    half_square = b.fmul(b.fmul(f, f), b.like(0.5, f))
    small = b.fmul(e, b.like(low, f))
    if correction is not None:
        small = b.fadd(small, correction)
    inner = b.fma(s, b.fadd(half_square, tail), small)
    return b.fma(e, b.like(high, f), b.fsub(f, b.fsub(half_square, inner)))


def _log_edges(b: Builder, x: Value, value: Value) -> Value:
    """Insert -Inf at 0, Inf at Inf, NaN below 0 and at NaN."""
    value = b.select(b.compare("oeq", x, b.like(INF, x)), x, value)
    value = b.select(b.compare("oeq", x, b.like(0, x)), b.like(-INF, x), value)
    return b.select(b.compare("uge", x, b.like(0, x)), b.select(b.compare("uno", x, x), x, value), b.like(NAN, x))


def log(b: Builder, x: Value) -> Value:
    """Natural logarithm."""
    lifted, shift = normalise(b, x)
    m, e = split_exponent(b, lifted)
    value = log_of_split(b, b.fsub(m, b.like(1, m)), b.fsub(e, shift))
    return _log_edges(b, x, value)


def log1p(b: Builder, x: Value) -> Value:
    """log(u) + c / u, where u = 1 + x rounded and c is the rounding error."""
    one = b.like(1, x)
    u = b.fadd(x, one)
    m, e = split_exponent(b, u)
    near = b.compare("oeq", e, b.like(0, x))
    larger = b.compare("ogt", x, one)
    lost = b.select(larger, b.fsub(one, b.fsub(u, x)), b.fsub(x, b.fsub(u, one)))
    f = b.select(near, x, b.fsub(m, one))
    correction = b.select(near, b.like(0, x), b.fdiv(lost, u))
    value = log_of_split(b, f, e, correction)
    # If x is so small that its square is negligible, the result is x, with its sign.
    tiny = b.compare("olt", b.call("fabs", x), b.like(2.0**-60 if x.kind == "f64" else 2.0**-30, x))
    return _log_edges_of_log1p(b, x, u, b.select(tiny, x, value))


def _log_edges_of_log1p(b: Builder, x: Value, u: Value, value: Value) -> Value:
    value = b.select(b.compare("oeq", x, b.like(INF, x)), x, value)
    value = b.select(b.compare("oeq", u, b.like(0, x)), b.like(-INF, x), value)
    return b.select(b.compare("ult", u, b.like(0, x)), b.select(b.compare("uno", x, x), x, b.like(NAN, x)), value)
