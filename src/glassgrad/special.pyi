# Written by tools/stubs.py from the functions as they are when the library runs.
import builtins
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple, ParamSpec, Self, TypeAlias, TypeVar, overload

import numpy as np
import numpy.typing as npt
from numpy.typing import DTypeLike
from glassgrad.engine.tensors.devices import device as device
from glassgrad.engine.random import Generator as Generator
from glassgrad.engine.tensor import Tensor as Tensor, TensorLike
from glassgrad.engine.typed import (
    CholeskyInfo,
    Device,
    EigResult,
    EighResult,
    Extreme,
    Frexp,
    Histogram,
    Ints,
    InverseInfo,
    LUFactors,
    LUFactorsInfo,
    LUResult,
    Number,
    QRResult,
    Reflectors,
    SVDResult,
    Sizes,
    SlogdetResult,
    SolveInfo,
    TensorOrArray,
    Tensors,
    TriangularSolution,
)

def airy_ai(x: TensorOrArray) -> TensorOrArray:
    """Airy's function Ai(x)"""

def bessel_j0(x: TensorOrArray) -> TensorOrArray:
    """Bessel function J0(x)"""

def bessel_j1(x: TensorOrArray) -> TensorOrArray:
    """Bessel function J1(x)"""

def bessel_y0(x: TensorOrArray) -> TensorOrArray:
    """Bessel function Y0(x)"""

def bessel_y1(x: TensorOrArray) -> TensorOrArray:
    """Bessel function Y1(x)"""

def betainc(a: TensorLike, b: TensorLike, x: TensorLike) -> Tensor:
    """Regularised incomplete beta function I_x(a, b); only `x` has a gradient."""

def chebyshev_polynomial_t(input: TensorLike, n: TensorLike) -> Tensor:
    """Chebyshev t polynomial of degree `n` at `input`, by its recurrence; 0 for negative degrees."""

def chebyshev_polynomial_u(input: TensorLike, n: TensorLike) -> Tensor:
    """Chebyshev u polynomial of degree `n` at `input`, by its recurrence; 0 for negative degrees."""

def chebyshev_polynomial_v(input: TensorLike, n: TensorLike) -> Tensor:
    """Chebyshev v polynomial of degree `n` at `input`, by its recurrence; 0 for negative degrees."""

def chebyshev_polynomial_w(input: TensorLike, n: TensorLike) -> Tensor:
    """Chebyshev w polynomial of degree `n` at `input`, by its recurrence; 0 for negative degrees."""

def digamma(x: TensorOrArray) -> TensorOrArray:
    """Gamma'(x) / Gamma(x)"""

def entr(x: TensorOrArray) -> TensorOrArray:
    """-x * log(x)"""

def erf(x: TensorOrArray) -> TensorOrArray:
    """2 / sqrt(pi) * integral of exp(-u**2) from 0 to x"""

def erfc(x: TensorOrArray) -> TensorOrArray:
    """1 - erf(x)"""

def erfcx(x: TensorOrArray) -> TensorOrArray:
    """exp(x**2) * erfc(x)"""

def erfinv(x: TensorOrArray) -> TensorOrArray:
    """the y with erf(y) = x"""

def exp2(x: TensorOrArray) -> TensorOrArray:
    """2 ** x"""

def expit(x: TensorOrArray) -> TensorOrArray:
    """1 / (1 + exp(-x))"""

def expm1(x: TensorOrArray) -> TensorOrArray:
    """exp(x) - 1"""

def gammainc(input: TensorLike, other: TensorLike) -> Tensor:
    """Regularised lower incomplete gamma function P(input, other); only `other` has a gradient."""

def gammaincc(input: TensorLike, other: TensorLike) -> Tensor:
    """Regularised upper incomplete gamma function Q(input, other) = 1 - P; only `other` has a gradient."""

def gammaln(x: TensorOrArray) -> TensorOrArray:
    """log(|Gamma(x)|)"""

def hermite_polynomial_h(input: TensorLike, n: TensorLike) -> Tensor:
    """Hermite h polynomial of degree `n` at `input`, by its recurrence; 0 for negative degrees."""

def hermite_polynomial_he(input: TensorLike, n: TensorLike) -> Tensor:
    """Hermite he polynomial of degree `n` at `input`, by its recurrence; 0 for negative degrees."""

def i0(x: TensorOrArray) -> TensorOrArray:
    """modified Bessel function I0(x)"""

def i0e(x: TensorOrArray) -> TensorOrArray:
    """exp(-|x|) * I0(x)"""

def i1(x: TensorOrArray) -> TensorOrArray:
    """modified Bessel function I1(x)"""

def i1e(x: TensorOrArray) -> TensorOrArray:
    """exp(-|x|) * I1(x)"""

def laguerre_polynomial_l(input: TensorLike, n: TensorLike) -> Tensor:
    """Laguerre l polynomial of degree `n` at `input`, by its recurrence; 0 for negative degrees."""

def legendre_polynomial_p(input: TensorLike, n: TensorLike) -> Tensor:
    """Legendre p polynomial of degree `n` at `input`, by its recurrence; 0 for negative degrees."""

def log1p(x: TensorOrArray) -> TensorOrArray:
    """log(1 + x)"""

def log_ndtr(x: TensorOrArray) -> TensorOrArray:
    """log of the normal distribution function"""

@overload
def log_softmax(x: TensorOrArray, dim: builtins.int = -1, dtype: DTypeLike | None = None) -> TensorOrArray:
    """x - logsumexp(x) along `dim`."""

@overload
def log_softmax(x: TensorOrArray, *, axis: builtins.int = -1, dtype: DTypeLike | None = None) -> TensorOrArray: ...
def logit(x: TensorOrArray, eps: builtins.float | None = None) -> TensorOrArray:
    """log(x / (1 - x)); with `eps`, x is limited to [eps, 1 - eps] first."""

@overload
def logsumexp(x: TensorOrArray, dim: Ints | None = None, keepdim: builtins.bool = False) -> TensorOrArray:
    """log(sum(exp(x))) over `dim`, without overflow; -inf where every element is -inf."""

@overload
def logsumexp(x: TensorOrArray, *, axis: Ints | None = None, keepdims: builtins.bool = False) -> TensorOrArray: ...
def modified_bessel_i0(input: TensorOrArray) -> TensorOrArray:
    """Modified Bessel function I0(x): `i0`."""

def modified_bessel_i1(input: TensorOrArray) -> TensorOrArray:
    """Modified Bessel function I1(x): `i1`."""

def modified_bessel_k0(x: TensorOrArray) -> TensorOrArray:
    """modified Bessel function K0(x)"""

def modified_bessel_k1(x: TensorOrArray) -> TensorOrArray:
    """modified Bessel function K1(x)"""

def multigammaln(x: TensorOrArray, p: builtins.int) -> TensorOrArray:
    """log of the multivariate gamma function of dimension p."""

def ndtr(x: TensorOrArray) -> TensorOrArray:
    """normal distribution function"""

def ndtri(x: TensorOrArray) -> TensorOrArray:
    """the y with ndtr(y) = x"""

def polygamma(n: builtins.int, x: TensorLike) -> Tensor:
    """The n-th derivative of digamma(x), n >= 0."""

def psi(x: TensorOrArray) -> TensorOrArray:
    """Gamma'(x) / Gamma(x)"""

def round(x: TensorOrArray, decimals: builtins.int = 0) -> TensorOrArray:
    """Round to `decimals` places, ties to even. The gradient is 0."""

def scaled_modified_bessel_k0(x: TensorOrArray) -> TensorOrArray:
    """exp(x) * K0(x)"""

def scaled_modified_bessel_k1(x: TensorOrArray) -> TensorOrArray:
    """exp(x) * K1(x)"""

def shifted_chebyshev_polynomial_t(input: TensorLike, n: TensorLike) -> Tensor:
    """Shifted chebyshev t polynomial of degree `n` at `input`, by its recurrence; 0 for negative degrees."""

def shifted_chebyshev_polynomial_u(input: TensorLike, n: TensorLike) -> Tensor:
    """Shifted chebyshev u polynomial of degree `n` at `input`, by its recurrence; 0 for negative degrees."""

def shifted_chebyshev_polynomial_v(input: TensorLike, n: TensorLike) -> Tensor:
    """Shifted chebyshev v polynomial of degree `n` at `input`, by its recurrence; 0 for negative degrees."""

def shifted_chebyshev_polynomial_w(input: TensorLike, n: TensorLike) -> Tensor:
    """Shifted chebyshev w polynomial of degree `n` at `input`, by its recurrence; 0 for negative degrees."""

def sinc(x: TensorOrArray) -> TensorOrArray:
    """sin(pi * x) / (pi * x)"""

@overload
def softmax(x: TensorOrArray, dim: builtins.int = -1, dtype: DTypeLike | None = None) -> TensorOrArray:
    """exp(x) / sum(exp(x)) along `dim`."""

@overload
def softmax(x: TensorOrArray, *, axis: builtins.int = -1, dtype: DTypeLike | None = None) -> TensorOrArray: ...
def spherical_bessel_j0(input: TensorOrArray) -> TensorOrArray:
    """Spherical Bessel function sin(x) / x, 1 at 0."""

def xlog1py(x: TensorLike, other: TensorLike) -> Tensor:
    """a * log(1 + b), 0 where a is 0"""

def xlogy(x: TensorLike, other: TensorLike) -> Tensor:
    """a * log(b), 0 where a is 0"""

def zeta(input: TensorLike, other: TensorLike) -> Tensor:
    """Hurwitz' zeta function, the sum of (other + k)**-input over k = 0, 1, ..., with a gradient in `other` alone."""
