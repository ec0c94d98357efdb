"""x to the power y.

|x|^y = exp(y log|x|). The error of the exponent becomes the relative error of the result, so log|x| needs more digits
than the result: float32 is computed in float64, float64 with a logarithm in two parts (high and low).
"""

from __future__ import annotations

from glassgrad.compile.llvm.math.common import INF, NAN, clamp, coefficients, copysign, polynomial, scale
from glassgrad.compile.llvm.math.exponential import (
    exp_tail,
    log_of_split,
    normalise,
    reduce_exponent,
    split_exponent,
)
from glassgrad.compile.llvm.module.ir import Builder, Value

# ln 2 and 2/3, 2/5 as sums of two doubles.
_LN2 = (0.6931471805599453, 2.3190468138462996e-17)
_TWO_THIRDS = (0.6666666666666666, 3.700743415417188e-17)
# 2 artanh(s) / s - 2 - 2/3 s^2, over s^4, in powers of s^2
_TAIL = coefficients(
    """
    0.4 0.2857142857142857 0.22222222222222221 0.18181818181818182 0.15384615384615385 0.13333333333333333
    0.11764705882352941 0.10526315789473684 0.09523809523809523 0.08695652173913043
    """
)

Pair = tuple[Value, Value]


def _two_product(b: Builder, x: Value, y: Value) -> Pair:
    high = b.fmul(x, y)
    return high, b.fma(x, y, b.fneg(high))


def _quick_sum(b: Builder, x: Value, y: Value) -> Pair:
    """x + y exactly, for |x| >= |y|."""
    high = b.fadd(x, y)
    return high, b.fsub(y, b.fsub(high, x))


def _two_sum(b: Builder, x: Value, y: Value) -> Pair:
    """x + y exactly."""
    high = b.fadd(x, y)
    back = b.fsub(high, x)
    return high, b.fadd(b.fsub(x, b.fsub(high, back)), b.fsub(y, back))


def _times(b: Builder, x: Pair, y: Pair) -> Pair:
    high, low = _two_product(b, x[0], y[0])
    low = b.fadd(low, b.fma(x[0], y[1], b.fmul(x[1], y[0])))
    return _quick_sum(b, high, low)


def _accurate_log(b: Builder, m: Value, e: Value) -> Pair:
    """e ln 2 + log(m) with about 100 bits: 2 s + 2/3 s^3 as pairs, the rest of the series as doubles."""
    one = b.like(1, m)
    f = b.fsub(m, one)
    bottom = b.fadd(m, one)
    bottom_low = b.fsub(f, b.fsub(bottom, b.like(2, m)))
    s = b.fdiv(f, bottom)
    # The error of the quotient: (f - s * bottom) / bottom.
    left = b.fma(b.fneg(s), bottom, f)
    left = b.fma(b.fneg(s), bottom_low, left)
    s_low = b.fdiv(left, bottom)
    square = _times(b, (s, s_low), (s, s_low))
    cube = _times(b, square, (s, s_low))
    third = _times(b, cube, (b.like(_TWO_THIRDS[0], m), b.like(_TWO_THIRDS[1], m)))
    fifth = b.fmul(b.fmul(cube[0], square[0]), polynomial(b, square[0], _TAIL))
    total = _two_sum(b, b.fadd(s, s), third[0])
    low = b.fadd(total[1], b.fadd(b.fadd(s_low, s_low), b.fadd(third[1], fifth)))
    product = _two_product(b, e, b.like(_LN2[0], m))
    sum_high, sum_low = _two_sum(b, product[0], total[0])
    low = b.fadd(low, b.fadd(sum_low, b.fma(e, b.like(_LN2[1], m), product[1])))
    return _quick_sum(b, sum_high, low)


def _power_64(b: Builder, x: Value, y: Value) -> Value:
    lifted, shift = normalise(b, x)
    m, e = split_exponent(b, lifted)
    log_high, log_low = _accurate_log(b, m, b.fsub(e, shift))
    high, low = _two_product(b, log_high, y)
    low = b.fma(log_low, y, low)
    # Beyond these the result is 0 or Inf for any low part; if the product overflowed, the low part is NaN.
    inside = b.compare("olt", b.call("fabs", high), b.like(800, high))
    high = clamp(b, high, -800, 800)
    low = b.select(inside, low, b.like(0, low))
    r, n, whole = reduce_exponent(b, high)
    near = b.fadd(exp_tail(b, r), b.like(1, r))
    return scale(b, b.fma(near, low, near), n, whole)


def _power_32(b: Builder, x: Value, y: Value) -> Value:
    wide_x, wide_y = b.cast(x, "f64"), b.cast(y, "f64")
    m, e = split_exponent(b, wide_x)
    exponent = b.fmul(wide_y, log_of_split(b, b.fsub(m, b.like(1, m)), e))
    r, n, whole = reduce_exponent(b, clamp(b, exponent, -700, 700))
    return b.cast(scale(b, b.fadd(exp_tail(b, r), b.like(1, r)), n, whole), "f32")


def power(b: Builder, x: Value, y: Value) -> Value:
    """x to the power y, with the special cases of C."""
    size = b.call("fabs", x)
    value = _power_32(b, size, y) if x.kind == "f32" else _power_64(b, size, y)
    zero, one, inf = b.like(0, x), b.like(1, x), b.like(INF, x)
    up = b.compare("ogt", y, zero)
    value = b.select(b.compare("oeq", size, zero), b.select(up, zero, inf), value)
    value = b.select(b.compare("oeq", size, inf), b.select(up, inf, zero), value)
    grows = b.binary("xor", up, b.compare("olt", size, one))
    endless = b.select(grows, inf, zero)
    value = b.select(b.compare("oeq", b.call("fabs", y), inf), endless, value)
    value = b.select(b.compare("oeq", size, one), one, value)
    value = _with_sign(b, x, y, value)
    value = b.select(b.compare("uno", x, y), b.like(NAN, x), value)
    always_one = b.binary("or", b.compare("oeq", x, one), b.compare("oeq", y, zero))
    return b.select(always_one, one, value)


def _with_sign(b: Builder, x: Value, y: Value, value: Value) -> Value:
    """Negative bases: negative for odd exponents, NaN for fractional ones (but not for zeros and infinities)."""
    whole = b.compare("oeq", b.call("floor", y), y)
    half = b.fmul(y, b.like(0.5, y))
    odd = b.binary("and", whole, b.compare("une", b.call("floor", half), half))
    odd = b.binary("and", odd, b.compare("olt", b.call("fabs", y), b.like(INF, y)))
    signed = b.select(odd, copysign(b, value, x), value)
    size = b.call("fabs", x)
    ordinary = b.binary("and", b.compare("olt", x, b.like(0, x)), b.compare("olt", size, b.like(INF, x)))
    fractional = b.binary("and", ordinary, b.binary("xor", whole, b.const(1, "b1", whole.lanes)))
    return b.select(fractional, b.like(NAN, x), signed)
