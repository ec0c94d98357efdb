"""Fourier transforms and the complex tensors between them, against PyTorch."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import glassgrad as gg
from glassgrad import errors
from tests.ops.against_torch import compare, real

torch = pytest.importorskip("torch", reason="PyTorch is the oracle")

NORMS = (None, "ortho", "forward", "backward")


def parts(library: Any, z: Any) -> tuple[Any, ...]:
    """Several real functions of a complex result, so that both its parts are tested."""
    return library.real(z), library.imag(z), library.abs(z), library.angle(z), library.real(z * z)


@pytest.mark.parametrize("name", ["fft", "ifft", "rfft"])
@pytest.mark.parametrize(("n", "dim"), list(itertools.product((None, 3, 8), (-1, 0))))
@pytest.mark.parametrize("norm", NORMS)
def test_transforms_of_real_signals(name: str, n: int | None, dim: int, norm: str | None) -> None:
    x = real(4, 3) + 0.1
    compare(
        lambda t: parts(gg, getattr(gg.fft, name)(t, n, dim, norm))[:3],
        lambda t: parts(torch, getattr(torch.fft, name)(t, n, dim, norm).resolve_conj())[:3],
        x,
        rtol=1e-7,
    )


@pytest.mark.parametrize(("n", "dim"), list(itertools.product((None, 3, 4, 9), (-1, 0))))
@pytest.mark.parametrize("norm", NORMS)
def test_back_to_a_real_signal(n: int | None, dim: int, norm: str | None) -> None:
    re, im = real(4, 3), real(4, 3, seed=1)
    compare(
        lambda a, b: gg.fft.irfft(gg.complex(a, b), n, dim, norm),
        lambda a, b: torch.fft.irfft(torch.complex(a, b), n, dim, norm),
        re,
        im,
    )
    compare(lambda a: gg.fft.irfft(a, n, dim, norm), lambda a: torch.fft.irfft(a, n, dim, norm), re)


@pytest.mark.parametrize("name", ["fft", "ifft"])
def test_transforms_of_complex_signals(name: str) -> None:
    compare(
        lambda a, b: parts(gg, getattr(gg.fft, name)(gg.complex(a, b), 5)),
        lambda a, b: parts(torch, getattr(torch.fft, name)(torch.complex(a, b), 5)),
        real(2, 4),
        real(2, 4, seed=1),
    )


@pytest.mark.parametrize("name", ["fft2", "ifft2", "rfft2"])
@pytest.mark.parametrize("s", [None, (3, 5)])
def test_two_dimensions(name: str, s: Any) -> None:
    compare(
        lambda t: parts(gg, getattr(gg.fft, name)(t, s, norm="ortho"))[:2],
        lambda t: parts(torch, getattr(torch.fft, name)(t, s, norm="ortho").resolve_conj())[:2],
        real(2, 4, 6),
    )
    compare(
        lambda a, b: gg.fft.irfft2(gg.complex(a, b), s),
        lambda a, b: torch.fft.irfft2(torch.complex(a, b), s),
        real(2, 4, 4),
        real(2, 4, 4, seed=1),
    )


def test_functions_of_complex_tensors_carry_gradients() -> None:
    """A filter in the frequency domain and what is usually done around it."""

    def network(library: Any, x: Any, re: Any, im: Any) -> tuple[Any, ...]:
        spectrum = library.fft.rfft(x) * library.complex(re, im)
        signal = library.fft.irfft(spectrum, 8)
        z = library.fft.ifft(library.fft.fft(signal * signal) / library.fft.fft(x))
        gram = z.mT @ z
        return (
            signal,
            library.abs(gram),
            library.abs(library.conj(z) * library.exp(spectrum[..., :1] * 0.1) - 2.0),
            library.real(library.view_as_real(library.view_as_complex(library.view_as_real(z)) * x)).sum(-1),
            library.angle(spectrum),
        )

    compare(
        lambda *xs: network(gg, *xs), lambda *xs: network(torch, *xs), real(2, 8), real(5), real(5, seed=1), rtol=1e-7
    )


def test_second_derivatives_go_through_complex_numbers() -> None:
    x = real(6)

    def slope(library: Any, t: Any) -> Any:
        y = (library.abs(library.fft.rfft(t)) ** 3).sum()
        return library.autograd.grad(y, t, create_graph=True)[0]

    compare(lambda t: slope(gg, t), lambda t: slope(torch, t), x)


def test_single_precision_stays_single() -> None:
    x = gg.tensor([1.0, 2.0, 3.0], requires_grad=True)
    z = gg.fft.rfft(x)
    assert z.dtype == np.complex64
    y = gg.fft.irfft(z, 3)
    assert y.dtype == np.float32
    (y * y).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), [2.0, 4.0, 6.0], rtol=1e-6)
    assert gg.fft.fft(gg.tensor([1, 2])).dtype == np.complex64


def test_real_and_imaginary_parts_are_attributes_as_well() -> None:
    z = gg.complex(gg.tensor([1.0]), gg.tensor([2.0]))
    assert (z.real.tolist(), z.imag.tolist(), gg.is_complex(z)) == ([1.0], [2.0], True)
    x = gg.tensor([3.0])
    assert (x.real.tolist(), x.imag.tolist(), gg.is_complex(x)) == ([3.0], [0.0], False)
    assert gg.angle(gg.tensor([-1.0, 1.0])).tolist() == pytest.approx([np.pi, 0.0])


def test_helpers() -> None:
    x = real(4, 5)
    for dim in (None, 0, (0, 1)):
        np.testing.assert_array_equal(gg.fft.fftshift(gg.tensor(x), dim).numpy(), np.fft.fftshift(x, dim))
        np.testing.assert_array_equal(gg.fft.ifftshift(gg.tensor(x), dim).numpy(), np.fft.ifftshift(x, dim))
    np.testing.assert_allclose(gg.fft.fftfreq(5, 0.1).numpy(), np.fft.fftfreq(5, 0.1), rtol=1e-6)
    np.testing.assert_allclose(gg.fft.rfftfreq(6).numpy(), np.fft.rfftfreq(6), rtol=1e-6)


def test_what_cannot_work_is_named() -> None:
    z = gg.fft.fft(gg.ones(3))
    with pytest.raises(
        errors.KindError,
        match=r"rfft expects real numbers, given dtype complex64 .*test_fft\.py[\s\S]*use fft for complex",
    ):
        gg.fft.rfft(z)
    with pytest.raises(errors.ArgumentError, match="norm='unitary'"):
        gg.fft.fft(gg.ones(3), norm="unitary")
    with pytest.raises(errors.ArgumentError, match="n=0"):
        gg.fft.fft(gg.ones(3), 0)
