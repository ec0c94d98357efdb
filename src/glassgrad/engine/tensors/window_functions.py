"""Windows for short pieces of a signal: `torch.hann_window` and the like, tensors without a gradient.

Formulas: Harris (1978), "On the use of windows for harmonic analysis with the discrete Fourier transform".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from glassgrad.engine.tensor import Tensor
from glassgrad.engine.tensors import creation
from glassgrad.engine.tensors.devices import Device, DType
from glassgrad.ops.core import Array, bad_option


def _made(
    length: int, periodic: bool, formula: Callable[[Any], Any], dtype: DType, device: Device, grad: bool
) -> Tensor:
    """The formula at `length` positions from 0 to 1; a periodic window is one longer, without its last position."""
    if length < 0:
        raise bad_option("window", "window_length", length, "at least 0")
    if length < 2:
        values = np.ones(length)
    else:
        steps = length if periodic else length - 1
        values = formula(np.arange(length) / steps)
    return creation.tensor(values, dtype or creation.DEFAULT, grad, device)


def hann_window(
    window_length: int,
    periodic: bool = True,
    *,
    dtype: DType = None,
    device: Device = None,
    requires_grad: bool = False,
) -> Tensor:
    """0.5 - 0.5 cos(2 pi n / N); N is the length, or with `periodic` False the length minus 1.

    Example:
        >>> import glassgrad as gg
        >>> gg.hann_window(4).tolist()
        [0.0, 0.5, 1.0, 0.5]
    """
    return hamming_window(window_length, periodic, 0.5, 0.5, dtype=dtype, device=device, requires_grad=requires_grad)


def hamming_window(
    window_length: int,
    periodic: bool = True,
    alpha: float = 0.54,
    beta: float = 0.46,
    *,
    dtype: DType = None,
    device: Device = None,
    requires_grad: bool = False,
) -> Tensor:
    """alpha - beta cos(2 pi n / N); N is the length, or with `periodic` False the length minus 1."""
    return _made(window_length, periodic, lambda u: alpha - beta * np.cos(2 * np.pi * u), dtype, device, requires_grad)


def blackman_window(
    window_length: int,
    periodic: bool = True,
    *,
    dtype: DType = None,
    device: Device = None,
    requires_grad: bool = False,
) -> Tensor:
    """0.42 - 0.5 cos(2 pi n / N) + 0.08 cos(4 pi n / N)."""

    def formula(u: Array) -> Array:
        return 0.42 - 0.5 * np.cos(2 * np.pi * u) + 0.08 * np.cos(4 * np.pi * u)

    return _made(window_length, periodic, formula, dtype, device, requires_grad)


def bartlett_window(
    window_length: int,
    periodic: bool = True,
    *,
    dtype: DType = None,
    device: Device = None,
    requires_grad: bool = False,
) -> Tensor:
    """1 - |2 n / N - 1|: a triangle."""
    return _made(window_length, periodic, lambda u: 1 - np.abs(2 * u - 1), dtype, device, requires_grad)


def kaiser_window(
    window_length: int,
    periodic: bool = True,
    beta: float = 12.0,
    *,
    dtype: DType = None,
    device: Device = None,
    requires_grad: bool = False,
) -> Tensor:
    """I0(beta sqrt(1 - (2 n / N - 1)**2)) / I0(beta), with the modified Bessel function I0."""

    def formula(u: Array) -> Array:
        return np.i0(beta * np.sqrt(np.maximum(1 - (2 * u - 1) ** 2, 0))) / np.i0(beta)

    return _made(window_length, periodic, formula, dtype, device, requires_grad)


__all__ = ["bartlett_window", "blackman_window", "hamming_window", "hann_window", "kaiser_window"]
