"""Special functions of SciPy, which is imported on their first call.

Definitions and derivatives: Abramowitz and Stegun, chapters 6 (gamma), 7 (error function) and 9 (Bessel).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from types import ModuleType
from typing import Any

import numpy as np

from glassgrad.errors.packages import needed, present
from glassgrad.ops import elementwise as ew
from glassgrad.ops.core import Array, Elementwise, elementwise
from glassgrad.ops.elementwise import EDGES
from glassgrad.ops.kernels.blocks import in_blocks, in_native_blocks
from glassgrad.ops.samples import reals

_DENSITY = 1 / math.sqrt(2 * math.pi)
_nan = float("nan")
_TWO_OVER_ROOT_PI = 2 / math.sqrt(math.pi)


# Without SciPy, Python computes these one number at a time: slow, but GELU and erf work.
_PYTHONS = {"erf": math.erf, "erfc": math.erfc}


def _by_python(name: str) -> Callable[..., Any]:
    by_number = np.frompyfunc(_PYTHONS[name], 1, 1)
    return lambda x: np.asarray(by_number(x)).astype(x.dtype)


@lru_cache(maxsize=64)
def _scipy(name: str) -> Callable[..., Any]:
    if name in _PYTHONS and not present("scipy"):
        return _by_python(name)
    with needed("scipy", name):
        import scipy.special

    function: Callable[..., Any] = getattr(scipy.special, name)

    def of_halves(*x: Array) -> Any:
        # SciPy has no float16 loops and returns float32 or float64, depending on the function.
        if all(getattr(one, "dtype", None) == np.float16 for one in x):
            return np.asarray(function(*[one.astype(np.float32) for one in x])).astype(np.float16)
        return function(*x)

    return of_halves


def _by(name: str) -> Callable[..., Any]:
    """Return a forward that calls SciPy's `name`, or the array namespace's own function if it has one."""
    return lambda xp, *x: (_scipy(name) if xp is np else getattr(xp, name, None) or _scipy(name))(*x)


# --- error functions and the normal distribution --------------------------------------------------


_erf = in_native_blocks(_by("erf"))


_erfc = in_native_blocks(_by("erfc"))


@in_native_blocks
def _gaussian(y: Array, x: Array) -> Array:
    return _TWO_OVER_ROOT_PI * ew.exp(-x * x)


@in_native_blocks
def _negative_gaussian(y: Array, x: Array) -> Array:
    return -_TWO_OVER_ROOT_PI * ew.exp(-x * x)


erf = elementwise("erf", _erf, (_gaussian,), saves="x")
erf.describe("2 / sqrt(pi) * integral of exp(-u**2) from 0 to x", "2 / sqrt(pi) * exp(-x**2)", reals(-2, 2), edge=EDGES)
erfc = elementwise("erfc", _erfc, (_negative_gaussian,), saves="x")
erfc.describe("1 - erf(x)", "-2 / sqrt(pi) * exp(-x**2)", reals(-2, 2), edge=EDGES)
erfcx = elementwise("erfcx", _by("erfcx"), (lambda y, x: 2 * x * y - _TWO_OVER_ROOT_PI,), saves=("x", "y"))
erfcx.describe("exp(x**2) * erfc(x)", "2 * x * y - 2 / sqrt(pi)", reals(-1, 2))
erfinv = elementwise("erfinv", _by("erfinv"), (in_blocks(lambda y, x: ew.exp(y * y) / _TWO_OVER_ROOT_PI),), saves="y")
erfinv.describe("the y with erf(y) = x", "sqrt(pi) / 2 * exp(y**2)", reals(-0.9, 0.9), edge=EDGES)
ndtr = elementwise("ndtr", _by("ndtr"), (lambda y, x: _DENSITY * ew.exp(-0.5 * x * x),), saves="x")
ndtr.describe("normal distribution function", "exp(-x**2 / 2) / sqrt(2 * pi)", reals(-3, 3), edge=EDGES)
log_ndtr = elementwise(
    "log_ndtr", _by("log_ndtr"), (lambda y, x: _DENSITY * ew.exp(-0.5 * x * x - y),), saves=("x", "y")
)
log_ndtr.describe("log of the normal distribution function", "exp(-x**2 / 2 - y) / sqrt(2 * pi)", reals(-3, 3))
ndtri = elementwise("ndtri", _by("ndtri"), (lambda y, x: ew.exp(0.5 * y * y) / _DENSITY,), saves="y")
ndtri.describe("the y with ndtr(y) = x", "sqrt(2 * pi) * exp(y**2 / 2)", reals(0.1, 0.9))

# --- gamma functions ------------------------------------------------------------------------------

gammaln = elementwise("gammaln", _by("gammaln"), (lambda y, x: digamma(x),), saves="x")
gammaln.describe("log(|Gamma(x)|)", "digamma(x)", reals(0.3, 5), edge=(1.0, 2.0, 1e3, 1e-30, _nan))
digamma: Elementwise = elementwise("digamma", _by("psi"), (lambda y, x: polygamma_p(x, order=1),), saves="x")
digamma.describe("Gamma'(x) / Gamma(x)", "polygamma(1, x)", reals(0.3, 5), edge=(1.0, 2.0, 1e3, _nan))


def _polygamma(xp: ModuleType, x: Array, *, order: int) -> Array:
    y = np.asarray(_by("polygamma")(xp, order, x))  # float64; near a pole it exceeds the largest float32
    with np.errstate(over="ignore"):
        return y.astype(x.dtype if x.dtype.kind in "fV" else np.float64, copy=False)


polygamma_p: Elementwise = elementwise(
    "polygamma",
    _polygamma,
    (lambda y, x, *, order: polygamma_p(x, order=order + 1),),
    saves="x",
    sample_params={"order": 1},
)
polygamma_p.describe("derivative of digamma, `order` times", "polygamma(order + 1, x)", reals(0.8, 5))

# --- x * log(y) and entropies ---------------------------------------------------------------------


def _xlogy_first(y: Array, a: Array, b: Array) -> Array:
    hidden = ew.logical_and(a == 0, b <= 0)
    return ew.where(hidden, 0.0, ew.log(ew.where(hidden, 1.0, b)))


def _xlog1py_first(y: Array, a: Array, b: Array) -> Array:
    hidden = ew.logical_and(a == 0, b <= -1)
    return ew.where(hidden, 0.0, ew.log1p(ew.where(hidden, 0.0, b)))


def _by_two(name: str) -> Callable[..., Array]:
    """Return a SciPy function of two arguments in which Python numbers adopt the array's dtype, as in NumPy."""
    function = _by(name)

    def forward(xp: ModuleType, a: Array, b: Array) -> Array:
        if hasattr(xp, name):
            return function(xp, a, b)
        dtype = np.result_type(a, b)
        return function(xp, *(np.asarray(x, dtype) if isinstance(x, int | float) else x for x in (a, b)))

    return forward


xlogy = elementwise("xlogy", _by_two("xlogy"), (_xlogy_first, lambda y, a, b: a / b), saves="x", native=True)
xlogy.describe("a * log(b), 0 where a is 0", "log(b), a / b", reals(-2, 2), reals(0.3, 3), edge=EDGES)
xlog1py = elementwise("xlog1py", _by_two("xlog1py"), (_xlog1py_first, lambda y, a, b: a / (1 + b)), saves="x")
xlog1py.describe("a * log(1 + b), 0 where a is 0", "log(1 + b), a / (1 + b)", reals(-2, 2), reals(-0.7, 3), edge=EDGES)
entr = elementwise("entr", _by("entr"), (lambda y, x: -ew.log(x) - 1,), saves="x")
entr.describe("-x * log(x)", "-log(x) - 1", reals(0.2, 3), edge=(0.0, 1.0, 1e-30, _nan))

# --- Bessel functions -----------------------------------------------------------------------------


def _i1_slope(y: Array, x: Array) -> Array:
    # I0(x) - I1(x) / x, whose limit at 0 is 1/2.
    zero = x == 0
    return ew.where(zero, 0.5, i0(x) - y / ew.where(zero, 1.0, x))


def _i1e_slope(y: Array, x: Array) -> Array:
    zero = x == 0
    apart = ew.where(zero, 1.0, x)
    return ew.where(zero, 0.5, i0e(x) - y * (ew.sign(x) + 1 / apart))


i0 = elementwise("i0", _by("i0"), (lambda y, x: i1(x),), saves="x")
i0.describe("modified Bessel function I0(x)", "I1(x)", reals(-3, 3), edge=(0.0, 1.0, -1.0, _nan))
i0e = elementwise("i0e", _by("i0e"), (lambda y, x: i1e(x) - ew.sign(x) * y,), saves=("x", "y"))
i0e.describe("exp(-|x|) * I0(x)", "i1e(x) - sign(x) * y", reals(-3, 3, 0), edge=(0.0, 1.0, -1.0, 1e3, _nan))
i1: Elementwise = elementwise("i1", _by("i1"), (_i1_slope,), saves=("x", "y"))
i1.describe("modified Bessel function I1(x)", "I0(x) - y / x", reals(-3, 3, 0), edge=(0.0, 1.0, -1.0, _nan))
i1e: Elementwise = elementwise("i1e", _by("i1e"), (_i1e_slope,), saves=("x", "y"))
i1e.describe("exp(-|x|) * I1(x)", "i0e(x) - y * (sign(x) + 1 / x)", reals(-3, 3, 0), edge=(0.0, 1.0, -1.0, 1e3, _nan))

# --- public functions -----------------------------------------------------------------------------


def polygamma(n: int, x: Array) -> Array:
    """The n-th derivative of digamma(x), n >= 0.

    Example:
        >>> import glassgrad as gg
        >>> round(gg.polygamma(1, gg.tensor(1.0)).item(), 4)
        1.6449
    """
    if hasattr(n, "_tracks"):  # when called as a method, the tensor comes first
        n, x = x, n
    return digamma(x) if n == 0 else polygamma_p(x, order=int(n))


def multigammaln(x: Array, p: int) -> Array:
    """log of the multivariate gamma function of dimension p."""
    total = p * (p - 1) / 4 * math.log(math.pi)
    for j in range(p):
        total = total + gammaln(x - j / 2)
    return total
