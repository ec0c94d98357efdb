"""Compare a function of ours with one of PyTorch's: values and gradients from the same inputs, in float64.

Results in float32 are compared with the truth in float64 (`near_truth`), not with another library's rounding, which
depends on the processor.
"""

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


def _two_orders(function: Callable[..., Any], lib: Any, *inputs: Any) -> list[Any]:
    """Value, gradients, and the gradients of a product with the gradients; 0 where there is none."""
    given = [lib.tensor(x, requires_grad=x.dtype.kind in "fc") for x in inputs]
    wanted = [x for x in given if x.requires_grad]
    y = function(lib, *given)
    draw = np.random.default_rng(3)

    def weights(like: Any) -> Any:
        numbers = draw.normal(size=tuple(like.shape))
        if "complex" in str(like.dtype):
            numbers = numbers + 1j * draw.normal(size=numbers.shape)
        return lib.tensor(numbers.astype(str(like.dtype).removeprefix("torch.")))

    def gradients(of: Any, cotangents: Any, **options: Any) -> list[Any]:
        found = lib.autograd.grad(of, wanted, cotangents, allow_unused=True, **options)
        return [lib.zeros_like(x) if g is None else g for g, x in zip(found, wanted, strict=True)]

    first = gradients([y], [weights(y)], create_graph=True)
    again = [(g, w) for g in first if (w := weights(g)) is not None and g.requires_grad]
    second = gradients([g for g, _ in again], [w for _, w in again]) if again else [lib.zeros_like(x) for x in wanted]
    found = [one.detach() for one in (y, *first, *second)]
    return [one.numpy() if lib is gg else one.resolve_conj().numpy() for one in found]


def agree_in_two_orders(function: Callable[..., Any], *inputs: Any, rtol: float = 1e-10) -> None:
    """Compare a function of (library, *inputs) with PyTorch's: value, gradients, and gradients of the gradients.

    A second walk sends tensors through the rules where the first one sends arrays.
    """
    with np.errstate(all="ignore"):
        ours = _two_orders(function, gg, *inputs)
    for found, expected in zip(ours, _two_orders(function, torch, *inputs), strict=True):
        np.testing.assert_allclose(found, expected, rtol=rtol, atol=1e-12, strict=True)


EPS = float(np.finfo(np.float32).eps)
Arrays = list[np.ndarray[Any, Any]]


def conditions(function: Callable[[Arrays], Arrays], inputs: Arrays, trials: int = 4) -> list[float]:
    """Return for each result how much larger its relative error is than that of the inputs, which alone make it.

    The inputs are moved by one unit of float32 in random directions, in float64: no algorithm that rounds its inputs
    can be nearer to the truth than what comes of that.
    """
    rng = np.random.default_rng(0)
    truth = function(inputs)
    worst = [1.0] * len(truth)
    for _ in range(trials):
        moved = function([x * (1 + EPS * rng.uniform(-1, 1, x.shape)) for x in inputs])
        for at, (y, exact) in enumerate(zip(moved, truth, strict=True)):
            size = float(np.abs(exact).max(initial=0)) or 1.0
            worst[at] = max(worst[at], float(np.abs(y - exact).max(initial=0)) / (EPS * size))
    return worst


def near_truth(found: Any, truth: Any, *, condition: float = 1.0, multiple: float = 16.0, what: str = "") -> None:
    """Check numbers of float32 against the truth: no further than a multiple of its precision times the condition.

    The distance is measured against the largest number of the truth: where another one is small because large ones
    cancel, it has their rounding.
    """
    found, truth = np.asarray(found), np.asarray(truth)
    assert found.shape == truth.shape, what
    size = float(np.abs(truth).max(initial=0))
    distance = float(np.abs(found - truth).max(initial=0))
    assert distance <= multiple * EPS * condition * size, f"{what}: {distance / (EPS * condition * (size or 1.0)):.1f}"
