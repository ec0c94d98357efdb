"""`torch.fft`: discrete Fourier transforms. See `glassgrad.ops.complexes` about complex tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from glassgrad.engine.tensor import Tensor
from glassgrad.engine.tensors import creation
from glassgrad.errors.missing import getter, lister
from glassgrad.ops import examples
from glassgrad.ops.fft import (
    fft,
    fft2,
    fftn,
    fftshift,
    hfft,
    hfft2,
    hfftn,
    ifft,
    ifft2,
    ifftn,
    ifftshift,
    ihfft,
    ihfft2,
    ihfftn,
    irfft,
    irfft2,
    irfftn,
    rfft,
    rfft2,
    rfftn,
)


def fftfreq(n: int, d: float = 1.0, *, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """The frequencies of `fft` for `n` samples `d` apart.

    Example:
        >>> import glassgrad as gg
        >>> gg.fft.fftfreq(4).tolist()
        [0.0, 0.25, -0.5, -0.25]
    """
    return creation.tensor(np.fft.fftfreq(n, d), dtype or creation.DEFAULT, requires_grad, device)


def rfftfreq(n: int, d: float = 1.0, *, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """The frequencies of `rfft` for `n` samples `d` apart."""
    return creation.tensor(np.fft.rfftfreq(n, d), dtype or creation.DEFAULT, requires_grad, device)


examples.show(__name__, globals())

if not TYPE_CHECKING:
    __getattr__ = getter(__name__)

__all__ = [
    "fft", "fft2", "fftfreq", "fftn", "fftshift", "hfft", "hfft2", "hfftn", "ifft", "ifft2", "ifftn", "ifftshift",
    "ihfft", "ihfft2", "ihfftn", "irfft", "irfft2", "irfftn", "rfft", "rfft2", "rfftfreq", "rfftn",
]  # fmt: skip  # a table
__dir__ = lister(__name__)
