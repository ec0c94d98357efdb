"""Special functions of large arrays in vectorised NumPy passes, where SciPy runs one scalar loop.

In float32 a polynomial of eight or nine terms is accurate to the last digits and takes a quarter of the time. In
float64 it needs twenty terms and gains nothing, so float64 and small arrays go to SciPy. The coefficients are minimax
fits (Lawson's iteration) to SciPy's float64 values. The errors stated are the largest relative errors over the whole
range, rounding included; tests check them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from glassgrad.ops.kernels.ways import Array

# Below this many elements, NumPy's overhead per call costs more than SciPy's loop.
FROM = 2048

# Phi(-a) * exp(a**2 / 2) for a >= 0 as a quotient of polynomials in a; Phi is the normal distribution function.
_TAIL_ABOVE = (11.6152167, 8.42978077, 2.78887154, 0.398898529)
_TAIL_BELOW = (23.2304427, 35.3943153, 22.2067097, 6.98614077, 1.0)

# erfc is 0 in float32 from here on; an infinite argument would turn the product into 0 * inf.
_ERFC_END = 12.0


def _numbers(text: str) -> tuple[float, ...]:
    return tuple(map(float, text.split()))


# erfinv(x) / x in powers of w - 2.5 and of sqrt(w) - 3, w = -log(1 - x**2), for w up to 5 and beyond.
_INVERSE_NEAR = _numbers("""
    1.50140942      0.246640726    -0.00417770781   -0.00125370767   0.000218602233
   -4.39671825e-06 -3.52886552e-06  3.43720133e-07   2.85349269e-08
""")
_INVERSE_FAR = _numbers("""
    2.8329771       1.0016747       0.00943154137   -0.00763394049   0.00578687308
   -0.00362937964   0.00124739657   5.68177702e-05  -0.000127517942
""")
_SPLIT = 5.0

# I0(x) and I1(x) / x in powers of x**2 up to 8; beyond 8, the factor of exp(x) / sqrt(x) in powers of 1 / x.
_BESSEL_NEAR = (
    _numbers("""
        1    0.249999998   0.0156250022   0.000434026962  6.78183067e-06  6.78023526e-08
        4.71799856e-10   2.37213874e-12  1.00695638e-14  1.99133816e-17  1.35663826e-19
    """),
    _numbers("""
        0.5  0.0624999998  0.00260416683  5.4253419e-05   6.78177039e-07  5.6506186e-09
        3.36822544e-11   1.48711762e-13  5.52532473e-16  1.05284051e-18  5.96730285e-21
    """),
)
_BESSEL_FAR = (
    _numbers("0.398942277  0.049869612  0.027897674  0.0338052882 -0.0140092517 0.38842199"),
    _numbers("0.398942285 -0.149605477 -0.0465744883 -0.0461790548 0.00987663924 -0.452886149"),
)
_BESSEL_SPLIT = 8.0

# B(2k), the Bernoulli numbers of the asymptotic series of the trigamma function.
_BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510)
# For each dtype: how far the argument is moved up, and how many terms of the series then give all digits.
_MOVED = {"f": (4, 5), "d": (10, 8)}


def fits(x: Array) -> bool:
    """Tell whether the float32 forms below apply to `x`."""
    return isinstance(x, np.ndarray) and x.dtype == np.float32 and x.size >= FROM


def _polynomial(t: Array, coefficients: Sequence[float]) -> Array:
    """Horner's scheme in one buffer."""
    value = t * coefficients[-1]
    for coefficient in coefficients[-2:0:-1]:
        value += coefficient
        value *= t
    value += coefficients[0]
    return value


def _tail(a: Array) -> Array:
    """Phi(-a) * exp(a**2 / 2) of a >= 0."""
    below = a + _TAIL_BELOW[3]
    for coefficient in _TAIL_BELOW[2::-1]:
        below *= a
        below += coefficient
    value = _polynomial(a, _TAIL_ABOVE)
    value /= below
    return value


def _has_nan(value: Array) -> bool:
    return bool(np.isnan(value.sum()))


def _writable(value: Array) -> Array:
    """Return a NumPy scalar as an array."""
    return value if isinstance(value, np.ndarray) else np.asarray(value)


def gelu(x: Array) -> Array:
    """x * Phi(x) in float32, as max(x, 0) - a * Phi(-a) with a = |x|; error up to 3e-6 (1e-6 for x > -4).

    For negative x the error comes from the rounded square in exp(-a**2 / 2).
    """
    with np.errstate(over="ignore", invalid="ignore"):
        a = np.abs(x)
        value = _tail(a)
        value *= a
        a *= a
        a *= -0.5
        value *= np.exp(a, out=a)
        np.subtract(np.maximum(x, 0, out=a), value, out=value)
        if _has_nan(value):  # where Phi is 0 or 1, the quotient overflows
            far = np.isnan(value)
            value[far] = x[far] * (x[far] > 0)
    return value


def gelu_slope(y: Array, x: Array) -> Array:
    """Phi(x) + x * exp(-x**2 / 2) / sqrt(2 pi), in float32 and float64, with Phi(x) = y / x from y = gelu(x)."""
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        value = _writable(y / x)
        if _has_nan(value):
            value[x == 0] = 0.5
        bell = _writable(x * x)
        bell *= -0.5
        np.exp(bell, out=bell)
        bell *= x
        bell *= 1 / math.sqrt(2 * math.pi)
        value += bell
    return value


def erfc(x: Array) -> Array:
    """The complement of erf in float32, as 2 * Phi(-sqrt(2) a) or 2 minus that, with a = |x|; error up to 1e-6."""
    a = np.abs(x)
    np.minimum(a, _ERFC_END, out=a)
    # Split the square into two parts, the first of which is exact: its rounding error would be multiplied by the
    # square.
    head = (a.view(np.int32) & -4096).view(np.float32)
    rest = a - head
    rest *= a + head
    value = _tail(math.sqrt(2) * a)
    value *= 2
    value *= np.exp(np.negative(rest, out=rest), out=rest)
    head *= head
    value *= np.exp(np.negative(head, out=head), out=head)
    # |2 - value| for negative x, |0 - value| otherwise.
    np.less(x, 0, out=head)
    head *= 2
    head -= value
    return np.abs(head, out=head)


def erfinv(x: Array) -> Array:
    """The y for which erf(y) is x, in float32; error up to 1e-6."""
    with np.errstate(divide="ignore", invalid="ignore"):
        w = 1 - x
        w *= 1 + x
        np.negative(np.log(w, out=w), out=w)
        value = _polynomial(w - 2.5, _INVERSE_NEAR)
        far = np.flatnonzero(w > _SPLIT)
        if far.size:
            value.flat[far] = _polynomial(np.sqrt(w.flat[far]) - 3, _INVERSE_FAR)
            ends = np.flatnonzero(w == np.inf)
            value.flat[ends] = np.inf
        value *= x
    return value


def bessel_i(x: Array, order: int) -> Array:
    """The modified Bessel function I0 or I1 in float32; error up to 5e-7. NaN at infinity, as in SciPy.

    Abramowitz and Stegun 9.7.1 for the form of large arguments.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        a = np.abs(x)
        t = np.minimum(a, _BESSEL_SPLIT)
        value = _polynomial(t * t, _BESSEL_NEAR[order])
        if order:
            value *= t
        far = np.flatnonzero(a > _BESSEL_SPLIT)
        if far.size:
            beyond = a.flat[far]
            half = np.exp(0.5 * beyond)  # the exponential overflows before the function does
            found = _polynomial(1 / beyond, _BESSEL_FAR[order]) / np.sqrt(beyond)
            found *= half
            found *= half
            value.flat[far] = found
    return np.copysign(value, x, out=value) if order else value


def trigamma(x: Array) -> Array:
    """The derivative of digamma, for x > 0, computed in float64 throughout; error up to 1e-15, and 2e-8 before rounding
    where x is in float32.

    Abramowitz and Stegun 6.4.6 to move the argument up, 6.4.12 for the series there. An argument that is not
    positive gives NaN.
    """
    moved, terms = _MOVED[x.dtype.char]
    with np.errstate(all="ignore"):  # the NaN or infinity of poles and overflow is the result
        z = np.array(x, np.float64)
        positive = z > 0
        total = np.zeros_like(z)
        for _ in range(moved):
            part = 1 / z
            part *= part
            total += part
            z += 1
        np.reciprocal(z, out=z)
        square = z * z
        series = _polynomial(square, (1.0, *_BERNOULLI[:terms]))
        # 1/z + 1/(2 z^2) + sum of B(2k) / z^(2k + 1)
        total += series * z
        total += 0.5 * square
        total[~positive] = np.nan
    return total.astype(x.dtype, copy=False)
