"""LU factors, products of reflections, the matrix exponential, and factorisations that report failure in `info`.

Derivatives: LU after de Hoog, Anderssen and Lukas (2011), the exponential after Najfeld and Havel (1995).
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from glassgrad.errors.packages import needed
from glassgrad.ops import elementwise as ew
from glassgrad.ops.axes import swap_last
from glassgrad.ops.complex_input import all_take_complex
from glassgrad.ops.complexes import _adjoint, conj, conj_p
from glassgrad.ops.core import Array, Custom, bad_option, custom
from glassgrad.ops.factorise import _no_elements, cholesky
from glassgrad.ops.index import take_along_axis
from glassgrad.ops.linalg import matmul
from glassgrad.ops.samples import S
from glassgrad.ops.shape import concatenate_p, reshape_p, tril_p, triu_p
from glassgrad.ops.solve import inv, solve, solve_triangular_p
from glassgrad.ops.sort import argsort
from glassgrad.ops.triangles import mirrored
from glassgrad.ops.vmap.rules import native

Shape = tuple[int, ...]


class Reflectors(NamedTuple):
    """What `geqrf` returns."""

    a: Array
    tau: Array


class LUFactors(NamedTuple):
    """What `linalg.lu_factor` returns."""

    LU: Any
    pivots: Any


class LUFactorsInfo(NamedTuple):
    """What `linalg.lu_factor_ex` returns."""

    LU: Any
    pivots: Any
    info: Any


class LUResult(NamedTuple):
    """What `linalg.lu` returns."""

    P: Any
    L: Any
    U: Any


class CholeskyInfo(NamedTuple):
    """What `linalg.cholesky_ex` returns."""

    L: Any
    info: Any


class InverseInfo(NamedTuple):
    """What `linalg.inv_ex` returns."""

    inverse: Any
    info: Any


class SolveInfo(NamedTuple):
    """What `linalg.solve_ex` returns."""

    result: Any
    info: Any


def _check(op: str, x: Array, square: bool = True) -> None:
    """Raise unless x is a (square) matrix."""
    if len(x.shape) < 2 or (square and x.shape[-1] != x.shape[-2]):
        raise bad_option(op, "input", tuple(x.shape), "(..., n, n)" if square else "(..., m, n)")


# --- reflections ----------------------------------------------------------------------------------

# An orthogonal matrix is kept as LAPACK keeps it, as a product of reflections 1 - tau v vH: column i of a matrix holds
# the i-th v below its diagonal, where v is 1; above it v is 0.


def _reflectors(x: Array) -> tuple[Array, Array]:
    rows, columns = x.shape[-2:]
    packed = np.zeros(x.shape, x.dtype)
    tau = np.zeros((*x.shape[:-2], min(rows, columns)), x.dtype)
    for place in np.ndindex(x.shape[:-2]):
        if x[place].size:
            turned, tau[place] = np.linalg.qr(x[place], "raw")
            packed[place] = turned.T
    return packed, tau


reflectors_p: Custom = custom(
    "reflectors",
    lambda xp, x: _reflectors(x),
    vjp=(None,),
    jvp=(None,),
    multiple=True,
    batch=native,
    takes_complex=True,
)
reflectors_p.describe("R, and below it the reflections whose product is Q, with their factors", "none")


def geqrf(x: Array) -> Reflectors:
    """LAPACK's form of the QR factors of (..., n, m): R above, and below it the reflections of Q; no gradient."""
    return Reflectors(*reflectors_p(x))


def _check_factors(op: str, x: Array, tau: Array, tall: bool) -> None:
    if len(x.shape) < 2 or tau.shape[-1] > min(x.shape[-2:]) or (tall and x.shape[-1] > x.shape[-2]):
        given = f"shapes {tuple(x.shape)} and {tuple(tau.shape)}"
        expected = "(..., n, m) and (..., k) with " + ("n >= m >= k" if tall else "k at most n and m")
        raise bad_option(op, "tau", given, expected)


def _reflected(x: Array, tau: Array, y: Array, turned: bool) -> Array:
    """H_1 ... H_k y, or with `turned` its adjoint times y."""
    rows, columns = x.shape[-2:]
    vectors = tril_p(x, diagonal=-1) + np.eye(rows, columns, dtype=x.dtype)
    steps = range(tau.shape[-1])
    for i in steps if turned else reversed(steps):
        v, factor = vectors[..., :, i : i + 1], tau[..., i : i + 1]
        factor = reshape_p(conj(factor) if turned else factor, shape=(*factor.shape, 1))
        y = y - factor * matmul(v, matmul(_adjoint(v), y))
    return y


def householder_product(x: Array, tau: Array) -> Array:
    """The first columns of the product of the reflections in x (..., n, m) with factors tau (..., k)."""
    _check_factors("householder_product", x, tau, tall=True)
    start = ew.where(np.False_, x, np.eye(*x.shape[-2:], dtype=x.dtype))  # a tensor, also without reflections
    return _reflected(x, tau, start, turned=False)


def ormqr(x: Array, tau: Array, other: Array, left: bool = True, transpose: bool = False) -> Array:
    """Q `other`, or `other` Q if not `left`, with the n by n product Q of the reflections, or QH with `transpose`."""
    _check_factors("ormqr", x, tau, tall=False)
    if left:
        return _reflected(x, tau, other, turned=transpose)
    return _adjoint(_reflected(x, tau, _adjoint(other), turned=not transpose))


# --- exponential ----------------------------------------------------------------------------------


def _expm(xp: ModuleType, x: Array) -> Array:
    if not x.size:
        return x.copy()
    with needed("scipy", "matrix exponentials"):
        from scipy.linalg import expm

    return np.asarray(expm(x)).astype(x.dtype, copy=False)


def _directional(x: Array, t: Array) -> Array:
    """The derivative of exp at x along t: the upper right block of exp([[x, t], [0, x]])."""
    n, rows, columns = x.shape[-1], len(x.shape) - 2, len(x.shape) - 1
    zeros = np.zeros(x.shape, x.dtype)
    block = concatenate_p(concatenate_p(x, t, axis=columns), concatenate_p(zeros, x, axis=columns), axis=rows)
    return matrix_exp_p(block)[..., :n, n:]


matrix_exp_p: Custom = custom(
    "matrix_exp",
    _expm,
    saves="x",
    batch=native,
    shape=lambda x: x.shape,
    vjp=(lambda g, y, x: _directional(swap_last(x), g),),
    jvp=(lambda t, y, x: _directional(x, t),),
    takes_complex=True,
)
matrix_exp_p.describe("1 + x + x @ x / 2 + x @ x @ x / 6 + ...", "upper right block of exp([[xT, g], [0, xT]])")
matrix_exp_p.samples = [S((3, 3)), S((2, 2, 2)), S((1, 1))]


def matrix_exp(x: Array) -> Array:
    """Exponential of (..., n, n): 1 + x + x @ x / 2! + x @ x @ x / 3! + ...

    Example:
        >>> import glassgrad as gg
        >>> gg.matrix_exp(gg.tensor([[0.0, 1.0], [0.0, 0.0]])).tolist()
        [[1.0, 1.0], [0.0, 1.0]]
    """
    _check("matrix_exp", x)
    return matrix_exp_p(x if x.dtype.kind in "fcV" else x * 1.0)


# --- LU -------------------------------------------------------------------------------------------


def _each(x: Array, name: str, call: Callable[[Any, Any], Any], shape: Shape, dtype: Any) -> Array:
    """One result of a LAPACK function for every matrix: `call(function, matrix)`."""
    with needed("scipy", "LU decompositions"):
        from scipy.linalg import get_lapack_funcs

    out = np.zeros((*x.shape[:-2], *shape), dtype)
    if 0 in x.shape[-2:]:
        return out
    function = get_lapack_funcs(name, (x,))
    for place in np.ndindex(x.shape[:-2]):
        out[place] = call(function, x[place])
    return out


def _pivot_rows(xp: ModuleType, pivots: Array, *, rows: int) -> Array:
    """The order of the rows after LAPACK's row swaps."""
    order = np.broadcast_to(np.arange(rows), (*pivots.shape[:-1], rows)).copy()
    for step in range(pivots.shape[-1]):
        other = pivots[..., step : step + 1].astype(np.int64) - 1
        mine = order[..., step].copy()
        order[..., step] = np.take_along_axis(order, other, -1)[..., 0]
        np.put_along_axis(order, other, mine[..., None], -1)
    return order


def _eliminated(a: Array) -> Array:
    """Gaussian elimination without row swaps; a column that is already zero is skipped."""
    y = a.copy()
    for k in range(min(y.shape)):
        if y[k, k] != 0:
            y[k + 1 :, k] /= y[k, k]
        y[k + 1 :, k + 1 :] -= y[k + 1 :, k, None] * y[k, k + 1 :]
    return y


def _lu_in_order(getrf: Any, a: Array) -> Array:
    y, pivots, _ = getrf(a)
    # Where two pivots are equally good, rounding may make LAPACK swap their rows again.
    return y if (pivots == np.arange(len(pivots))).all() else _eliminated(a)


def _lower(y: Array) -> Array:
    """L of the two triangles in one matrix, (..., m, k) with ones on its diagonal."""
    rows, columns = y.shape[-2:]
    k = min(rows, columns)
    return tril_p(y[..., :, :k], diagonal=-1) + np.eye(rows, k, dtype=y.dtype)


def _upper(y: Array) -> Array:
    """U of the two triangles in one matrix: (..., k, n)."""
    return triu_p(y[..., : min(y.shape[-2:]), :], diagonal=0)


def _from_left(lower: Array, x: Array) -> Array:
    """L**-1 x."""
    return solve_triangular_p(lower, x, upper=False, unit=True)


def _from_left_turned(lower: Array, x: Array) -> Array:
    """L**-T x."""
    return solve_triangular_p(swap_last(lower), x, upper=True, unit=True)


def _from_right(upper: Array, x: Array) -> Array:
    """x U**-1."""
    return swap_last(solve_triangular_p(swap_last(upper), swap_last(x), upper=False, unit=False))


def _from_right_turned(upper: Array, x: Array) -> Array:
    """x U**-T."""
    return swap_last(solve_triangular_p(upper, swap_last(x), upper=True, unit=False))


def _parts(y: Array) -> tuple[int, int, int, Array, Array, Array, Array]:
    """Return rows, columns, k = min(rows, columns), L, U, the first k rows of L and the first k columns of U."""
    rows, columns = y.shape[-2:]
    k = min(rows, columns)
    lower, upper = _lower(y), _upper(y)
    return rows, columns, k, lower, upper, lower[..., :k, :], upper[..., :, :k]


def _lu_vjp(g: Array, y: Array, x: Array) -> Array:
    rows, columns, k, lower, upper, low, up = _parts(y)
    # Entries in the unused triangle of either factor are multiplied by zeros below.
    g_low = g_up = g[..., :k, :k]
    rest = None
    if rows > k:
        rest = _from_right_turned(up, g[..., k:, :])
        g_up = g_up - matmul(swap_last(lower[..., k:, :]), rest)
    elif columns > k:
        rest = _from_left_turned(low, g[..., :, k:])
        g_low = g_low - matmul(rest, swap_last(upper[..., :, k:]))
    inner = tril_p(matmul(swap_last(low), g_low), diagonal=-1) + triu_p(matmul(g_up, swap_last(up)), diagonal=0)
    block = _from_right_turned(up, _from_left_turned(low, inner))
    axis = len(y.shape) - (2 if rows > k else 1)
    return block if rest is None else concatenate_p(block, rest, axis=axis)


def _lu_jvp(t: Array, y: Array, x: Array) -> Array:
    rows, columns, k, lower, upper, low, up = _parts(y)
    inner = _from_right(up, _from_left(low, t[..., :k, :k]))
    t_low, t_up = matmul(low, tril_p(inner, diagonal=-1)), matmul(triu_p(inner, diagonal=0), up)
    if rows > k:
        rest = _from_right(up, t[..., k:, :] - matmul(lower[..., k:, :], t_up))
        return concatenate_p(t_low + t_up, rest, axis=len(y.shape) - 2)
    if columns > k:
        rest = _from_left(low, t[..., :, k:] - matmul(t_low, upper[..., :, k:]))
        return concatenate_p(t_low + t_up, rest, axis=len(y.shape) - 1)
    return t_low + t_up


def _dominant(*shape: int) -> Any:
    """Draw matrices that need no row swaps."""
    return lambda rng: rng.normal(size=shape) + 5 * np.eye(shape[-2], shape[-1])


lu_pivots_p: Custom = custom(
    "lu_pivots",
    lambda xp, x: _each(x, "getrf", lambda getrf, a: getrf(a)[1] + 1, (min(x.shape[-2:]),), np.int32),
    vjp=(None,),
    jvp=(None,),
    batch=native,
    takes_complex=True,
)
lu_pivots_p.describe("the row that each row changes places with, from 1", "none")
pivot_rows_p: Custom = custom("pivot_rows", _pivot_rows, vjp=(None,), jvp=(None,), batch=native)
pivot_rows_p.describe("the order of the rows after the exchanges x", "none")
lu_p: Custom = custom(
    "lu",
    lambda xp, x: _each(x, "getrf", _lu_in_order, tuple(x.shape[-2:]), x.dtype),
    saves="y",
    batch=native,
    shape=lambda x: x.shape,
    vjp=(_lu_vjp,),
    jvp=(_lu_jvp,),
    takes_complex=True,
)
lu_p.describe(
    "L and U of x = L U in one matrix, without exchanges of rows", "L**-T (lower(LT g_L) + upper(g_U UT)) U**-T"
)
lu_p.samples = [S(_dominant(3, 3)), S(_dominant(2, 4, 2)), S(_dominant(2, 4))]


def lu_factor(x: Array, *, pivot: bool = True) -> LUFactors:
    """The factors L and U of (..., m, n) in one matrix, and LAPACK's row swaps (from 1): `linalg.lu_factor`."""
    _check("lu_factor", x, square=False)
    if not pivot:
        raise bad_option("lu_factor", "pivot", pivot, "True: without exchanges it works on a GPU only, as in PyTorch")
    pivots = lu_pivots_p(x)
    order = pivot_rows_p(pivots, rows=x.shape[-2])
    return LUFactors(lu_p(take_along_axis(x, reshape_p(order, shape=(*order.shape, 1)), -2)), pivots)


def lu_unpack(LU: Array, pivots: Array, unpack_data: bool = True, unpack_pivots: bool = True) -> LUResult:
    """P, L, U with P L U = x from the results of `lu_factor`; parts that are not requested are empty."""
    none = _no_elements(LU)
    rows = LU.shape[-2]
    places = none
    if unpack_pivots:
        order = pivot_rows_p(pivots, rows=rows)
        places = swap_last(ew.equal(reshape_p(order, shape=(*order.shape, 1)), np.arange(rows))) * np.ones((), LU.dtype)
    return LUResult(places, _lower(LU) if unpack_data else none, _upper(LU) if unpack_data else none)


def linalg_lu(x: Array, *, pivot: bool = True) -> LUResult:
    """P, L, U with P L U = x (..., m, n): a permutation, a unit lower and an upper triangular matrix: `linalg.lu`."""
    return lu_unpack(*lu_factor(x, pivot=pivot))


def lu(x: Array, pivot: bool = True, get_infos: bool = False) -> Any:
    """PyTorch's older `lu`: the factors in one matrix, the row swaps, and with `get_infos` LAPACK's info."""
    found = lu_factor_ex(x, pivot=pivot)
    return tuple(found) if get_infos else (found.LU, found.pivots)


def linalg_lu_solve(LU: Array, pivots: Array, B: Array, *, left: bool = True, adjoint: bool = False) -> Array:
    """The x with a x = b (or x a = b, if not `left`), from `lu_factor(a)`; with `adjoint` for the adjoint of a."""
    _check("lu_solve", LU)
    if adjoint and LU.dtype.kind == "c":
        LU = conj_p(LU)
    if left:
        return _solved(LU, pivots, B, adjoint)
    return swap_last(_solved(LU, pivots, swap_last(B), not adjoint))


def _solved(LU: Array, pivots: Array, B: Array, turned: bool) -> Array:
    """The x with a x = b, or with a.T x = b if `turned`."""
    order = pivot_rows_p(pivots, rows=LU.shape[-1])
    lower, upper = _lower(LU), _upper(LU)
    if not turned:
        b = take_along_axis(B, reshape_p(order, shape=(*order.shape, 1)), -2)
        return solve_triangular_p(upper, _from_left(lower, b), upper=True, unit=False)
    y = _from_left_turned(lower, solve_triangular_p(swap_last(upper), B, upper=False, unit=False))
    back = argsort(order)
    return take_along_axis(y, reshape_p(back, shape=(*back.shape, 1)), -2)


def lu_solve(b: Array, LU_data: Array, LU_pivots: Array) -> Array:
    """`linalg.lu_solve` with the arguments in PyTorch's older order."""
    return linalg_lu_solve(LU_data, LU_pivots, b)


# --- factors and where they fail --------------------------------------------------------------------

lu_info_p: Custom = custom(
    "lu_info",
    lambda xp, x: _each(x, "getrf", lambda getrf, a: getrf(a)[2], (), np.int32),
    vjp=(None,),
    jvp=(None,),
    batch=native,
    takes_complex=True,
)
lu_info_p.describe("0, or the number of the first zero on the diagonal of U", "none")
cholesky_info_p: Custom = custom(
    "cholesky_info",
    lambda xp, x: _each(x, "potrf", lambda potrf, a: potrf(a, lower=True)[1], (), np.int32),
    vjp=(None,),
    jvp=(None,),
    batch=native,
    takes_complex=True,
)
cholesky_info_p.describe("0, or the size of the first minor that is not positive definite", "none")


def _where_possible(function: Callable[[Array], Array], x: Array, info: Array) -> Array:
    """function(x), with NaN for the matrices that LAPACK failed on."""
    fine = reshape_p(ew.equal(info, 0), shape=(*info.shape, 1, 1))
    y = function(ew.where(fine, x, np.eye(x.shape[-1], dtype=x.dtype)))
    return ew.where(fine, y, np.asarray(np.nan, y.dtype))


def _refused(op: str, info: Array, check_errors: bool) -> None:
    if check_errors and bool(ew.not_equal(info, 0).any()):
        raise bad_option(op, "input", info, "matrices that can be factored: info is 0 for those")


def cholesky_ex(x: Array, *, upper: bool = False, check_errors: bool = False) -> CholeskyInfo:
    """`cholesky` that does not raise: NaN and `info` above 0 for a matrix that is not positive definite."""
    x = mirrored("cholesky_ex", x, lower=not upper)
    info = cholesky_info_p(x)
    _refused("cholesky_ex", info, check_errors)
    return CholeskyInfo(_where_possible(lambda a: cholesky(a, upper), x, info), info)


def inv_ex(x: Array, *, check_errors: bool = False) -> InverseInfo:
    """`inv` that does not raise: NaN and `info` above 0 for a singular matrix."""
    info = lu_info_p(x)
    _refused("inv_ex", info, check_errors)
    return InverseInfo(_where_possible(inv, x, info), info)


def solve_ex(a: Array, b: Array, *, left: bool = True, check_errors: bool = False) -> SolveInfo:
    """`solve` that does not raise: NaN and `info` above 0 for a singular matrix."""
    info = lu_info_p(a)
    _refused("solve_ex", info, check_errors)
    fine = reshape_p(ew.equal(info, 0), shape=(*info.shape, 1, 1))
    y = solve(ew.where(fine, a, np.eye(a.shape[-1], dtype=a.dtype)), b, left=left)
    missing = reshape_p(fine, shape=tuple(info.shape) + (1,) * (len(y.shape) - len(info.shape)))
    return SolveInfo(ew.where(missing, y, np.asarray(np.nan, y.dtype)), info)


def lu_factor_ex(x: Array, *, pivot: bool = True, check_errors: bool = False) -> LUFactorsInfo:
    """`lu_factor` with `info`: above 0 where U has a zero on its diagonal."""
    factors = lu_factor(x, pivot=pivot)
    info = lu_info_p(x)
    _refused("lu_factor_ex", info, check_errors)
    return LUFactorsInfo(*factors, info)


all_take_complex(globals())
