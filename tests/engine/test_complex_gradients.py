"""Gradients of complex tensors: PyTorch's convention everywhere."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import glassgrad as gg


def pair(*shape: int, seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    return rng.normal(size=shape) + 1j * rng.normal(size=shape)


def both(library: Any, z: Any) -> list[Any]:
    """Return every gradient that a small program meets, in glassgrad or in PyTorch."""
    seen: list[Any] = []
    leaf = library.tensor(z, requires_grad=True)
    factor = library.tensor(z[::-1].copy())
    middle = leaf * factor
    middle.retain_grad()
    middle.register_hook(seen.append)
    replaced = library.exp(middle * 0.1)
    replaced.register_hook(lambda g: g * (1 + 2j))
    loss = (replaced * replaced.conj()).real.sum()
    loss.backward()
    seen += [leaf.grad, middle.grad]
    other = library.tensor(z, requires_grad=True)
    y = other * other
    (first,) = library.autograd.grad(y, other, library.tensor(z + 1), create_graph=True)
    (second,) = library.autograd.grad(first, other, library.tensor(z - 1j))
    seen += [first, second]

    class Times(library.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * (2 + 1j)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            seen.append(g)
            return g * (2 - 1j)

    third = library.tensor(z, requires_grad=True)
    (Times.apply(third) * (1j * factor)).real.sum().backward()
    return [g.detach().numpy() if library is gg else g.detach().resolve_conj().numpy() for g in [*seen, third.grad]]


def test_every_gradient_a_user_meets_is_pytorchs() -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is the oracle")
    z = pair(4)
    found, expected = both(gg, z), both(torch, z)
    assert len(found) == len(expected) == 7
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)


def test_the_gradient_of_a_real_loss_is_its_direction_of_ascent() -> None:
    z, step = pair(3, seed=1), 1e-7

    def loss(x: Any) -> Any:
        return ((x * x * (1 - 2j)).imag + (x * x.conj()).real).sum()

    leaf = gg.tensor(z, requires_grad=True)
    loss(leaf).backward()
    for at in range(3):
        for direction in (1.0, 1.0j):
            moved = [z + sign * step * direction * (np.arange(3) == at) for sign in (1, -1)]
            slope = (float(loss(gg.tensor(moved[0]))) - float(loss(gg.tensor(moved[1])))) / (2 * step)
            assert float(np.real(leaf.grad.numpy()[at] * np.conj(direction))) == pytest.approx(slope, rel=1e-6)
