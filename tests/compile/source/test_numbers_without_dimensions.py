"""In-place writes to results without dimensions: NumPy's operators turn them into numbers, which are not writeable."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import glassgrad as gg


def _assign(y: Any, x: Any) -> None:
    y[...] = x * 2


def _assign_without_index(y: Any, x: Any) -> None:
    y[()] = x * 3


def _assign_by_mask(y: Any, x: Any) -> None:
    y[None][0] = x * 3


WRITES: tuple[Callable[[Any, Any], Any], ...] = (
    _assign, _assign_without_index, _assign_by_mask,
    lambda y, x: y.add_(x), lambda y, x: y.copy_(x.sin()), lambda y, x: y.fill_(0.5), lambda y, x: y.tanh_().mul_(x),
    lambda y, x: y.view(1).mul_(x), lambda y, x: y.index_fill_(0, gg.tensor([0]), 2.0) if y.dim() else y.mul_(x),
)  # fmt: skip  # a table


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("make", [lambda x: x * 1.5, lambda x: x.sin(), lambda x: x.reshape(1).sum(), lambda x: -x])
def test_a_number_can_be_written_to(make: Any, write: Any, backend: str) -> None:
    def step(x: Any) -> Any:
        x = x.detach().clone().requires_grad_()
        y = make(x)
        write(y, x)
        loss = y * y + x
        loss.backward()
        return loss.detach(), x.grad

    given = gg.tensor(0.7, dtype=gg.float64)
    compiled = gg.compile(step, backend=backend, strict=True)
    compiled(given)
    for one, other in zip(compiled(given), step(given), strict=True):
        np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=1e-12)


@pytest.mark.parametrize("write", WRITES)
def test_the_printed_program_of_such_a_write_runs(write: Any) -> None:
    w = gg.tensor(0.7, dtype=gg.float64, requires_grad=True)

    def loss() -> Any:
        y = w * 1.5
        write(y, w)
        return y * y + w

    source = gg.backward_source(loss)()
    found, gradients = source.function()(*[source.data[name] for name in source.arguments])
    value = loss()
    value.backward()
    np.testing.assert_allclose(found, value.item(), rtol=1e-12)
    np.testing.assert_allclose(gradients["dw"], w.grad.numpy(), rtol=1e-12)
