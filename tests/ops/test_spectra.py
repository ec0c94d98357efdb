"""Short-time Fourier transforms, windows, transforms over several dimensions and polar numbers, against PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import glassgrad as gg
from glassgrad import errors
from tests.ops.against_torch import compare, real, torch

WINDOWS = ("hann_window", "hamming_window", "blackman_window", "bartlett_window", "kaiser_window")


@pytest.mark.parametrize("name", WINDOWS)
@pytest.mark.parametrize("length", [0, 1, 2, 5, 8])
@pytest.mark.parametrize("periodic", [True, False])
def test_windows(name: str, length: int, periodic: bool) -> None:
    found = getattr(gg, name)(length, periodic, dtype=gg.float64)
    expected = getattr(torch, name)(length, periodic, dtype=torch.float64)
    np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-6, atol=1e-12)
    assert getattr(gg, name)(length).dtype == np.float32


OPTIONS: list[dict[str, Any]] = [
    {}, {"hop_length": 3}, {"win_length": 5}, {"center": False}, {"normalized": True}, {"onesided": False},
    {"hop_length": 2, "win_length": 7, "normalized": True, "center": True},
]  # fmt: skip  # a table


# PyTorch warns of spectra without a window, and of signals that are filled up with zeros.
quietly = pytest.mark.filterwarnings("ignore::UserWarning")


@quietly
@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("shape", [(21,), (2, 20)])
def test_spectra_of_pieces(options: dict[str, Any], shape: tuple[int, ...]) -> None:
    window = real(options.get("win_length", 8), seed=1)
    given = {"return_complex": False, **options}
    compare(
        lambda x, w: gg.stft(x, 8, window=w, **given),
        lambda x, w: torch.stft(x, 8, window=w, **given),
        real(*shape),
        window,
    )
    given["pad_mode"] = "constant"
    compare(lambda x: gg.stft(x, 8, **given), lambda x: torch.stft(x, 8, **given), real(*shape))


@quietly
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"hop_length": 3},
        {"win_length": 7, "hop_length": 2},
        {"length": 17},
        {"normalized": True, "length": 60},
        {"onesided": False},
    ],
    ids=str,
)
@pytest.mark.parametrize("lead", [(), (2,)])
def test_signals_from_spectra(options: dict[str, Any], lead: tuple[int, ...]) -> None:
    count = 8 if options.get("onesided") is False else 5
    window = np.random.default_rng(2).uniform(0.5, 1.5, options.get("win_length", 8))

    def call(lib: Any, re: Any, im: Any, w: Any) -> Any:
        return lib.istft(lib.complex(re, im), 8, window=w, **options)

    re, im = real(*lead, count, 12), real(*lead, count, 12, seed=1)
    compare(lambda *x: call(gg, *x), lambda *x: call(torch, *x), re, im, window, rtol=1e-8)


def test_a_signal_comes_back_from_its_spectra() -> None:
    x = gg.tensor(real(2, 32))
    window = gg.hann_window(8, dtype=gg.float64)
    back = gg.istft(gg.stft(x, 8, 2, window=window, return_complex=True), 8, 2, window=window, length=32)
    np.testing.assert_allclose(back.numpy(), x.numpy(), atol=1e-12)
    z = gg.complex(x, x * x)
    back = gg.istft(gg.stft(z, 8, 2, window=window), 8, 2, window=window, length=32, return_complex=True)
    np.testing.assert_allclose(back.numpy(), z.numpy(), atol=1e-12)


@pytest.mark.parametrize(
    "call",
    [
        lambda lib, z: lib.fft.fftn(z),
        lambda lib, z: lib.fft.ifftn(z, (2, 5), norm="ortho"),
        lambda lib, z: lib.fft.irfftn(z, dim=(0, 2)),
        lambda lib, z: lib.fft.hfft(z, 5, norm="forward"),
        lambda lib, z: lib.fft.hfft(z, dim=0),
        lambda lib, z: lib.fft.hfftn(z, (3, 6), (0, 1)),
        lambda lib, z: lib.fft.hfft2(z),
        lambda lib, z: lib.fft.rfftn(abs(z), (-1, 3), (0, 1), "forward"),
        lambda lib, z: lib.fft.ihfft(abs(z), 3),
        lambda lib, z: lib.fft.ihfftn(abs(z)),
        lambda lib, z: lib.fft.ihfft2(abs(z), norm="ortho"),
        lambda lib, z: lib.fft.ihfft2(abs(z), dim=(1, 0)),
    ],
)
def test_transforms_over_several_dimensions(call: Callable[[Any, Any], Any]) -> None:
    def parts(lib: Any, a: Any, b: Any) -> Any:
        y = call(lib, lib.complex(a, b))
        return lib.view_as_real(y if lib is gg else y.resolve_conj()) if lib.is_complex(y) else y

    compare(lambda *x: parts(gg, *x), lambda *x: parts(torch, *x), real(3, 4, 5), real(3, 4, 5, seed=1), rtol=1e-8)


def test_numpys_names_of_them() -> None:
    x = real(3, 4, 6)
    for name, options in (
        ("fftn", {}),
        ("ifftn", {"axes": (0, 2)}),
        ("rfftn", {"s": (2, 4), "axes": (1, 2)}),
        ("hfft", {"axis": 1}),
        ("ihfft", {"n": 4}),
    ):
        function = getattr(np.fft, name)
        found = function(gg.tensor(x), **options)
        assert isinstance(found, gg.Tensor)
        np.testing.assert_allclose(found.numpy(), function(x, **options), atol=1e-12)


def test_polar_numbers() -> None:
    compare(
        lambda r, a: gg.view_as_real(gg.polar(r, a)),
        lambda r, a: torch.view_as_real(torch.polar(r, a)),
        abs(real(3, 4)),
        real(3, 4, seed=1),
    )


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda x: gg.stft(x, 8), "True, or False for pairs"),
        (lambda x: gg.stft(x, 64, center=False, return_complex=True), "the length 20"),
        (lambda x: gg.stft(x, 8, win_length=9, return_complex=True), "n_fft=8"),
        (lambda x: gg.stft(x, 8, window=gg.ones(5), return_complex=True), "a vector of 8"),
        (lambda x: gg.stft(x[None, None], 8, return_complex=True), "batch, n"),
        (lambda x: gg.istft(gg.fft.rfft(x), 8), "frequencies, pieces"),
        (lambda x: gg.istft(gg.fft.rfft(x)[None], 8), "5 frequencies"),
        (
            lambda x: gg.istft(
                gg.stft(x, 8, 8, center=False, return_complex=True), 8, 8, center=False, window=gg.hann_window(8)
            ),
            "more than 0",
        ),
        (lambda x: gg.fft.fftn(x, dim=(0, 0)), "different dimensions"),
    ],
)
def test_what_cannot_be_is_named(call: Callable[[Any], Any], said: str) -> None:
    with pytest.raises((errors.ArgumentError, IndexError), match=said):
        call(gg.tensor(real(20)))
