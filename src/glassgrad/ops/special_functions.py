"""Incomplete gamma and beta functions, Bessel and Airy functions, computed by SciPy, with their derivatives.

Definitions and derivatives: Abramowitz and Stegun, chapters 6, 9, 10 and 26. Derivatives of functions of order 1
divide by x; where a limit at 0 exists, the code states it.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

import numpy as np

from glassgrad.ops import elementwise as ew
from glassgrad.ops.axes import concrete
from glassgrad.ops.core import Array, Elementwise, bad_option, elementwise
from glassgrad.ops.samples import reals
from glassgrad.ops.shape import broadcast_to_p
from glassgrad.ops.special import _by, _scipy, gammaln, i0, i1, xlog1py, xlogy

_nan = float("nan")
_BESSEL_EDGES = (0.0, 1.0, -1.0, 30.0, _nan)
_DECAYING_EDGES = (0.5, 1.0, 30.0, _nan)


def _by_several(name: str) -> Callable[..., Array]:
    """Return a SciPy function of several arguments in which Python numbers adopt the array's dtype, as in NumPy."""

    def forward(_xp: ModuleType, *args: Array) -> Array:
        dtype = np.result_type(*args)
        return _scipy(name)(*(np.asarray(x, dtype) if isinstance(x, int | float) else x for x in args))

    return forward


# --- incomplete gamma and beta functions --------------------------------------------------------------


def _gamma_density(y: Array, a: Array, x: Array) -> Array:
    return ew.exp(xlogy(a - 1, x) - x - gammaln(a))


gammainc_p: Elementwise = elementwise("gammainc", _by_several("gammainc"), (None, _gamma_density), saves="x")
gammainc_p.describe(
    "integral of u**(a - 1) exp(-u) / Gamma(a) from 0 to b",
    "none, b**(a - 1) * exp(-b) / Gamma(a)",
    reals(0.5, 4),
    reals(0.3, 5),
    edge=(0.5, 1.0, 2.0, 30.0, _nan),
)
gammaincc_p: Elementwise = elementwise(
    "gammaincc", _by_several("gammaincc"), (None, lambda y, a, x: -_gamma_density(y, a, x)), saves="x"
)
gammaincc_p.describe(
    "integral of u**(a - 1) exp(-u) / Gamma(a) from b on",
    "none, -b**(a - 1) * exp(-b) / Gamma(a)",
    reals(0.5, 4),
    reals(0.3, 5),
    edge=(0.5, 1.0, 2.0, 30.0, _nan),
)
betainc_p: Elementwise = elementwise(
    "betainc",
    _by_several("betainc"),
    (
        None,
        None,
        lambda y, a, b, x: ew.exp(xlogy(a - 1, x) + xlog1py(b - 1, -x) - gammaln(a) - gammaln(b) + gammaln(a + b)),
    ),
    saves="x",
)
betainc_p.describe(
    "integral of u**(a - 1) (1 - u)**(b - 1) / B(a, b) from 0 to x",
    "none, none, x**(a - 1) * (1 - x)**(b - 1) / B(a, b)",
    reals(0.5, 3),
    reals(0.5, 3),
    reals(0.1, 0.9),
    edge=(0.25, 0.5, 0.75),
)

# --- Bessel functions -----------------------------------------------------------------------------


def _over(y: Array, x: Array, limit: float) -> Array:
    """y / x, and its limit where x is 0."""
    zero = ew.equal(x, 0)
    return ew.where(zero, limit, y / ew.where(zero, 1.0, x))


bessel_j0: Elementwise = elementwise("bessel_j0", _by("j0"), (lambda y, x: -bessel_j1(x),), saves="x")
bessel_j0.describe("Bessel function J0(x)", "-J1(x)", reals(-5, 5), edge=_BESSEL_EDGES)
bessel_j1: Elementwise = elementwise(
    "bessel_j1", _by("j1"), (lambda y, x: bessel_j0(x) - _over(y, x, 0.5),), saves=("x", "y")
)
bessel_j1.describe("Bessel function J1(x)", "J0(x) - y / x", reals(-5, 5, 0), edge=_BESSEL_EDGES)
bessel_y0: Elementwise = elementwise("bessel_y0", _by("y0"), (lambda y, x: -bessel_y1(x),), saves="x")
bessel_y0.describe("Bessel function Y0(x)", "-Y1(x)", reals(0.4, 5), edge=_DECAYING_EDGES)
bessel_y1: Elementwise = elementwise("bessel_y1", _by("y1"), (lambda y, x: bessel_y0(x) - y / x,), saves=("x", "y"))
bessel_y1.describe("Bessel function Y1(x)", "Y0(x) - y / x", reals(0.4, 5), edge=_DECAYING_EDGES)
modified_bessel_k0: Elementwise = elementwise(
    "modified_bessel_k0", _by("k0"), (lambda y, x: -modified_bessel_k1(x),), saves="x"
)
modified_bessel_k0.describe("modified Bessel function K0(x)", "-K1(x)", reals(0.4, 4), edge=_DECAYING_EDGES)
modified_bessel_k1: Elementwise = elementwise(
    "modified_bessel_k1", _by("k1"), (lambda y, x: -modified_bessel_k0(x) - y / x,), saves=("x", "y")
)
modified_bessel_k1.describe("modified Bessel function K1(x)", "-K0(x) - y / x", reals(0.4, 4), edge=_DECAYING_EDGES)
scaled_modified_bessel_k0: Elementwise = elementwise(
    "scaled_modified_bessel_k0", _by("k0e"), (lambda y, x: y - scaled_modified_bessel_k1(x),), saves=("x", "y")
)
scaled_modified_bessel_k0.describe("exp(x) * K0(x)", "y - exp(x) * K1(x)", reals(0.4, 4), edge=_DECAYING_EDGES)
scaled_modified_bessel_k1: Elementwise = elementwise(
    "scaled_modified_bessel_k1", _by("k1e"), (lambda y, x: y - scaled_modified_bessel_k0(x) - y / x,), saves=("x", "y")
)
scaled_modified_bessel_k1.describe("exp(x) * K1(x)", "y - exp(x) * K0(x) - y / x", reals(0.4, 4), edge=_DECAYING_EDGES)
airy_ai: Elementwise = elementwise(
    "airy_ai", lambda xp, x: _by("airy")(xp, x)[0], (lambda y, x: airy_slope_p(x),), saves="x"
)
airy_ai.describe("Airy's function Ai(x)", "Ai'(x)", reals(-4, 4), edge=(0.0, 1.0, -1.0, _nan))
airy_slope_p: Elementwise = elementwise(
    "airy_slope", lambda xp, x: _by("airy")(xp, x)[1], (lambda y, x: x * airy_ai(x),), saves="x"
)
airy_slope_p.describe("derivative of Ai(x)", "x * Ai(x)", reals(-4, 4), edge=(0.0, 1.0, -1.0, _nan))

zeta_p: Elementwise = elementwise("zeta", _by_several("zeta"), (None, lambda y, a, b: -a * zeta_p(a + 1, b)), saves="x")
zeta_p.describe(
    "sum of (b + k)**-a over k = 0, 1, ...", "none, -a * zeta(a + 1, b)", reals(1.5, 4), reals(0.5, 3), edge=(2.0, 3.0)
)

# --- orthogonal polynomials -----------------------------------------------------------------------

# The factors of p[1] and those that lead from p[k] and p[k - 1] to p[k + 1], as functions of x and k.
_POLYNOMIALS: dict[str, tuple[Callable[[Array], Array], Callable[[Array, int, Array, Array], Array]]] = {
    "chebyshev_polynomial_t": (lambda x: x, lambda x, k, p, q: 2 * x * p - q),
    "chebyshev_polynomial_u": (lambda x: 2 * x, lambda x, k, p, q: 2 * x * p - q),
    "chebyshev_polynomial_v": (lambda x: 2 * x - 1, lambda x, k, p, q: 2 * x * p - q),
    "chebyshev_polynomial_w": (lambda x: 2 * x + 1, lambda x, k, p, q: 2 * x * p - q),
    "hermite_polynomial_h": (lambda x: 2 * x, lambda x, k, p, q: 2 * x * p - 2 * k * q),
    "hermite_polynomial_he": (lambda x: x, lambda x, k, p, q: x * p - k * q),
    "laguerre_polynomial_l": (lambda x: 1 - x, lambda x, k, p, q: ((2 * k + 1 - x) * p - k * q) / (k + 1)),
    "legendre_polynomial_p": (lambda x: x, lambda x, k, p, q: ((2 * k + 1) * x * p - k * q) / (k + 1)),
}


def _polynomial(name: str, shifted: bool) -> Callable[..., Array]:
    first, following = _POLYNOMIALS[name.removeprefix("shifted_")]

    def polynomial(input: Array, n: Array) -> Array:
        degrees = np.asarray(concrete(n, name)).astype(np.int64)
        x = input * 1.0 if hasattr(input, "dtype") else np.asarray(input, np.float64)
        x = 2 * x - 1 if shifted else x
        shape = np.broadcast_shapes(tuple(x.shape), degrees.shape)
        x = x if tuple(x.shape) == shape else broadcast_to_p(x, shape=shape)
        before, now = x * 0 + 1, first(x)
        y = ew.where(degrees == 0, before, ew.where(degrees < 0, x.dtype.type(0), now))
        for k in range(1, int(degrees.max(initial=0))):
            before, now = now, following(x, k, now, before)
            y = ew.where(degrees > k, now, y)
        return y

    kind = name.replace("_polynomial", "").replace("_", " ").capitalize()
    polynomial.__name__ = polynomial.__qualname__ = name
    polynomial.__doc__ = f"{kind} polynomial of degree `n` at `input`, by its recurrence; 0 for negative degrees."
    return polynomial


globals().update({name: _polynomial(name, shifted=False) for name in _POLYNOMIALS})
globals().update({f"shifted_{name}": _polynomial(f"shifted_{name}", shifted=True) for name in list(_POLYNOMIALS)[:4]})

# --- public functions -----------------------------------------------------------------------------


def _refuse_tracked(op: str, **given: Array) -> None:
    """Refuse gradients with respect to arguments whose derivative is not implemented."""
    for name, x in given.items():
        if getattr(x, "_tracks", False):
            expected = "an argument that requires no gradient: there is no derivative in it, use .detach()"
            raise bad_option(op, name, "a tracked tensor", expected)


def gammainc(input: Array, other: Array) -> Array:
    """Regularised lower incomplete gamma function P(input, other); only `other` has a gradient.

    Example:
        >>> import glassgrad as gg
        >>> round(gg.special.gammainc(gg.tensor(1.0), gg.tensor(2.0)).item(), 4)
        0.8647
    """
    _refuse_tracked("gammainc", input=input)
    return gammainc_p(input, other)


def gammaincc(input: Array, other: Array) -> Array:
    """Regularised upper incomplete gamma function Q(input, other) = 1 - P; only `other` has a gradient."""
    _refuse_tracked("gammaincc", input=input)
    return gammaincc_p(input, other)


def betainc(a: Array, b: Array, x: Array) -> Array:
    """Regularised incomplete beta function I_x(a, b); only `x` has a gradient."""
    _refuse_tracked("betainc", a=a, b=b)
    return betainc_p(a, b, x)


def zeta(input: Array, other: Array) -> Array:
    """Hurwitz' zeta function, the sum of (other + k)**-input over k = 0, 1, ..., with a gradient in `other` alone."""
    _refuse_tracked("zeta", input=input)
    return zeta_p(input, other)


def modified_bessel_i0(input: Array) -> Array:
    """Modified Bessel function I0(x): `i0`."""
    return i0(input)


def modified_bessel_i1(input: Array) -> Array:
    """Modified Bessel function I1(x): `i1`."""
    return i1(input)


def spherical_bessel_j0(input: Array) -> Array:
    """Spherical Bessel function sin(x) / x, 1 at 0."""
    return ew.where(ew.isinf(input), 0.0, ew.sinc(ew.where(ew.isinf(input), 0.0, input) * (1 / np.pi)))
