"""`torch.fft`: discrete Fourier transforms. See `glassgrad.ops.complexes` for what complex tensors can do."""

from typing import TYPE_CHECKING

from glassgrad.missing import getter
from glassgrad.ops.fft import (
    fft,
    fft2,
    fftfreq,
    fftshift,
    ifft,
    ifft2,
    ifftshift,
    irfft,
    irfft2,
    rfft,
    rfft2,
    rfftfreq,
)

if not TYPE_CHECKING:
    __getattr__ = getter(__name__)

__all__ = [
    "fft", "fft2", "fftfreq", "fftshift", "ifft", "ifft2", "ifftshift", "irfft", "irfft2", "rfft", "rfft2", "rfftfreq",
]  # fmt: skip
