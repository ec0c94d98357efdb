"""Functions of PyTorch's that are other spellings or short compositions: `signal.windows`, `svd_lowrank`, and more."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from glassgrad import linalg
from glassgrad.engine import random
from glassgrad.engine.tensor import Tensor
from glassgrad.engine.tensors import creation
from glassgrad.engine.tensors.devices import Device, DType
from glassgrad.nn import functional
from glassgrad.ops.axes import concrete
from glassgrad.ops.core import Array, bad_option
from glassgrad.ops.names import PUBLIC

# --- signal.windows -------------------------------------------------------------------------------

# Each formula is given the places 0, 1, ..., and the number of the last one, N.


def _cosines(n: Array, last: int, a: Sequence[float]) -> Array:
    return np.sum([(-1) ** k * weight * np.cos(2 * np.pi * k * n / last) for k, weight in enumerate(a)], 0)


def _exponential(n: Array, last: int, center: float | None = None, tau: float = 1.0) -> Array:
    return np.exp(-np.abs(n - (last / 2 if center is None else center)) / tau)


def _kaiser(n: Array, last: int, beta: float = 12.0) -> Array:
    return np.i0(beta * np.sqrt(np.maximum(1 - (2 * n / last - 1) ** 2, 0))) / np.i0(beta)


_WINDOWS: dict[str, Callable[..., Array]] = {
    "general_cosine": _cosines,
    "general_hamming": lambda n, last, alpha=0.54: _cosines(n, last, (alpha, 1 - alpha)),
    "hamming": lambda n, last: _cosines(n, last, (0.54, 0.46)),
    "hann": lambda n, last: _cosines(n, last, (0.5, 0.5)),
    "blackman": lambda n, last: _cosines(n, last, (0.42, 0.5, 0.08)),
    "nuttall": lambda n, last: _cosines(n, last, (0.3635819, 0.4891775, 0.1365995, 0.0106411)),
    "bartlett": lambda n, last: 1 - np.abs(2 * n / last - 1),
    "cosine": lambda n, last: np.sin(np.pi * (n + 0.5) / (last + 1)),
    "exponential": _exponential,
    "gaussian": lambda n, last, std=1.0: np.exp(-(((n - last / 2) / std) ** 2) / 2),
    "kaiser": _kaiser,
}


def _window(name: str, formula: Callable[..., Array]) -> Callable[..., Tensor]:
    def window(
        M: int,
        *given: float,
        sym: bool = True,
        dtype: DType = None,
        layout: str = "strided",
        device: Device = None,
        requires_grad: bool = False,
        **options: object,
    ) -> Tensor:
        if M < 0 or (sym and options.get("center") is not None):
            raise bad_option(f"signal.windows.{name}", "M", M, "0 or more, and no center beside sym=True")
        values = formula(np.arange(M), M - sym, *given, **options) if M > 1 else np.ones(M)
        return creation.tensor(values, dtype or creation.DEFAULT, requires_grad, device)

    window.__name__ = window.__qualname__ = name
    window.__doc__ = f"The {name.replace('_', ' ')} window of M places; without `sym` one period of it."
    return window


WINDOWS = {name: _window(name, formula) for name, formula in _WINDOWS.items()}

# --- matrices -------------------------------------------------------------------------------------


def svd_lowrank(A: Array, q: int = 6, niter: int = 2, M: Array | None = None) -> tuple[Array, Array, Array]:
    """The largest `q` singular values of A (..., m, n), or of A - M, with their vectors U and V: about, by random maps.

    Halko et al. (2009), with `niter` steps of the power method.
    """
    a = A if M is None else A - M
    wide = a.shape[-2] < a.shape[-1]
    a = a.mT if wide else a
    basis = linalg.qr(a @ random.randn(*a.shape[:-2], a.shape[-1], q, dtype=a.dtype))[0]
    for _ in range(niter):
        basis = linalg.qr(a @ linalg.qr(PUBLIC["adjoint"](a) @ basis)[0])[0]
    u, values, vh = linalg.svd(PUBLIC["adjoint"](basis) @ a, full_matrices=False)
    left, right = basis @ u, PUBLIC["adjoint"](vh)
    return (PUBLIC["conj"](right), values, PUBLIC["conj"](left)) if wide else (left, values, right)


def pca_lowrank(A: Array, q: int | None = None, center: bool = True, niter: int = 2) -> tuple[Array, Array, Array]:
    """`svd_lowrank` of A (..., m, n), whose columns are centred first."""
    count = min(6, *A.shape[-2:]) if q is None else q
    if not 0 <= count <= min(A.shape[-2:]):
        raise bad_option("pca_lowrank", "q", q, f"between 0 and {min(A.shape[-2:])}")
    return svd_lowrank(A - A.mean(-2, keepdim=True) if center else A, count, niter)


def histogramdd(
    input: Array,
    bins: int | Sequence[int] | Sequence[Array] = 10,
    range: Sequence[float] | None = None,
    weight: Array | None = None,
    density: bool = False,
) -> tuple[Tensor, list[Tensor]]:
    """Counts of points (..., d) in d dimensions, or sums of their `weight`, and the edges of the bins; no gradient."""
    points = np.asarray(concrete(input.detach(), "histogramdd"))
    edges = [np.asarray(one) for one in bins] if isinstance(bins, Sequence) and np.ndim(bins[0]) else bins
    limits = None if range is None else list(zip(range[::2], range[1::2], strict=True))
    weights = None if weight is None else np.asarray(concrete(weight.detach(), "histogramdd")).reshape(-1)
    rows = points.reshape(-1, points.shape[-1])
    counts, found = np.histogramdd(rows, edges, limits, density=density, weights=weights)
    dtype = points.dtype
    return creation.tensor(counts, dtype), [creation.tensor(one, dtype) for one in found]


# --- other spellings ------------------------------------------------------------------------------

_MODES = ("bilinear", "nearest", "bicubic")
_BORDERS = ("zeros", "border", "reflection")


def grid_sampler(input: Array, grid: Array, interpolation_mode: int, padding_mode: int, align_corners: bool) -> Array:
    """`grid_sample`, with numbers for its modes."""
    return PUBLIC["grid_sample"](input, grid, _MODES[interpolation_mode], _BORDERS[padding_mode], align_corners)


def range_(
    start: float = 0, end: float | None = None, step: float = 1, *, dtype: DType = None, device: Device = None
) -> Tensor:
    """Numbers from `start` to `end`, which is among them: PyTorch's older `arange`."""
    start, end = (0, start) if end is None else (start, end)
    if not step or (end - start) / step < 0:
        raise bad_option("range", "step", step, f"a step that leads from {start} to {end}")
    numbers = start + step * np.arange(math.floor((end - start) / step) + 1)
    return creation.tensor(numbers, dtype or creation.DEFAULT, device=device)


def vander(x: Array, N: int | None = None, increasing: bool = False) -> Array:
    """The powers of the elements of a vector (n,), the highest first unless they are `increasing`: (n, N)."""
    count = x.shape[0] if N is None else N
    if count < 2:
        return PUBLIC["unsqueeze"](x**0, 1)[:, :count]
    powers = linalg.vander(x, N=count)
    return powers if increasing else PUBLIC["flip"](powers, (1,))


# Functions of torch.nn.functional that are also functions of torch, with the same arguments.
_FUNCTIONAL = (
    "bilinear cosine_similarity pairwise_distance dropout alpha_dropout feature_alpha_dropout group_norm layer_norm "
    "rms_norm rrelu rrelu_ pdist channel_shuffle"
)

NAMES = {
    **{name: getattr(functional, name) for name in _FUNCTIONAL.split()},
    **dict.fromkeys(("grid_sampler", "grid_sampler_2d", "grid_sampler_3d"), grid_sampler),
    "svd_lowrank": svd_lowrank,
    "pca_lowrank": pca_lowrank,
    "histogramdd": histogramdd,
    "range": range_,
    "vander": vander,
}
