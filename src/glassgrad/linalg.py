"""`torch.linalg`: norms, products, systems of equations and factorisations of (batches of) matrices.

Degenerate cases: `inv`, `solve` and `slogdet`'s gradient raise for singular matrices; `det` is differentiable there.
`pinv` is differentiable while the rank stays the same. Gradients of eigenvectors and singular vectors are infinite or
NaN where two values coincide; gradients of the values alone are finite there.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from glassgrad.errors.missing import getter, lister
from glassgrad.ops import elementwise as _ew
from glassgrad.ops.complex_input import all_take_complex
from glassgrad.ops.complexes import _squared_size, real
from glassgrad.ops.core import Array, bad_option, canonical_axis
from glassgrad.ops.eigen import eig, eigvals
from glassgrad.ops.einsum import chain_matmul
from glassgrad.ops.factorise import cholesky, eigh, eigvalsh, linalg_svd, nuclear_norm, qr, svdvals
from glassgrad.ops.linalg import cross, matmul, vecdot
from glassgrad.ops.lu import (
    cholesky_ex,
    householder_product,
    inv_ex,
    linalg_lu,
    linalg_lu_solve,
    lu_factor,
    lu_factor_ex,
    matrix_exp,
    solve_ex,
)
from glassgrad.ops.names import at_home, public
from glassgrad.ops.narrow import finfo
from glassgrad.ops.norms import vector_norm
from glassgrad.ops.reduce import amax, amin, sum
from glassgrad.ops.scan import cumprod
from glassgrad.ops.shape import astype, broadcast_to_p, cat, movedim, permute_p, reshape_p
from glassgrad.ops.solve import det, inv, matrix_power, pinv, slogdet, solve, solve_triangular
from glassgrad.ops.strided import diagonal as _diagonal

svd = linalg_svd
lu = linalg_lu
lu_solve = linalg_lu_solve


class LstsqResult(NamedTuple):
    """What `lstsq` returns."""

    solution: Any
    residuals: Any
    rank: Any
    singular_values: Any


def multi_dot(tensors: Any) -> Array:
    """Product of several matrices in the order that costs least; the first and the last may be vectors."""
    return chain_matmul(*tensors)


def _last_two(x: Array, dim: tuple[int, int]) -> Array:
    """Move the matrix dimensions to the end."""
    ndim = len(x.shape)
    rows, columns = canonical_axis(dim[0], ndim), canonical_axis(dim[1], ndim)
    if (rows, columns) == (ndim - 2, ndim - 1):
        return x
    return permute_p(x, axes=(*(axis for axis in range(ndim) if axis not in (rows, columns)), rows, columns))


def matrix_norm(
    x: Array, ord: Any = "fro", dim: tuple[int, int] = (-2, -1), keepdim: bool = False, *, dtype: Any = None
) -> Array:
    """Norm of matrices: "fro", "nuc" (sum of singular values), 2, -2 (largest, smallest), 1, -1, inf, -inf.

    1 and inf are the largest sum of absolute values of a column and of a row; -1 and -inf the smallest.
    """
    moved = _last_two(x if dtype is None else astype(x, dtype), dim)
    if ord == "fro":
        y = vector_norm(moved, 2, (-2, -1))
    elif ord == "nuc":
        y = nuclear_norm(moved)
    elif ord in (2, -2):
        y = (amax if ord > 0 else amin)(svdvals(moved), -1)
    elif ord in (1, -1, math.inf, -math.inf):
        sums = sum(_ew.abs(moved), -2 if abs(ord) == 1 else -1)
        y = (amax if ord > 0 else amin)(sums, -1)
    else:
        expected = "'fro', 'nuc', 1, -1, 2, -2, inf or -inf"
        raise bad_option("matrix_norm", "ord", ord, expected)
    if not keepdim:
        return y
    axes = {canonical_axis(axis, len(x.shape)) for axis in dim}
    return y.reshape(tuple(1 if axis in axes else n for axis, n in enumerate(x.shape)))


def norm(x: Array, ord: Any = None, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Array:
    """Vector norm over one `dim` (or all of them, without `ord`), matrix norm over two."""
    x = x if dtype is None else astype(x, dtype)
    if ord is not None and dim is None and len(x.shape) not in {1, 2}:
        expected = "dimensions, for an order of norm of an array that is no vector and no matrix"
        raise bad_option("norm", "dim", dim, expected)
    if isinstance(ord, str) or (ord is not None and dim is None and len(x.shape) == 2) or _is_pair(dim, ord):
        return matrix_norm(x, ord, (-2, -1) if dim is None else tuple(dim), keepdim)
    return vector_norm(x, 2 if ord is None else ord, dim, keepdim)


def _is_pair(dim: Any, ord: Any) -> bool:
    return ord is not None and isinstance(dim, tuple | list) and len(dim) == 2


def cond(x: Array, p: Any = None) -> Array:
    """Condition number: the ratio of the largest to the smallest singular value, or norm(x) norm(x**-1) for `p`."""
    if p in {None, 2, -2}:
        values = svdvals(x)
        ratio = values[..., 0] / values[..., -1]
        return 1 / ratio if p == -2 else ratio
    return matrix_norm(x, p) * matrix_norm(inv(x), p)


def matrix_rank(x: Array, *, atol: Any = None, rtol: Any = None, hermitian: bool = False) -> Array:
    """Number of singular values above `atol` and above `rtol` times the largest; no gradient.

    Either may be one number, or one per matrix. `rtol` defaults to max(m, n) times the machine epsilon, or to 0 if
    `atol` is above 0. With `hermitian` the singular values are the absolute eigenvalues.
    """
    values = _ew.abs(eigvalsh(x)) if hermitian else svdvals(x)
    if not values.shape[-1]:
        return sum(astype(values, np.int64), -1)
    absolute = _beside_values(0.0 if atol is None else atol)
    if rtol is None:
        relative = _ew.where(absolute > 0, 0.0, max(x.shape[-2:]) * float(finfo(x.dtype).eps))
    else:
        relative = _beside_values(rtol)
    return sum(astype(values > _ew.maximum(amax(values, -1, True) * relative, absolute), np.int64), -1)


def _beside_values(limit: Any) -> Any:
    """Give a limit per matrix a last dimension, to broadcast against the singular values."""
    plain = limit if hasattr(limit, "shape") else np.asarray(limit)
    return reshape_p(plain, shape=(*plain.shape, 1)) if plain.shape else plain


_DRIVERS = (None, "gels", "gelsy", "gelsd", "gelss")


def lstsq(a: Array, b: Array, rcond: float | None = None, *, driver: str | None = None) -> LstsqResult:
    """The x that minimises |a x - b|, and has the least norm if there are several: a (..., m, n), b (..., m, k).

    b may be a vector (m,), and then x is one too.

    The solution uses singular values, whatever the `driver`. Residuals are the squares |a x - b|**2 of each column
    where a has full column rank and m > n, else empty. With the name of one of LAPACK's drivers, what that driver does
    not compute is empty, as in PyTorch: "gels" gives no rank and no singular values, "gelsy" no residuals and no
    singular values.
    """
    if driver not in _DRIVERS:
        raise bad_option("lstsq", "driver", driver, "None, 'gels', 'gelsy', 'gelsd' or 'gelss'")
    if len(b.shape) == 1:
        found = lstsq(a, reshape_p(b, shape=(*b.shape, 1)), rcond, driver=driver)
        residuals = found.residuals[..., 0] if found.residuals.shape[-1:] == (1,) else found.residuals
        return LstsqResult(found.solution[..., 0], residuals, found.rank, found.singular_values)
    solution = matmul(pinv(a, rtol=rcond), b)
    values = svdvals(a)
    rank = matrix_rank(a, rtol=rcond)
    residuals = real(reshape_p(solution, shape=(math.prod(solution.shape),)))[:0]
    if a.shape[-2] > a.shape[-1] and driver != "gelsy" and (driver == "gels" or bool((rank == a.shape[-1]).all())):
        residuals = sum(_squared_size(matmul(a, solution) - b), -2)
    if driver == "gels":
        rank = reshape_p(rank, shape=(math.prod(rank.shape),))[:0]
    if driver in {"gels", "gelsy"}:
        values = reshape_p(values, shape=(math.prod(values.shape),))[:0]
    return LstsqResult(solution, residuals, rank, values)


def vander(x: Array, *, N: int | None = None) -> Array:
    """The powers 0 to N - 1 of each element, as a new last dimension; N is the size of the last one by default.

    A number is taken as a tensor with one element.
    """
    x = x if x.shape else reshape_p(x, shape=(1,))
    count = x.shape[-1] if N is None else N
    if N is not None and N < 2:
        raise bad_option("vander", "N", N, "more than 1")
    column = reshape_p(x, shape=(*x.shape, 1))
    powers = cumprod(broadcast_to_p(column, shape=(*x.shape, max(count - 1, 0))), -1)
    return cat([np.ones(tuple(column.shape), powers.dtype), powers], -1)


def tensorinv(x: Array, ind: int = 2) -> Array:
    """The inverse of x as a map from its last dimensions to its first `ind` ones, whose sizes have equal products."""
    if ind < 1:
        raise bad_option("tensorinv", "ind", ind, "at least 1")
    first, last = tuple(x.shape[:ind]), tuple(x.shape[ind:])
    side = math.prod(first)
    if side != math.prod(last):
        raise bad_option("tensorinv", "x", tuple(x.shape), f"sizes with equal products before and from {ind} on")
    return reshape_p(inv(reshape_p(x, shape=(side, side))), shape=(*last, *first))


def tensorsolve(a: Array, b: Array, dims: Sequence[int] | None = None) -> Array:
    """The x with tensordot(a, x, x.ndim) = b; `dims` of a are moved to its end first."""
    if dims is not None:
        a = movedim(a, tuple(dims), tuple(range(len(a.shape) - len(dims), len(a.shape))))
    rest, count = tuple(a.shape[len(b.shape) :]), math.prod(b.shape)
    if math.prod(rest) != count:
        raise bad_option("tensorsolve", "a", tuple(a.shape), f"other dimensions with a product of {count}")
    solved = solve(reshape_p(a, shape=(count, count)), reshape_p(b, shape=(count,)))
    return reshape_p(solved, shape=rest)


def diagonal(x: Array, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Array:
    """The diagonals of the matrices in the last two dimensions; `glassgrad.diagonal` takes the first two."""
    return _diagonal(x, offset, dim1, dim2)


__all__ = [
    "cholesky", "cholesky_ex", "cond", "cross", "det", "diagonal", "eig", "eigh", "eigvals", "eigvalsh",
    "householder_product", "inv", "inv_ex", "lstsq", "lu", "lu_factor", "lu_factor_ex", "lu_solve", "matmul",
    "matrix_exp", "matrix_norm", "matrix_power", "matrix_rank", "multi_dot", "norm", "pinv", "qr", "slogdet",
    "solve", "solve_ex", "solve_triangular", "svd", "svdvals", "tensorinv", "tensorsolve", "vander", "vecdot",
    "vector_norm",
]  # fmt: skip  # a table
__dir__ = lister(__name__)

all_take_complex(globals())
# With the other libraries' names of arguments: linalg.solve(A, B), linalg.norm(input, axis=...).
globals().update({name: public(globals()[name], name) for name in __all__})
at_home(__name__, globals())

if not TYPE_CHECKING:
    __getattr__ = getter(__name__)
