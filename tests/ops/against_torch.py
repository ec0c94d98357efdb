"""Compare a function of ours with one of PyTorch's: values and gradients from the same inputs, in float64."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import glassgrad as gg

torch = pytest.importorskip("torch", reason="PyTorch is the oracle")


def real(*shape: int, seed: int = 0) -> np.ndarray[Any, Any]:
    """Standard normal numbers that depend on the shape and the seed only."""
    return np.random.default_rng([seed, *shape]).normal(size=shape)


def as_tuple(y: Any) -> tuple[Any, ...]:
    return tuple(y) if isinstance(y, tuple | list) else (y,)


def compare(
    ours: Callable[..., Any],
    theirs: Callable[..., Any],
    *inputs: np.ndarray[Any, Any],
    rtol: float = 1e-9,
    atol: float = 1e-10,
) -> None:
    """Check all results, and the gradients of all inputs under random cotangents of all results."""
    mine = [gg.tensor(x, requires_grad=True) for x in inputs]
    other = [torch.tensor(x, requires_grad=True) for x in inputs]
    found, expected = as_tuple(ours(*mine)), as_tuple(theirs(*other))
    assert len(found) == len(expected)
    rng = np.random.default_rng(1)
    loss, loss_expected = 0.0, 0.0
    for y, y_expected in zip(found, expected, strict=True):
        assert y.shape == tuple(y_expected.shape)
        np.testing.assert_allclose(y.detach().numpy(), y_expected.detach().numpy(), rtol=rtol, atol=atol)
        if y_expected.requires_grad:
            cotangent = rng.normal(size=y.shape)
            loss = loss + (y * gg.tensor(cotangent)).sum()
            loss_expected = loss_expected + (y_expected * torch.tensor(cotangent)).sum()
    loss.backward()
    loss_expected.backward()
    for x, x_expected in zip(mine, other, strict=True):
        np.testing.assert_allclose(x.grad.numpy(), x_expected.grad.numpy(), rtol=rtol, atol=atol)
