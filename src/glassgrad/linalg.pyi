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

class LstsqResult(NamedTuple):
    """What `lstsq` returns."""

    solution: Tensor
    residuals: Tensor
    rank: Tensor
    singular_values: Tensor

def cholesky(x: TensorOrArray, upper: builtins.bool = False) -> TensorOrArray:
    """The lower triangular y with y yT = x for a positive definite (..., n, n); with `upper` its transpose."""

def cholesky_ex(x: TensorOrArray, *, upper: builtins.bool = False, check_errors: builtins.bool = False) -> CholeskyInfo:
    """`cholesky` that does not raise: NaN and `info` above 0 for a matrix that is not positive definite."""

def cond(x: TensorOrArray, p: builtins.float | builtins.str | None = None) -> TensorOrArray:
    """Condition number: the ratio of the largest to the smallest singular value, or norm(x) norm(x**-1) for `p`."""

def cross(a: TensorLike, b: TensorLike, dim: builtins.int = -1) -> Tensor:
    """Cross product of vectors of 3 along `dim`."""

def det(x: TensorOrArray) -> TensorOrArray:
    """determinant of x"""

def diagonal(
    x: TensorOrArray, *, offset: builtins.int = 0, dim1: builtins.int = -2, dim2: builtins.int = -1
) -> TensorOrArray:
    """The diagonals of the matrices in the last two dimensions; `glassgrad.diagonal` takes the first two."""

def eig(x: TensorOrArray) -> EigResult:
    """Eigenvalues (..., n) and eigenvectors (columns) of (..., n, n), real or complex; both results are complex."""

def eigh(x: TensorOrArray, UPLO: builtins.str = "L") -> EighResult:
    """Eigenvalues in ascending order and eigenvectors (columns) of a symmetric (..., n, n)."""

def eigvals(x: TensorOrArray) -> TensorOrArray:
    """Eigenvalues (..., n) of (..., n, n), complex."""

def eigvalsh(x: TensorOrArray, UPLO: builtins.str = "L") -> TensorOrArray:
    """Eigenvalues of a symmetric (..., n, n) in ascending order; reads one triangle, as `eigh` does."""

def householder_product(x: TensorLike, tau: TensorLike) -> Tensor:
    """The first columns of the product of the reflections in x (..., n, m) with factors tau (..., k)."""

def inv(x: TensorOrArray) -> TensorOrArray:
    """x**-1"""

def inv_ex(x: TensorOrArray, *, check_errors: builtins.bool = False) -> InverseInfo:
    """`inv` that does not raise: NaN and `info` above 0 for a singular matrix."""

def lstsq(
    a: TensorLike, b: TensorLike, rcond: builtins.float | None = None, *, driver: builtins.str | None = None
) -> LstsqResult:
    """The x that minimises |a x - b|, and has the least norm if there are several: a (..., m, n), b (..., m, k)."""

def lu(x: TensorOrArray, *, pivot: builtins.bool = True) -> LUResult:
    """P, L, U with P L U = x (..., m, n): a permutation, a unit lower and an upper triangular matrix: `linalg.lu`."""

def lu_factor(x: TensorOrArray, *, pivot: builtins.bool = True) -> LUFactors:
    """The factors L and U of (..., m, n) in one matrix, and LAPACK's row swaps (from 1): `linalg.lu_factor`."""

def lu_factor_ex(
    x: TensorOrArray, *, pivot: builtins.bool = True, check_errors: builtins.bool = False
) -> LUFactorsInfo:
    """`lu_factor` with `info`: above 0 where U has a zero on its diagonal."""

def lu_solve(
    LU: TensorLike, pivots: TensorLike, B: TensorLike, *, left: builtins.bool = True, adjoint: builtins.bool = False
) -> Tensor:
    """The x with a x = b (or x a = b, if not `left`), from `lu_factor(a)`; with `adjoint` for the adjoint of a."""

def matmul(x: TensorLike, other: TensorLike) -> Tensor:
    """a @ b"""

def matrix_exp(x: TensorOrArray) -> TensorOrArray:
    """Exponential of (..., n, n): 1 + x + x @ x / 2! + x @ x @ x / 3! + ..."""

def matrix_norm(
    x: TensorOrArray,
    ord: builtins.float | builtins.str | None = "fro",
    dim: builtins.tuple[builtins.int, builtins.int] = (-2, -1),
    keepdim: builtins.bool = False,
    *,
    dtype: DTypeLike | None = None,
) -> TensorOrArray:
    """Norm of matrices: "fro", "nuc" (sum of singular values), 2, -2 (largest, smallest), 1, -1, inf, -inf."""

def matrix_power(x: TensorOrArray, n: builtins.int) -> TensorOrArray:
    """x multiplied by itself n times by repeated squaring (the inverse of x for negative n)."""

def matrix_rank(
    x: TensorLike, *, atol: TensorLike | None = None, rtol: TensorLike | None = None, hermitian: builtins.bool = False
) -> Tensor:
    """Number of singular values above `atol` and above `rtol` times the largest; no gradient."""

def multi_dot(tensors: Tensors) -> Tensor:
    """Product of several matrices in the order that costs least; the first and the last may be vectors."""

def norm(
    x: TensorOrArray,
    ord: builtins.float | builtins.str | None = None,
    dim: Ints | None = None,
    keepdim: builtins.bool = False,
    *,
    dtype: DTypeLike | None = None,
) -> TensorOrArray:
    """Vector norm over one `dim` (or all of them, without `ord`), matrix norm over two."""

def pinv(
    x: TensorOrArray,
    *,
    atol: builtins.float | None = None,
    rtol: builtins.float | None = None,
    hermitian: builtins.bool = False,
) -> TensorOrArray:
    """Pseudo-inverse (Moore and Penrose) of (..., m, n): shape (..., n, m)."""

def qr(x: TensorOrArray, mode: builtins.str = "reduced") -> QRResult:
    """q, r with q r = x, the columns of q orthonormal and r upper triangular; x (..., m, n)."""

def slogdet(x: TensorOrArray) -> SlogdetResult:
    """Sign and logarithm of the absolute determinant of (..., n, n): two arrays of shape (...)."""

def solve(a: TensorLike, b: TensorLike, *, left: builtins.bool = True) -> Tensor:
    """The x with a x = b (or x a = b, if not `left`): a (..., n, n), b (..., n, k) or (n,)."""

def solve_ex(
    a: TensorLike, b: TensorLike, *, left: builtins.bool = True, check_errors: builtins.bool = False
) -> SolveInfo:
    """`solve` that does not raise: NaN and `info` above 0 for a singular matrix."""

def solve_triangular(
    a: TensorLike,
    b: TensorLike,
    *,
    upper: builtins.bool,
    left: builtins.bool = True,
    unitriangular: builtins.bool = False,
) -> Tensor:
    """The x with a x = b (or x a = b, if not `left`) for triangular a; the other triangle is not read."""

def svd(x: TensorOrArray, full_matrices: builtins.bool = True) -> SVDResult:
    """u, s, vh with u diag(s) vh = x (..., m, n), singular values in descending order: `linalg.svd`."""

def svdvals(x: TensorOrArray) -> TensorOrArray:
    """Singular values of (..., m, n), in descending order."""

def tensorinv(x: TensorOrArray, ind: builtins.int = 2) -> TensorOrArray:
    """The inverse of x as a map from its last dimensions to its first `ind` ones, whose sizes have equal products."""

def tensorsolve(a: TensorLike, b: TensorLike, dims: Sequence[builtins.int] | None = None) -> Tensor:
    """The x with tensordot(a, x, x.ndim) = b; `dims` of a are moved to its end first."""

def vander(x: TensorOrArray, *, N: builtins.int | None = None) -> TensorOrArray:
    """The powers 0 to N - 1 of each element, as a new last dimension; N is the size of the last one by default."""

def vecdot(a: TensorLike, b: TensorLike, dim: builtins.int = -1) -> Tensor:
    """Sum of products along `dim`, with the conjugate of a; the other dimensions broadcast."""

def vector_norm(
    x: TensorOrArray,
    ord: builtins.float | builtins.str | None = 2,
    dim: Ints | None = None,
    keepdim: builtins.bool = False,
    *,
    dtype: DTypeLike | None = None,
) -> TensorOrArray:
    """(sum of |x|**ord)**(1/ord) over `dim`; inf and -inf give the largest and smallest |x|, 0 counts nonzeros."""
