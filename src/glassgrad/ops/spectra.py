"""The short-time Fourier transform and its inverse, composed of windows and Fourier transforms."""

from __future__ import annotations

import numpy as np

from glassgrad.ops.arrange import pad
from glassgrad.ops.complex_input import takes_complex
from glassgrad.ops.complexes import is_complex, real, view_as_complex, view_as_real
from glassgrad.ops.core import Array, bad_option
from glassgrad.ops.fft import fft, ifft, irfft, rfft
from glassgrad.ops.shape import broadcast_to_p, pad_p, reshape_p
from glassgrad.ops.strided import overlap_add_p, unfold_p


def _window(window: Array | None, length: int | None, n_fft: int, like: Array, op: str) -> Array:
    """The window, zero-padded on both sides to `n_fft`."""
    size = n_fft if length is None else int(length)
    if not 0 < size <= n_fft:
        raise bad_option(op, "win_length", length, f"between 1 and n_fft={n_fft}")
    if window is None:
        window = np.ones(size, real(like).dtype)
    elif tuple(window.shape) != (size,):
        raise bad_option(op, "window", tuple(window.shape), f"a vector of {size} numbers")
    left = (n_fft - size) // 2
    return window if size == n_fft else pad_p(window, widths=((left, n_fft - size - left),), value=0.0)


def _hop(hop_length: int | None, n_fft: int, op: str) -> int:
    hop = n_fft // 4 if hop_length is None else int(hop_length)
    if hop < 1:
        raise bad_option(op, "hop_length", hop_length, "at least 1")
    return hop


@takes_complex
def stft(
    input: Array,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Array | None = None,
    center: bool = True,
    pad_mode: str = "reflect",
    normalized: bool = False,
    onesided: bool | None = None,
    return_complex: bool | None = None,
    align_to_window: bool | None = None,
) -> Array:
    """Short-time Fourier transform: the spectra of frames of a signal.

    Args:
        input: the signal (n,) or several (batch, n), real or complex.
        n_fft: the length of a frame.
        hop_length: the distance between frames; a quarter of `n_fft` by default.
        win_length: the length of the window, which is centred in a frame; `n_fft` by default.
        window: factors of a frame's elements; ones by default.
        center: whether frame t is centred at t * hop_length, for which the signal is padded.
        pad_mode: the mode of that padding, as for `pad`.
        normalized: divide by the root of `n_fft`.
        onesided: omit frequencies that follow from the others; the default if signal and window are real.
        return_complex: False gives pairs (re, im) in a last dimension. Required for a real signal.
        align_to_window: accepted as None or False.

    Returns:
        (batch, frequencies, frames).

    Example:
        >>> import glassgrad as gg
        >>> gg.stft(gg.ones(16), 8, return_complex=True).shape
        (5, 9)
    """
    whole = is_complex(input) or (window is not None and is_complex(window))
    if return_complex is None and not whole:
        raise bad_option("stft", "return_complex", None, "True, or False for pairs (re, im)")
    if align_to_window:
        raise bad_option("stft", "align_to_window", align_to_window, "None or False")
    if onesided and whole:
        raise bad_option("stft", "onesided", onesided, "False for complex signals and windows")
    alone = len(input.shape) == 1
    signal = reshape_p(input, shape=(1, *input.shape)) if alone else input
    if len(signal.shape) != 2:
        raise bad_option("stft", "input", tuple(input.shape), "(n,) or (batch, n)")
    step = _hop(hop_length, n_fft, "stft")
    weights = _window(window, win_length, n_fft, signal, "stft")
    if center:
        signal = pad(signal, (n_fft // 2, n_fft // 2), pad_mode)
    if not 0 < n_fft <= signal.shape[1]:
        raise bad_option("stft", "n_fft", n_fft, f"between 1 and the length {signal.shape[1]} of the signal")
    pieces = unfold_p(signal, axis=1, size=int(n_fft), step=step) * weights
    norm = "ortho" if normalized else "backward"
    y = rfft(pieces, norm=norm) if onesided is not False and not whole else fft(pieces, norm=norm)
    y = y.swapaxes(1, 2)
    y = y[0] if alone else y
    return y if return_complex or return_complex is None else view_as_real(y)


@takes_complex
def istft(
    input: Array,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Array | None = None,
    center: bool = True,
    normalized: bool = False,
    onesided: bool | None = None,
    length: int | None = None,
    return_complex: bool = False,
) -> Array:
    """Inverse of `stft`: the signal from the spectra of its frames, by overlap-add.

    Args:
        input: (frequencies, frames) or (batch, frequencies, frames), complex.
        n_fft, hop_length, win_length, window, center, normalized, onesided: as for `stft`.
        length: the length of the signal; by default what the frames cover.
        return_complex: whether the signal is complex, which requires all frequencies.

    Raises:
        ArgumentError: the squared windows add up to zero somewhere, so the signal is undetermined there.
    """
    if not is_complex(input):
        input = view_as_complex(input)
    if len(input.shape) not in (2, 3):
        raise bad_option("istft", "input", tuple(input.shape), "(frequencies, pieces) or (batch, frequencies, pieces)")
    alone = len(input.shape) == 2
    spectra = (reshape_p(input, shape=(1, *input.shape)) if alone else input).swapaxes(1, 2)
    step = _hop(hop_length, n_fft, "istft")
    weights = _window(window, win_length, n_fft, input, "istft")
    halved = spectra.shape[2] != n_fft if onesided is None else onesided
    if spectra.shape[2] != (n_fft // 2 + 1 if halved else n_fft):
        raise bad_option("istft", "input", tuple(input.shape), f"{n_fft // 2 + 1 if halved else n_fft} frequencies")
    if halved and return_complex:
        raise bad_option("istft", "return_complex", return_complex, "False where half of the frequencies are given")
    norm = "ortho" if normalized else "backward"
    # The first half determines a real signal; the rest is not read.
    pieces = ifft(spectra, n_fft, norm=norm) if return_complex else irfft(spectra, n_fft, norm=norm)
    signal = _added(pieces * weights, weights * weights, step, n_fft // 2 if center else 0, length)
    return signal[0] if alone else signal


def _added(pieces: Array, squares: Array, step: int, border: int, length: int | None) -> Array:
    """Overlap-add frames (batch, count, n) and divide by the sum of the squared windows, between the borders."""
    _, count, n = pieces.shape
    full = n + step * (count - 1)
    total = overlap_add_p(pieces, axis=1, step=step, length=full)
    weight = overlap_add_p(broadcast_to_p(squares, shape=(count, n)), axis=0, step=step, length=full)
    stop = full - border if length is None else min(border + length, full)
    weight = weight[border:stop]
    known = getattr(weight, "array", weight)
    if isinstance(known, np.ndarray):  # unknown while a step is traced: the signal then gets infinities
        least = float(abs(known).min()) if known.size else 1.0
        if least < 1e-11:
            expected = "windows whose squares add up to more than 0 everywhere (see scipy.signal.check_NOLA)"
            raise bad_option("istft", "window", least, expected)
    signal = total[:, border:stop] / weight
    missing = 0 if length is None else border + length - stop
    return pad_p(signal, widths=((0, 0), (0, missing)), value=0.0) if missing else signal
