"""`torch.fft`: discrete Fourier transforms. See `glassgrad.ops.complexes` for what complex tensors can do."""

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

__all__ = [
    "fft", "fft2", "fftfreq", "fftshift", "ifft", "ifft2", "ifftshift", "irfft", "irfft2", "rfft", "rfft2", "rfftfreq",
]  # fmt: skip
