"""Eigenvalues and eigenvectors of general matrices, which are complex even where the matrix is real.

The primitive works on pairs (re, im), so it is a function of real numbers. The derivative of eigenvectors follows
Boeddeker et al. (2017), with LAPACK's choice of their length and phase.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from glassgrad.ops import elementwise as ew
from glassgrad.ops.axes import swap_last
from glassgrad.ops.complex_input import takes_complex
from glassgrad.ops.complexes import _as_complex, _as_pairs, is_complex, view_as_complex_p, view_as_real_p
from glassgrad.ops.core import Array, Custom, bad_option, custom
from glassgrad.ops.index import one_hot_p
from glassgrad.ops.linalg import matmul
from glassgrad.ops.reduce import argmax, sum_p
from glassgrad.ops.samples import S
from glassgrad.ops.shape import concatenate_p, reshape_p, stack
from glassgrad.ops.solve import solve
from glassgrad.ops.vmap.rules import native

Cotangents = Sequence[Array | None]


class EigResult(NamedTuple):
    """What `linalg.eig` returns."""

    eigenvalues: Any
    eigenvectors: Any


# --- matrices of pairs ----------------------------------------------------------------------------


def _eig(xp: ModuleType, pairs: Array) -> tuple[Array, Array]:
    z = _as_complex(np, pairs)
    values, vectors = np.linalg.eig(z if z.imag.any() else np.ascontiguousarray(z.real))
    return _as_pairs(np, values.astype(z.dtype, copy=False)), _as_pairs(np, vectors.astype(z.dtype, copy=False))


def _pair(re: Array, im: Array) -> Array:
    return stack([re, im], -1)


def _apart(x: Array) -> tuple[Array, Array]:
    return x[..., 0], x[..., 1]


def _as_real(x: Array) -> Array:
    """A complex matrix (..., n, m, 2) as the real one [[re, -im], [im, re]], which multiplies and inverts like it."""
    re, im = _apart(x)
    columns, rows = len(re.shape) - 1, len(re.shape) - 2
    return concatenate_p(concatenate_p(re, -im, axis=columns), concatenate_p(im, re, axis=columns), axis=rows)


def _from_real(x: Array) -> Array:
    rows, columns = x.shape[-2] // 2, x.shape[-1] // 2
    return _pair(x[..., :rows, :columns], x[..., rows:, :columns])


def _over_gaps(x: Array, values: Array, conjugate: bool) -> Array:
    """x[i, j] / (values[j] - values[i]), or its conjugate below; 0 on the diagonal."""
    n = values.shape[-2]
    lead = values.shape[:-2]
    eye = np.eye(n, dtype=values.dtype)
    gap = reshape_p(values, shape=(*lead, 1, n, 2)) - reshape_p(values, shape=(*lead, n, 1, 2))
    re, im = _apart(gap)
    im = -im if conjugate else im
    scale = (1 - eye) / (re * re + im * im + eye)
    x_re, x_im = _apart(x)
    return _pair((x_re * re + x_im * im) * scale, (x_im * re - x_re * im) * scale)


def _on_diagonal(values: Array) -> Array:
    n = values.shape[-2]
    eye = np.eye(n, dtype=values.dtype)[..., None]
    return reshape_p(values, shape=(*values.shape[:-2], 1, n, 2)) * eye


def _real_places(vectors: Array) -> Array:
    """1 at the largest component of every eigenvector, which LAPACK makes real."""
    re, im = _apart(vectors)
    if not vectors.shape[-2]:
        return re
    size = ew.where(ew.equal(im, 0), re * re, -1)
    return swap_last(one_hot_p(argmax(size, -2), count=vectors.shape[-2])) * np.ones((), vectors.dtype)


def _columns_sum(x: Array) -> Array:
    return sum_p(x, axis=(len(x.shape) - 2,), keepdims=True)


def _eig_vjp(gs: Cotangents, needs: Sequence[bool], y: Array, x: Array) -> tuple[Array]:
    values, vectors = y
    g_values, g_vectors = gs
    whole = _as_real(vectors)
    inner = None if g_values is None else _on_diagonal(g_values)
    if g_vectors is not None:
        re, im = _apart(vectors)
        g_re, g_im = _apart(g_vectors)
        # Transpose the rotation that makes the largest component of every vector real, then the normalisation of its
        # length.
        places = _real_places(vectors)
        turn = _columns_sum(g_re * im - g_im * re)
        g_im = g_im + places * turn / _columns_sum(places * re)
        along = _columns_sum(re * g_re + im * g_im)
        g_re, g_im = g_re - re * along, g_im - im * along
        back = _from_real(matmul(swap_last(whole), _as_real(_pair(g_re, g_im))))
        part = _over_gaps(back, values, conjugate=True)
        inner = part if inner is None else inner + part
    assert inner is not None
    turned = swap_last(whole)
    return (_from_real(matmul(solve(turned, _as_real(inner)), turned)),)


def _eig_jvp(tangents: Sequence[Array], y: Array, x: Array) -> tuple[Array, Array]:
    values, vectors = y
    whole = _as_real(vectors)
    inner = _from_real(matmul(solve(whole, _as_real(tangents[0])), whole))
    n = values.shape[-2]
    eye = np.eye(n, dtype=vectors.dtype)[..., None]
    t_values = sum_p(inner * eye, axis=(len(inner.shape) - 3,), keepdims=False)
    t_re, t_im = _apart(_from_real(matmul(whole, _as_real(_over_gaps(inner, values, conjugate=False)))))
    re, im = _apart(vectors)
    along = _columns_sum(re * t_re + im * t_im)
    t_re, t_im = t_re - re * along, t_im - im * along
    places = _real_places(vectors)
    turn = _columns_sum(places * t_im) / _columns_sum(places * re)
    return t_values, _pair(t_re + im * turn, t_im - re * turn)


def _general(*lead: int, size: int) -> Any:
    """Draw complex matrices with well-separated eigenvalues, as pairs."""

    def draw(rng: np.random.Generator) -> Array:
        apart = np.zeros((size, size, 2))
        apart[range(size), range(size), 0] = 2.0 * np.arange(size)
        return rng.normal(size=(*lead, size, size, 2)) * 0.5 + apart

    return draw


eig_p: Custom = custom(
    "eig", _eig, saves="y", multiple=True, joint_vjp=_eig_vjp, joint_jvp=_eig_jvp, batch=native, takes_complex=True
)
eig_p.tolerance = 100.0
eig_p.describe(
    "w, v with x v = v diag(w), on pairs (re, im); columns of v of length 1, their largest component real",
    "v**-H (diag(g_w) + vH g_v / conj(w_j - w_i)) vH, g_v without what changes length or phase",
    notes="gradients of eigenvectors are infinite or NaN where eigenvalues coincide",
)
eig_p.samples = [S(_general(size=3)), S(_general(2, size=2))]


@takes_complex
def eig(x: Array) -> EigResult:
    """Eigenvalues (..., n) and eigenvectors (columns) of (..., n, n), real or complex; both results are complex.

    An eigenvector has length 1 and its largest component is real, which is LAPACK's choice; the gradient includes
    that choice. PyTorch refuses losses that depend on the phase; for all others the gradients agree.

    Example:
        >>> import glassgrad as gg
        >>> gg.linalg.eig(gg.tensor([[0.0, -1.0], [1.0, 0.0]])).eigenvalues.abs().tolist()
        [1.0, 1.0]
    """
    if len(x.shape) < 2 or x.shape[-1] != x.shape[-2]:
        raise bad_option("eig", "input", tuple(x.shape), "(..., n, n)")
    if is_complex(x):
        pairs = view_as_real_p(x)
    else:
        x = x if x.dtype.kind in "fV" else x * 1.0
        pairs = stack([x, np.zeros(x.shape, x.dtype)], -1)
    values, vectors = eig_p(pairs)
    return EigResult(view_as_complex_p(values), view_as_complex_p(vectors))


@takes_complex
def eigvals(x: Array) -> Array:
    """Eigenvalues (..., n) of (..., n, n), complex."""
    return eig(x).eigenvalues
