"""Discrete Fourier transforms.

The primitives work on pairs: real arrays with a last dimension of 2 for real and imaginary parts. So each is a linear
map of real numbers with an ordinary transpose. The public functions take and return complex arrays that are views of
the same memory; see `complexes`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

import numpy as np

from glassgrad import errors
from glassgrad.base import provenance
from glassgrad.ops.complex_input import takes_complex
from glassgrad.ops.complexes import _as_complex, _as_pairs, conj, is_complex, view_as_complex_p, view_as_real_p
from glassgrad.ops.core import Array, Linear, bad_option, canonical_axis, linear
from glassgrad.ops.samples import S
from glassgrad.ops.shape import astype, pad_p, roll_p, stack
from glassgrad.ops.vmap.rules import shifted

Shape = tuple[int, ...]

# --- pairs ----------------------------------------------------------------------------------------


def _replaced(shape: Sequence[int], axis: int, size: int) -> Shape:
    return (*shape[:axis], size, *shape[axis + 1 :])


def _fft(xp: ModuleType, x: Array, *, axis: int, inverse: bool) -> Array:
    z = _as_complex(xp, x)
    return _as_pairs(xp, xp.fft.ifft(z, axis=axis, norm="forward") if inverse else xp.fft.fft(z, axis=axis))


def _half_weights(xp: ModuleType, size: int, ndim: int, axis: int, dtype: Any) -> Array:
    """1 where a frequency is its own mirror image (0, and the middle one of an even size), else 1/2."""
    weights = xp.full(size // 2 + 1, 0.5, dtype)
    weights[0] = 1
    if size % 2 == 0:
        weights[-1] = 1
    return weights.reshape((1,) * axis + (-1,) + (1,) * (ndim - axis - 1))


def _rfft_back(xp: ModuleType, g: Array, *, axis: int, size: int) -> Array:
    weighted = _as_complex(xp, g * _half_weights(xp, size, g.ndim, axis, g.dtype))
    return xp.fft.irfft(weighted, size, axis=axis, norm="forward").astype(g.dtype, copy=False)


fft_p: Linear = linear(
    "fft",
    _fft,
    (lambda g, x, *, axis, inverse: fft_p(g, axis=axis, inverse=not inverse),),
    batch=shifted,
    shape=lambda x, *, axis, inverse: x.shape,
    takes_complex=False,
)
fft_p.describe("y[k] = sum x[n] exp(-2 pi i k n / N) on pairs (re, im)", "sum g[k] exp(2 pi i k n / N)")
fft_p.samples = [S((4, 2), axis=0, inverse=False), S((3, 5, 2), axis=1, inverse=True)]
rfft_p: Linear = linear(
    "rfft",
    lambda xp, x, *, axis: _as_pairs(xp, xp.fft.rfft(x, axis=axis)),
    (lambda g, x, *, axis: rfft_back_p(g, axis=axis, size=x.shape[axis]),),
    batch=shifted,
    shape=lambda x, *, axis: (*_replaced(x.shape, axis, x.shape[axis] // 2 + 1), 2),
    takes_complex=False,
)
rfft_p.describe("the first half of fft(x), as pairs, for real x", "sum re(g[k] exp(2 pi i k n / N))")
rfft_p.samples = [S((4,), axis=0), S((2, 5), axis=1), S((6, 2), axis=0)]
rfft_back_p: Linear = linear(
    "rfft_back",
    _rfft_back,
    (lambda c, g, *, axis, size: rfft_p(c, axis=axis),),
    batch=shifted,
    shape=lambda g, *, axis, size: _replaced(g.shape[:-1], axis, size),
    takes_complex=False,
)
rfft_back_p.describe("y[n] = sum re(x[k] exp(2 pi i k n / N)) over half of the frequencies", "rfft(g)")
rfft_back_p.samples = [S((3, 2), axis=0, size=4), S((2, 3, 2), axis=1, size=5)]

# --- transforms -----------------------------------------------------------------------------------


def _scale(norm: str | None, size: int, inverse: bool) -> float:
    if norm not in {None, "backward", "ortho", "forward"}:
        expected = "'backward', 'ortho' or 'forward'"
        raise bad_option("fft", "norm", norm, expected)
    if norm == "ortho":
        return 1 / math.sqrt(size)
    return 1 / size if inverse == (norm != "forward") else 1.0


def _resized(x: Array, axis: int, size: int) -> Array:
    """Crop the axis, or pad it with zeros."""
    have = x.shape[axis]
    if size < 1:
        raise bad_option("fft", "n", size, "at least 1")
    if have > size:
        return x[(*(slice(None),) * axis, slice(0, size))]
    if have < size:
        widths = tuple((0, size - have if at == axis else 0) for at in range(len(x.shape)))
        return pad_p(x, widths=widths, value=0.0)
    return x


def _floating(x: Array) -> Array:
    return x if x.dtype.kind in "fcV" else astype(x, np.float32)


def _times(x: Array, factor: float) -> Array:
    return x if factor == 1 else x * factor


def _complex_transform(x: Array, n: int | None, dim: int, norm: str | None, inverse: bool) -> Array:
    x = _floating(x)
    axis = canonical_axis(dim, len(x.shape))
    size = x.shape[axis] if n is None else n
    x = _resized(x, axis, size)
    pairs = view_as_real_p(x) if is_complex(x) else stack([x, np.zeros(x.shape, x.dtype)], -1)
    y = fft_p(pairs, axis=axis, inverse=inverse)
    return view_as_complex_p(_times(y, _scale(norm, size, inverse)))


def fft(input: Array, n: int | None = None, dim: int = -1, norm: str | None = None) -> Array:
    """Discrete Fourier transform along `dim`, cropped or zero-padded to `n`: a complex tensor.

    `norm`: "backward" (no factor here, 1/n in the inverse), "ortho" (1/sqrt(n) in both), "forward".
    """
    return _complex_transform(input, n, dim, norm, inverse=False)


def ifft(input: Array, n: int | None = None, dim: int = -1, norm: str | None = None) -> Array:
    """Inverse of `fft`: a complex tensor."""
    return _complex_transform(input, n, dim, norm, inverse=True)


def rfft(input: Array, n: int | None = None, dim: int = -1, norm: str | None = None) -> Array:
    """The n // 2 + 1 frequencies of a real signal, which determine the others: a complex tensor.

    Example:
        >>> import glassgrad as gg
        >>> x = gg.tensor([1.0, 0.0, 0.0, 0.0], requires_grad=True)
        >>> gg.fft.rfft(x).abs().sum().backward()
        >>> x.grad.tolist()
        [3.0, 0.0, 1.0, 0.0]
    """
    if is_complex(input):
        raise errors.FFT_REAL(op="rfft", dtype=input.dtype, where=provenance.here())
    x = _floating(input)
    axis = canonical_axis(dim, len(x.shape))
    size = x.shape[axis] if n is None else n
    y = rfft_p(_resized(x, axis, size), axis=axis)
    return view_as_complex_p(_times(y, _scale(norm, size, inverse=False)))


def irfft(input: Array, n: int | None = None, dim: int = -1, norm: str | None = None) -> Array:
    """Inverse of `rfft`: a real signal of `n` numbers (default: 2 (m - 1) for m frequencies)."""
    z = _floating(input)
    axis = canonical_axis(dim, len(z.shape))
    size = 2 * (z.shape[axis] - 1) if n is None else n
    pairs = view_as_real_p(z) if is_complex(z) else stack([z, np.zeros(z.shape, z.dtype)], -1)
    pairs = _resized(pairs, axis, size // 2 + 1)
    # `rfft_back` counts every frequency once, but a frequency that differs from its mirror image stands for two.
    doubled = pairs * (1 / _half_weights(np, size, len(pairs.shape), axis, pairs.dtype))
    return _times(rfft_back_p(doubled, axis=axis, size=size), _scale(norm, size, inverse=True))


def hfft(input: Array, n: int | None = None, dim: int = -1, norm: str | None = None) -> Array:
    """The real spectrum (`n` numbers) of a conjugate-symmetric signal, given by its first half."""
    return irfft(conj(input), n, dim, _opposite(norm))


def ihfft(input: Array, n: int | None = None, dim: int = -1, norm: str | None = None) -> Array:
    """Inverse of `hfft`: the first n // 2 + 1 numbers of a complex signal from its real spectrum."""
    return conj(rfft(input, n, dim, _opposite(norm)))


def _opposite(norm: str | None) -> str | None:
    """The norm of the transform in the other direction."""
    return {None: "forward", "backward": "forward", "forward": "backward"}.get(norm, norm)


# --- several dimensions ---------------------------------------------------------------------------


def _plan(input: Array, s: Any, dim: Any, op: str) -> list[tuple[int | None, int]]:
    """The requested size (or None) of every dimension; without `dim`, all dimensions or the last len(s)."""
    ndim = len(input.shape)
    if dim is None:
        dims: Sequence[int] = range(ndim) if s is None else range(ndim - len(s), ndim)
    else:
        dims = (dim,) if isinstance(dim, int) else tuple(dim)
    sizes = (None,) * len(dims) if s is None else (s,) if isinstance(s, int) else tuple(s)
    axes = [canonical_axis(axis, ndim) for axis in dims]
    if len(sizes) != len(axes) or len(set(axes)) != len(axes) or not axes:
        raise bad_option(op, "dim", dim, f"different dimensions, as many as there are sizes in s={s}")
    return [(None if size == -1 else size, axis) for size, axis in zip(sizes, axes, strict=True)]


def _over(
    name: str, last: Callable[..., Array], others: Callable[..., Array], about: str, *, last_first: bool = False
) -> tuple[Callable[..., Array], Callable[..., Array]]:
    """Return two transforms, over any dimensions and over two: `last` on the last dimension, `others` on the others.

    `about` is the docstring. Descriptions of the dimensions replace {dims}, {named} and {others} in it; {form} is "n"
    or "2".
    """

    def over_any(input: Array, s: Any = None, dim: Any = None, norm: str | None = None) -> Array:
        *rest, end = _plan(input, s, dim, f"{name}n")
        if last_first:
            input = last(input, *end, norm)
        for size, axis in rest:
            input = others(input, size, axis, norm)
        return input if last_first else last(input, *end, norm)

    def over_two(input: Array, s: Any = None, dim: Any = (-2, -1), norm: str | None = None) -> Array:
        return over_any(input, s, dim, norm)

    words = (
        (over_any, "n", "several dimensions, all of them by default", "several dimensions", "others"),
        (over_two, "2", "two dimensions", "two dimensions", "other"),
    )
    for function, form, dims, named, rest in words:
        function.__name__ = function.__qualname__ = f"{name}{form}"
        function.__doc__ = about.format(dims=dims, named=named, others=rest, form=form)
    return over_any, over_two


fftn, fft2 = _over("fft", fft, fft, "`fft` over {dims}.")
ifftn, ifft2 = _over("ifft", ifft, ifft, "`ifft` over {dims}.")
rfftn, rfft2 = _over(
    "rfft", rfft, fft, "`rfft` over the last of {named}, then `fft` over the {others}.", last_first=True
)
irfftn, irfft2 = _over("irfft", irfft, ifft, "Inverse of `rfft{form}`.")
hfftn, hfft2 = _over("hfft", hfft, fft, "`fft` over all but the last of {named}, then `hfft` over that.")
ihfftn, ihfft2 = _over("ihfft", ihfft, ifft, "Inverse of `hfft{form}`.", last_first=True)


# --- order of the frequencies ---------------------------------------------------------------------


def _shifted(input: Array, dim: Any, sign: int) -> Array:
    ndim = len(input.shape)
    dims = range(ndim) if dim is None else [dim] if isinstance(dim, int) else dim
    axes = tuple(canonical_axis(axis, ndim) for axis in dims)
    steps = tuple(input.shape[axis] // 2 if sign > 0 else -(input.shape[axis] // 2) for axis in axes)
    return roll_p(input, shift=steps, axis=axes)


def fftshift(input: Array, dim: Any = None) -> Array:
    """Move frequency 0 to the middle."""
    return _shifted(input, dim, 1)


def ifftshift(input: Array, dim: Any = None) -> Array:
    """Undo `fftshift`."""
    return _shifted(input, dim, -1)


# The other transforms take real signals and check that themselves.
for _function in (
    fft,
    ifft,
    irfft,
    hfft,
    fftn,
    ifftn,
    irfftn,
    hfftn,
    fft2,
    ifft2,
    irfft2,
    hfft2,
    fftshift,
    ifftshift,
):
    takes_complex(_function)
