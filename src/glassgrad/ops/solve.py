"""Inverses, systems of equations and determinants of one matrix or of a batch of them (leading dimensions).

Derivatives after Giles, "Collected matrix derivative results for forward and reverse mode algorithmic
differentiation" (2008), and Golub and Pereyra (1973) for the pseudo-inverse.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from glassgrad import errors
from glassgrad.base import provenance
from glassgrad.errors.packages import needed
from glassgrad.ops import elementwise as ew
from glassgrad.ops.axes import swap_last
from glassgrad.ops.complex_input import all_take_complex
from glassgrad.ops.complexes import _adjoint, conj, imag, is_complex, real
from glassgrad.ops.core import Array, Custom, custom
from glassgrad.ops.linalg import matmul
from glassgrad.ops.memory import own_memory
from glassgrad.ops.narrow import finfo
from glassgrad.ops.reduce import sum_p
from glassgrad.ops.samples import S
from glassgrad.ops.shape import copy_p, reshape_p, tril_p, triu_p
from glassgrad.ops.triangles import mirrored
from glassgrad.ops.vmap.rules import native, stacked

Shape = tuple[int, ...]


def _square(*lead: int, size: int) -> Any:
    """Draw matrices that are far from singular."""
    return lambda rng: rng.normal(size=(*lead, size, size)) + 3 * np.eye(size)


def _total(x: Array, keep: bool = True) -> Array:
    """Sum over the last two dimensions."""
    ndim = len(x.shape)
    return sum_p(x, axis=(ndim - 2, ndim - 1), keepdims=keep)


def _as_matrices(x: Array) -> Array:
    return reshape_p(x, shape=(*x.shape, 1, 1))


# --- inverse --------------------------------------------------------------------------------------

inv: Custom = custom(
    "inv",
    lambda xp, x: xp.linalg.inv(x),
    saves="y",
    batch=native,
    shape=lambda x: x.shape,
    vjp=(lambda g, y, x: -matmul(swap_last(y), matmul(g, swap_last(y))),),
    jvp=(lambda t, y, x: -matmul(y, matmul(t, y)),),
    takes_complex=True,
)
inv.describe("x**-1", "-yT g yT")
inv.samples = [S(_square(size=3)), S(_square(2, size=2))]


def _pinv(xp: ModuleType, x: Array, *, rtol: float | None, atol: float = 0.0) -> Array:
    rtol = max(x.shape[-2:]) * finfo(x.dtype).eps if rtol is None else rtol
    if not atol:
        return xp.linalg.pinv(x, rtol)
    u, s, vh = xp.linalg.svd(x, full_matrices=False)
    kept = s > np.maximum(atol, rtol * s[..., :1])
    inverses = (kept / xp.where(kept, s, 1)).astype(s.dtype)[..., None, :]
    return (xp.conj(vh.swapaxes(-1, -2)) * inverses) @ xp.conj(u.swapaxes(-1, -2))


def _pinv_vjp(g: Array, y: Array, x: Array, **_p: Any) -> Array:
    g = conj(g)
    yt, gt = _adjoint(y), _adjoint(g)
    through = matmul(matmul(gt, y), yt)  # gH y yH
    left = through - matmul(x, matmul(y, through))
    other = matmul(matmul(yt, y), gt)  # yH y gH
    right = other - matmul(matmul(other, y), x)
    return conj(left + right - matmul(yt, matmul(g, yt)))


def _pinv_jvp(t: Array, y: Array, x: Array, **_p: Any) -> Array:
    yt, tt = _adjoint(y), _adjoint(t)
    left = matmul(y, matmul(yt, tt))  # y yH tH
    right = matmul(tt, matmul(yt, y))  # tH yH y
    return left - matmul(matmul(left, x), y) + right - matmul(y, matmul(x, right)) - matmul(y, matmul(t, y))


pinv_p: Custom = custom(
    "pinv",
    _pinv,
    saves=("x", "y"),
    vjp=(_pinv_vjp,),
    jvp=(_pinv_jvp,),
    batch=native,
    shape=lambda x, **p: (*x.shape[:-2], x.shape[-1], x.shape[-2]),
    takes_complex=True,
)
pinv_p.describe(
    "the pseudo-inverse of x",
    "-yT g yT + (1 - x y) gT y yT + yT y gT (1 - y x)",
    notes="Golub and Pereyra 1973; the derivative holds while the rank stays the same",
)
pinv_p.samples = [S((4, 3), rtol=None), S((2, 2, 3), rtol=1e-9), S(_square(size=3), rtol=None, atol=1e-6)]

# --- systems of equations -------------------------------------------------------------------------


def _solved_shape(a: Array, b: Array, **_p: Any) -> Shape:
    return (*np.broadcast_shapes(a.shape[:-2], b.shape[:-2]), *b.shape[-2:])


solve_p: Custom = custom(
    "solve",
    lambda xp, a, b: xp.linalg.solve(a, b),
    saves=("x", "y"),
    batch=stacked,
    shape=_solved_shape,
    vjp=(
        lambda g, y, a, b: -matmul(solve_p(swap_last(a), g), swap_last(y)),
        lambda g, y, a, b: solve_p(swap_last(a), g),
    ),
    jvp=(lambda t, y, a, b: -solve_p(a, matmul(t, y)), lambda t, y, a, b: solve_p(a, t)),
    takes_complex=True,
)
solve_p.describe("y with a y = b", "-h yT, h = a**-T g")
solve_p.samples = [S(_square(size=3), (3, 2)), S(_square(2, size=2), (2, 1)), S(_square(size=2), (3, 2, 1))]


def _triangular(xp: ModuleType, a: Array, b: Array, *, upper: bool, unit: bool) -> Array:
    if xp is not np:
        full = (xp.triu if upper else xp.tril)(a)
        if unit:
            eye = xp.eye(a.shape[-1], dtype=a.dtype)
            full = full - full * eye + eye
        return xp.linalg.solve(full, b)
    with needed("scipy", "triangular systems"):
        from scipy.linalg import get_blas_funcs

    dtype = np.result_type(a, b)
    lead = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    out = np.empty((*lead, *b.shape[-2:]), dtype)
    if not out.size:
        return out
    if math.prod(lead) > 4 * a.shape[-1]:
        return _substituted(a, b, out, upper, unit)
    trsm = get_blas_funcs("trsm", (a, b))
    a, b = np.broadcast_to(a, (*lead, *a.shape[-2:])), np.broadcast_to(b, out.shape)
    for place in np.ndindex(lead):
        # BLAS reads the transpose of a C-ordered matrix without a copy.
        out[place] = trsm(1.0, a[place].T, b[place], lower=upper, trans_a=1, diag=unit)
    return out


def _substituted(a: Array, b: Array, out: Array, upper: bool, unit: bool) -> Array:
    """Solve many small systems row by row, all at once: a call of BLAS for each takes longer."""
    rows = range(a.shape[-1])
    with np.errstate(divide="ignore", invalid="ignore"):
        for row in reversed(rows) if upper else rows:
            known = slice(row + 1, None) if upper else slice(0, row)
            rest = b[..., row, :] - (a[..., row, None, known] @ out[..., known, :])[..., 0, :]
            out[..., row, :] = rest if unit else rest / a[..., row, row, None]
    return out


def _triangle(x: Array, upper: bool, unit: bool) -> Array:
    """The triangle of a matrix that a triangular solve reads."""
    return triu_p(x, diagonal=int(unit)) if upper else tril_p(x, diagonal=-int(unit))


def _transposed(a: Array, g: Array, upper: bool, unit: bool) -> Array:
    return solve_triangular_p(swap_last(a), g, upper=not upper, unit=unit)


solve_triangular_p: Custom = custom(
    "solve_triangular",
    _triangular,
    saves=("x", "y"),
    batch=stacked,
    shape=_solved_shape,
    vjp=(
        lambda g, y, a, b, *, upper, unit: (
            -_triangle(matmul(_transposed(a, g, upper, unit), swap_last(y)), upper, unit)
        ),
        lambda g, y, a, b, *, upper, unit: _transposed(a, g, upper, unit),
    ),
    jvp=(
        lambda t, y, a, b, **p: -solve_triangular_p(a, matmul(_triangle(t, **p), y), **p),
        lambda t, y, a, b, **p: solve_triangular_p(a, t, **p),
    ),
    takes_complex=True,
)
solve_triangular_p.describe(
    "y with a y = b, a triangular",
    "-triangle of h yT, h = a**-T g",
    notes="only that triangle of a is read; a zero on its diagonal gives infinities, as in PyTorch",
)
solve_triangular_p.samples = [
    S(_square(size=3), (3, 2), upper=False, unit=False),
    S(_square(size=3), (2, 3, 1), upper=True, unit=False),
    S(_square(2, size=2), (2, 2), upper=True, unit=True),
    S(_square(9, size=2), (9, 2, 1), upper=False, unit=False),
    S(_square(9, size=2), (2, 1), upper=True, unit=True),
]

# --- determinants ---------------------------------------------------------------------------------


def _cofactor(xp: ModuleType, x: Array) -> Array:
    """det(x) x**-T, which exists for singular x, too: with x = u s vh it is det(u) det(vh) conj(u s' vh).

    For each singular value, s' holds the product of the others.
    """
    u, s, vh = xp.linalg.svd(x)
    ones = xp.ones_like(s[..., :1])
    before = xp.cumprod(xp.concatenate([ones, s[..., :-1]], axis=-1), axis=-1)
    after = xp.cumprod(xp.concatenate([ones, s[..., :0:-1]], axis=-1), axis=-1)[..., ::-1]
    sign = xp.linalg.det(u) * xp.linalg.det(vh)
    return (xp.conj(u) * (before * after * sign[..., None])[..., None, :]) @ xp.conj(vh)


def _cofactor_vjp(g: Array, y: Array, x: Array) -> Array:
    b = swap_last(inv(x))
    return _total(g * b) * y - matmul(b, matmul(swap_last(g), y))


def _cofactor_jvp(t: Array, y: Array, x: Array) -> Array:
    b = swap_last(inv(x))
    return _total(y * t) * b - matmul(y, matmul(swap_last(t), b))


cofactor_p: Custom = custom(
    "cofactor",
    _cofactor,
    saves=("x", "y"),
    vjp=(_cofactor_vjp,),
    jvp=(_cofactor_jvp,),
    batch=native,
    shape=lambda x: x.shape,
    takes_complex=True,
)
cofactor_p.tolerance = 10.0
cofactor_p.describe(
    "det(x) x**-T",
    "<g, x**-T> y - x**-T gT y",
    notes="exists for singular x; its derivative (the second one of det) needs an invertible x",
)
cofactor_p.samples = [S(_square(size=3)), S(_square(2, size=2))]
det: Custom = custom(
    "det",
    lambda xp, x: xp.linalg.det(x),
    saves="x",
    batch=native,
    shape=lambda x: x.shape[:-2],
    vjp=(lambda g, y, x: _as_matrices(g) * cofactor_p(x),),
    jvp=(lambda t, y, x: _total(cofactor_p(x) * t, keep=False),),
    takes_complex=True,
)
det.describe("determinant of x", "g cofactor(x)")
det.samples = [S(_square(size=3)), S((2, 2, 2)), S((1, 1))]


def _slogdet_vjp(gs: Sequence[Array | None], needs: Sequence[bool], y: Array, x: Array) -> tuple[Array]:
    g_sign, g = gs
    if g_sign is not None and is_complex(x):  # the sign's phase moves by the imaginary part of trace(x**-1 dx)
        turning = imag(g_sign * y[0]) * 1j
        g = turning if g is None else g + turning
    if g is None:
        return (np.zeros(x.shape, x.dtype),)
    return (_as_matrices(g) * swap_last(inv(x)),)


def _slogdet_jvp(tangents: Sequence[Array], y: Array, x: Array) -> tuple[Array, Array]:
    t = _total(swap_last(inv(x)) * tangents[0], keep=False)
    if is_complex(x):
        return y[0] * (imag(t) * 1j), real(t)
    return np.zeros(t.shape, t.dtype), t


slogdet_p: Custom = custom(
    "slogdet",
    lambda xp, x: tuple(map(xp.asarray, xp.linalg.slogdet(x))),
    saves=("x", "y"),
    multiple=True,
    joint_vjp=_slogdet_vjp,
    joint_jvp=_slogdet_jvp,
    batch=native,
    takes_complex=True,
)
slogdet_p.describe("sign of det(x), log |det(x)|", "0, g x**-T")
slogdet_p.samples = [S(_square(size=3)), S((2, 2, 2))]

# --- public functions -----------------------------------------------------------------------------


def pinv(x: Array, *, atol: float | None = None, rtol: float | None = None, hermitian: bool = False) -> Array:
    """Pseudo-inverse (Moore and Penrose) of (..., m, n): shape (..., n, m).

    Singular values below `atol`, or below `rtol` times the largest, count as 0. `rtol` defaults to max(m, n) times the
    machine epsilon, or to 0 if `atol` is above 0. With `hermitian` only the lower triangle of x is read.
    """
    x = mirrored("pinv", x, lower=True) if hermitian else x
    return pinv_p(x, rtol=rtol) if not atol else pinv_p(x, rtol=rtol or 0.0, atol=atol)


def _check_system(op: str, a: Array, b: Array) -> None:
    if len(a.shape) < 2 or a.shape[-1] != a.shape[-2]:
        raise errors.SQUARE_MATRIX(op=op, given=tuple(a.shape), where=provenance.here())


def _is_vector(a: Array, b: Array) -> bool:
    """Tell whether b is a vector, or one vector per matrix, by PyTorch's rule."""
    return len(b.shape) == 1 or (len(b.shape) == len(a.shape) - 1 and tuple(b.shape) == tuple(a.shape[:-1]))


def solve(a: Array, b: Array, *, left: bool = True) -> Array:
    """The x with a x = b (or x a = b, if not `left`): a (..., n, n), b (..., n, k) or (n,).

    Raises:
        ArgumentError: a matrix is singular.

    Example:
        >>> import glassgrad as gg
        >>> gg.linalg.solve(gg.tensor([[2.0, 0.0], [0.0, 4.0]]), gg.tensor([2.0, 2.0])).tolist()
        [1.0, 0.5]
    """
    _check_system("solve", a, b)
    if _is_vector(a, b):
        x = solve_p(a, reshape_p(b, shape=(*b.shape, 1)))
        return reshape_p(x, shape=tuple(x.shape[:-1]))
    return solve_p(a, b) if left else swap_last(solve_p(swap_last(a), swap_last(b)))


def solve_triangular(a: Array, b: Array, *, upper: bool, left: bool = True, unitriangular: bool = False) -> Array:
    """The x with a x = b (or x a = b, if not `left`) for triangular a; the other triangle is not read."""
    _check_system("solve_triangular", a, b)
    if left:
        return solve_triangular_p(a, b, upper=upper, unit=unitriangular)
    return swap_last(solve_triangular_p(swap_last(a), swap_last(b), upper=not upper, unit=unitriangular))


class TriangularSolution(NamedTuple):
    """What `triangular_solve` returns."""

    solution: Array
    cloned_coefficient: Array


def triangular_solve(
    b: Array, A: Array, upper: bool = True, transpose: bool = False, unitriangular: bool = False
) -> TriangularSolution:
    """Solve A X = b for a triangular A; `linalg.solve_triangular` has the newer argument order."""
    matrix = swap_last(A) if transpose else A
    solved = solve_triangular(matrix, b, upper=upper != transpose, unitriangular=unitriangular)
    return TriangularSolution(solved, copy_p(A))


def cholesky_solve(b: Array, L: Array, upper: bool = False) -> Array:
    """The x with L LH x = b, or with UH U x = b for an upper factor: L (..., n, n), b (..., n, k)."""
    lower = _adjoint(L) if upper else L
    return solve_triangular(_adjoint(lower), solve_triangular(lower, b, upper=False), upper=True)


def cholesky_inverse(L: Array, upper: bool = False) -> Array:
    """The inverse of L LH, or of UH U for an upper factor."""
    return cholesky_solve(np.broadcast_to(np.eye(L.shape[-1], dtype=L.dtype), tuple(L.shape)), L, upper)


def inverse(x: Array) -> Array:
    """Inverse of (..., n, n)."""
    return inv(x)


def pinverse(x: Array, rcond: float = 1e-15) -> Array:
    """`pinv`, under PyTorch's older name."""
    return pinv_p(x, rtol=rcond)


class SlogdetResult(NamedTuple):
    """What `slogdet` returns."""

    sign: Any
    logabsdet: Any


def slogdet(x: Array) -> Any:
    """Sign and logarithm of the absolute determinant of (..., n, n): two arrays of shape (...)."""
    return SlogdetResult(*slogdet_p(x))


def logdet(x: Array) -> Array:
    """Logarithm of the determinant of (..., n, n); NaN where it is negative."""
    sign, value = slogdet_p(x)
    if is_complex(x):
        return ew.log(sign) + value
    return ew.where(sign < 0, np.asarray(np.nan, x.dtype), value)


@own_memory
def matrix_power(x: Array, n: int) -> Array:
    """x multiplied by itself n times by repeated squaring (the inverse of x for negative n)."""
    if len(x.shape) < 2 or x.shape[-1] != x.shape[-2]:
        raise errors.SQUARE_MATRIX(op="matrix_power", given=tuple(x.shape), where=provenance.here())
    if n < 0:
        return matrix_power(inv(x), -n)
    if n == 0:
        return ew.where(np.False_, x, np.eye(x.shape[-1], dtype=x.dtype))  # infinite elements are ignored, too
    result = None
    while True:
        if n & 1:
            result = x if result is None else matmul(result, x)
        n >>= 1
        if not n:
            return result
        x = matmul(x, x)


all_take_complex(globals())
