"""Factorisations of matrices: Cholesky, QR, eigenvalues, singular values; one matrix or a batch of them.

Derivatives: Cholesky after Murray, "Differentiation of the Cholesky decomposition" (2016); QR after Walter
and Lehmann (2010) and Seeger et al., "Auto-differentiating linear algebra" (2017); eigenvalues after Giles
(2008); singular values after Townsend, "Differentiating the singular value decomposition" (2016).

The primitives `cholesky` and `eigh` work on (x + xT) / 2, so that their gradients are symmetric and agree with finite
differences; the public functions pass them one triangle, as LAPACK does. Eigenvectors and singular vectors have no
derivative where two values coincide: gradients through them are infinite or NaN there, while gradients of the values
alone stay finite.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from glassgrad import errors
from glassgrad.base import provenance
from glassgrad.ops.axes import swap_last
from glassgrad.ops.complex_input import all_take_complex
from glassgrad.ops.complexes import _adjoint, conj, imag, is_complex, real
from glassgrad.ops.core import Array, Custom, bad_option, canonical_axis, custom
from glassgrad.ops.linalg import matmul
from glassgrad.ops.reduce import sum_p
from glassgrad.ops.samples import S
from glassgrad.ops.shape import concatenate_p, permute_p, reshape_p, tril_p
from glassgrad.ops.solve import solve_triangular_p
from glassgrad.ops.triangles import mirrored
from glassgrad.ops.vmap.rules import native

Shape = tuple[int, ...]
Cotangents = Sequence[Array | None]


class QRResult(NamedTuple):
    """What `qr` returns."""

    Q: Any
    R: Any


class EighResult(NamedTuple):
    """What `eigh` returns."""

    eigenvalues: Any
    eigenvectors: Any


class SVDResult(NamedTuple):
    """What `svd` returns."""

    U: Any
    S: Any
    Vh: Any


def _symmetric(x: Array) -> Array:
    return (x + _adjoint(x)) * 0.5


def _check_phase(op: str, within: Array) -> None:
    """Refuse gradients with respect to the arbitrary phase of the vectors; `within` is vH g."""
    if type(within) is np.ndarray and within.dtype.kind == "c":
        turning = np.abs(np.diagonal(within, 0, -2, -1).imag)
        if turning.max(initial=0) > 1e-2 * max(1.0, float(np.abs(within).max(initial=0))):
            raise errors.PHASE_DEPENDENT(op=op, where=provenance.here())


def _columns(s: Array) -> Array:
    """A vector (..., n) as (..., 1, n), which scales the columns of a matrix."""
    return reshape_p(s, shape=(*s.shape[:-1], 1, s.shape[-1]))


def _eye(x: Array, size: int) -> Array:
    return np.eye(size, dtype=x.dtype)


def _on_diagonal(s: Array) -> Array:
    return _columns(s) * _eye(s, s.shape[-1])


def _diagonal_of(x: Array) -> Array:
    return sum_p(x * _eye(x, x.shape[-1]), axis=(len(x.shape) - 1,), keepdims=False)


def _gaps(values: Array) -> Array:
    """1 / (values[j] - values[i]) at (i, j), 0 on the diagonal."""
    n = values.shape[-1]
    eye = _eye(values, n)
    difference = _columns(values) - reshape_p(values, shape=(*values.shape, 1))
    return (1 - eye) / (difference + eye)


# --- Cholesky -------------------------------------------------------------------------------------


def _half_lower(x: Array) -> Array:
    """The lower triangle with half of the diagonal."""
    return tril_p(x, diagonal=0) * (1 - 0.5 * _eye(x, x.shape[-1]))


def _whiten(y: Array, inner: Array) -> Array:
    """y**-H inner y**-1 for a lower triangular y."""
    left = solve_triangular_p(_adjoint(y), inner, upper=True, unit=False)
    return _adjoint(solve_triangular_p(_adjoint(y), _adjoint(left), upper=True, unit=False))


def _cholesky_jvp(t: Array, y: Array, x: Array) -> Array:
    left = solve_triangular_p(y, _symmetric(t), upper=False, unit=False)
    inner = _adjoint(solve_triangular_p(y, _adjoint(left), upper=False, unit=False))
    return matmul(y, _half_lower(inner))


def _positive(*lead: int, size: int) -> Any:
    """Draw positive definite matrices."""

    def draw(rng: np.random.Generator) -> Array:
        x = rng.normal(size=(*lead, size, size))
        return x @ x.swapaxes(-1, -2) + size * np.eye(size)

    return draw


def _hermitian(xp: ModuleType, x: Array) -> Array:
    return (x + xp.conj(x.swapaxes(-1, -2))) * 0.5


cholesky_p: Custom = custom(
    "cholesky",
    lambda xp, x: xp.linalg.cholesky(_hermitian(xp, x)),
    saves="y",
    batch=native,
    vjp=(lambda g, y, x: conj(_symmetric(_whiten(y, _half_lower(matmul(_adjoint(y), conj(g)))))),),
    jvp=(_cholesky_jvp,),
    shape=lambda x: x.shape,
    takes_complex=True,
)
cholesky_p.describe(
    "lower triangular y with y yT = x", "sym(y**-T h y**-1), h = lower(yT g), its diagonal halved", notes="Murray 2016"
)
cholesky_p.samples = [S(_positive(size=3)), S(_positive(2, size=2))]

# --- QR -------------------------------------------------------------------------------------------


def _qr_vjp(gs: Cotangents, needs: Sequence[bool], y: Array, x: Array) -> tuple[Array]:
    q, r = y
    g_q, g_r = (None if g is None else conj(g) for g in gs)
    inner = None
    if g_r is not None:
        inner = matmul(r, _adjoint(g_r))
    if g_q is not None:
        part = matmul(_adjoint(g_q), q)
        inner = -part if inner is None else inner - part
    assert inner is not None
    lower = tril_p(inner, diagonal=0)
    if is_complex(lower):
        lower = lower - _on_diagonal(imag(_diagonal_of(inner)) * 1j)  # the diagonal of r is real
    right = matmul(q, lower + _adjoint(tril_p(inner, diagonal=-1)))
    if g_q is not None:
        right = right + g_q
    return (conj(_adjoint(solve_triangular_p(r, _adjoint(right), upper=True, unit=False))),)


def _qr_jvp(tangents: Sequence[Array], y: Array, x: Array) -> tuple[Array, Array]:
    q, r = y
    scaled = swap_last(solve_triangular_p(swap_last(r), swap_last(tangents[0]), upper=False, unit=False))  # t r**-1
    inner = matmul(_adjoint(q), scaled)
    lower = tril_p(inner, diagonal=-1)
    skew = _skew(lower)
    if is_complex(inner):
        skew = skew + _on_diagonal(imag(_diagonal_of(inner)) * 1j)  # the diagonal of r is real
    return matmul(q, skew - inner) + scaled, matmul(inner - skew, r)


qr_p: Custom = custom(
    "qr",
    lambda xp, x: tuple(xp.linalg.qr(x, mode="reduced")),
    saves="y",
    multiple=True,
    joint_vjp=_qr_vjp,
    joint_jvp=_qr_jvp,
    batch=native,
    takes_complex=True,
)
qr_p.describe(
    "q, r with q r = x, qT q = 1, r upper triangular",
    "(g_q + q copyltu(r g_rT - g_qT q)) r**-T",
    notes="Walter and Lehmann 2010; for matrices with at least as many rows as columns, of full rank",
)
qr_p.samples = [S((4, 3)), S((2, 2, 2)), S((3, 1))]

# --- eigenvalues ----------------------------------------------------------------------------------


def _eigh_vjp(gs: Cotangents, needs: Sequence[bool], y: Array, x: Array) -> tuple[Array]:
    w, v = y
    g_w, g_v = gs
    if g_v is None:
        assert g_w is not None
        return (conj(matmul(v * _columns(g_w), _adjoint(v))),)
    with np.errstate(divide="ignore", invalid="ignore"):
        within = matmul(_adjoint(v), conj(g_v))
        _check_phase("eigh", within)
        inner = _gaps(w) * within
        if g_w is not None:
            inner = inner + _on_diagonal(g_w)
        return (conj(_symmetric(matmul(v, matmul(inner, _adjoint(v))))),)


def _eigh_jvp(tangents: Sequence[Array], y: Array, x: Array) -> tuple[Array, Array]:
    w, v = y
    inner = matmul(_adjoint(v), matmul(_symmetric(tangents[0]), v))
    with np.errstate(divide="ignore", invalid="ignore"):
        return real(_diagonal_of(inner)), matmul(v, _gaps(w) * inner)


eigh_p: Custom = custom(
    "eigh",
    lambda xp, x: tuple(xp.linalg.eigh(_hermitian(xp, x))),
    saves="y",
    multiple=True,
    joint_vjp=_eigh_vjp,
    joint_jvp=_eigh_jvp,
    batch=native,
    takes_complex=True,
)
eigh_p.tolerance = 100.0
eigh_p.describe(
    "w, v with v diag(w) vT = x, vT v = 1",
    "v (diag(g_w) + f * vT g_v) vT, f = 1 / (w_j - w_i)",
    notes="Giles 2008; gradients of eigenvectors are infinite or NaN where eigenvalues coincide",
)
eigh_p.samples = [S((3, 3)), S((2, 2, 2))]

# --- singular values ------------------------------------------------------------------------------


def _skew(x: Array) -> Array:
    return x - _adjoint(x)


def _first_columns(u: Array, count: int) -> Array:
    return u if u.shape[-1] == count else u[..., :count]


def _first_rows(vh: Array, count: int) -> Array:
    return vh if vh.shape[-2] == count else vh[..., :count, :]


def _svd_vjp(gs: Cotangents, needs: Sequence[bool], y: Array, x: Array, *, full: bool) -> tuple[Array]:
    count = min(x.shape[-2:])
    u, s, vh = _first_columns(y[0], count), y[1], _first_rows(y[2], count)
    g_u, g_s, g_vh = (None if g is None else conj(g) for g in gs)
    with np.errstate(divide="ignore", invalid="ignore"):
        inner: Any = 0
        outside: Any = 0
        turning: Any = 0  # the part of the gradients along the vectors' phases, which u and v share
        if g_u is not None:
            g_u = _first_columns(g_u, count)
            within = matmul(_adjoint(u), g_u)
            turning = within
            inner = _gaps(s * s) * _skew(within) * _columns(s)
            if is_complex(x):
                inner = inner + _on_diagonal(imag(_diagonal_of(within)) * 1j / s)
            if u.shape[-2] > count:
                outside = matmul((g_u - matmul(u, within)) / _columns(s), vh)
        if g_vh is not None:
            g_v = _adjoint(_first_rows(g_vh, count))
            within = matmul(vh, g_v)
            turning = turning + within
            inner = inner + swap_last(_columns(s) * swap_last(_gaps(s * s) * _skew(within)))
            if vh.shape[-1] > count:
                beyond = _adjoint(g_v - matmul(_adjoint(vh), within))
                outside = outside + matmul(u / _columns(s), beyond)
        _check_phase("svd", turning)
        if g_s is not None:
            inner = inner + _on_diagonal(g_s)
        return (conj(matmul(matmul(u, inner), vh) + outside),)


def _svd_jvp(tangents: Sequence[Array], y: Array, x: Array, *, full: bool) -> tuple[Array, Array, Array]:
    t = tangents[0]
    count = min(x.shape[-2:])
    u, s, vh = _first_columns(y[0], count), y[1], _first_rows(y[2], count)
    inner = matmul(_adjoint(u), matmul(t, _adjoint(vh)))
    transposed = _adjoint(inner)
    row, column = _columns(s), reshape_p(s, shape=(*s.shape, 1))
    with np.errstate(divide="ignore", invalid="ignore"):
        gaps = _gaps(s * s)
        t_u = matmul(u, gaps * (inner * row + column * transposed))
        t_v = matmul(_adjoint(vh), gaps * (column * inner + transposed * row))
        if is_complex(x):  # the common phase of the two, shared equally
            turned = _columns(imag(_diagonal_of(inner)) * 0.5j / s)
            t_u, t_v = t_u + u * turned, t_v - _adjoint(vh) * turned
        if u.shape[-2] > count:
            along = matmul(t, _adjoint(vh))
            t_u = t_u + (along - matmul(u, inner)) / row
        if vh.shape[-1] > count:
            along = matmul(_adjoint(t), u)
            t_v = t_v + (along - matmul(_adjoint(vh), transposed)) / row
    return _widen(t_u, y[0].shape, -1), real(_diagonal_of(inner)), _widen(_adjoint(t_v), y[2].shape, -2)


def _widen(t: Array, shape: Shape, axis: int) -> Array:
    """Pad with zero tangents for the remaining vectors, whose rotation is arbitrary."""
    if t.shape[axis] == shape[axis]:
        return t
    missing = list(shape)
    missing[axis] = shape[axis] - t.shape[axis]
    return concatenate_p(t, np.zeros(missing, t.dtype), axis=len(shape) + axis)


svd_p: Custom = custom(
    "svd",
    lambda xp, x, *, full: tuple(xp.linalg.svd(x, full_matrices=full)),
    saves="y",
    multiple=True,
    joint_vjp=_svd_vjp,
    joint_jvp=_svd_jvp,
    batch=native,
    takes_complex=True,
)
svd_p.tolerance = 1000.0
svd_p.describe(
    "u, s, vh with u diag(s) vh = x, uT u = vh vhT = 1",
    "u (f * skew(uT g_u) s + s f * skew(vT g_v) + diag(g_s)) vh + parts outside, f = 1 / (s_j**2 - s_i**2)",
    notes="Townsend 2016; gradients of singular vectors are infinite or NaN where singular values coincide",
)
svd_p.samples = [S((3, 2), full=False), S((2, 2, 3), full=False), S((3, 3), full=True)]

# --- public functions -----------------------------------------------------------------------------


def cholesky(x: Array, upper: bool = False) -> Array:
    """The lower triangular y with y yT = x for a positive definite (..., n, n); with `upper` its transpose.

    Only the lower triangle of x is read, with `upper` the upper one; the gradient is symmetric.

    Raises:
        ArgumentError: when x is not positive definite.
    """
    y = cholesky_p(mirrored("cholesky", x, lower=not upper))
    return _adjoint(y) if upper else y


def qr(x: Array, mode: str = "reduced") -> QRResult:
    """q, r with q r = x, the columns of q orthonormal and r upper triangular; x (..., m, n).

    `mode`: "reduced" (k = min(m, n) columns in q), "complete" (m columns; no gradient if m > n) or "r".
    """
    rows, columns = x.shape[-2:]
    if mode not in {"reduced", "complete", "r", "some"}:
        expected = "'reduced', 'complete' or 'r'"
        raise bad_option("qr", "mode", mode, expected)
    if mode == "complete" and rows > columns:
        if getattr(x, "requires_grad", False):
            raise errors.QR_COMPLETE(given=tuple(x.shape), where=provenance.here())
        return QRResult(*qr_complete_p(x))
    if rows >= columns:
        q, r = qr_p(x)
    else:
        # The first square block determines q; the other columns of r are q's transpose times the other columns of x.
        q, r = qr_p(x[..., :rows])
        r = concatenate_p(r, matmul(_adjoint(q), x[..., rows:]), axis=len(x.shape) - 1)
    return QRResult(_no_elements(x) if mode == "r" else q, r)


def _no_elements(x: Array) -> Array:
    """Return an array without elements for a result that was not requested."""
    return reshape_p(x, shape=(math.prod(x.shape),))[:0]


qr_complete_p: Custom = custom(
    "qr_complete",
    lambda xp, x: tuple(xp.linalg.qr(x, mode="complete")),
    multiple=True,
    vjp=(None,),
    jvp=(None,),
    batch=native,
    takes_complex=True,
)
qr_complete_p.describe("q, r with q r = x, q square", "none")


def eigh(x: Array, UPLO: str = "L") -> EighResult:
    """Eigenvalues in ascending order and eigenvectors (columns) of a symmetric (..., n, n).

    Only one triangle is read: the lower one with `UPLO` "L", the upper one with "U". The gradient is symmetric, as for
    a symmetric x.
    """
    return EighResult(*eigh_p(mirrored("eigh", x, lower=_reads_lower("eigh", UPLO))))


def _reads_lower(op: str, triangle: str) -> bool:
    if triangle not in {"L", "U", "l", "u"}:
        raise bad_option(op, "UPLO", triangle, "'L' or 'U'")
    return triangle in {"L", "l"}


def eigvalsh(x: Array, UPLO: str = "L") -> Array:
    """Eigenvalues of a symmetric (..., n, n) in ascending order; reads one triangle, as `eigh` does."""
    return eigh_p(mirrored("eigvalsh", x, lower=_reads_lower("eigvalsh", UPLO)))[0]


def linalg_svd(x: Array, full_matrices: bool = True) -> SVDResult:
    """u, s, vh with u diag(s) vh = x (..., m, n), singular values in descending order: `linalg.svd`.

    With `full_matrices` u and vh are square; gradients of the vectors beyond the first min(m, n) are ignored.
    """
    rows, columns = x.shape[-2:]
    return SVDResult(*svd_p(x, full=bool(full_matrices and rows != columns)))


def svd(x: Array, some: bool = True) -> Any:
    """PyTorch's older `svd`: u, s, v with u diag(s) vT = x. `linalg.svd` returns vT instead."""
    u, s, vh = linalg_svd(x, not some)
    return u, s, _adjoint(vh)


def svdvals(x: Array) -> Array:
    """Singular values of (..., m, n), in descending order."""
    return svd_p(x, full=False)[1]


def nuclear_norm(x: Array, dim: Any = None, keepdim: bool = False) -> Array:
    """Sum of the singular values of the matrices in two dimensions, by default the last two."""
    ndim = len(x.shape)
    axes = tuple(canonical_axis(axis, ndim) for axis in ((-2, -1) if dim is None else dim))
    if ndim < 2 or len(set(axes)) != 2:
        raise bad_option("nuclear_norm", "dim", dim, f"two different dimensions of {ndim}")
    moved = permute_p(x, axes=(*(axis for axis in range(ndim) if axis not in axes), *axes))
    y = sum_p(svdvals(moved), axis=(ndim - 2,), keepdims=False)
    return reshape_p(y, shape=tuple(1 if at in axes else n for at, n in enumerate(x.shape))) if keepdim else y


all_take_complex(globals())
