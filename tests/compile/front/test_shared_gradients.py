"""Parameters whose gradients are one value, as both biases of a recurrent layer: each keeps its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import glassgrad as gg
from glassgrad import nn


def clipped(parameters: list[Any]) -> None:
    nn.utils.clip_grad_norm_(parameters, 0.5)


def halved(parameters: list[Any]) -> None:
    for one in parameters:
        one.grad.mul_(0.5)


def divided(parameters: list[Any]) -> None:
    for one in parameters:
        one.grad /= 4.0


@pytest.mark.parametrize("kind", [nn.RNN, nn.LSTM, nn.GRU])
@pytest.mark.parametrize("change", [clipped, halved, divided])
@pytest.mark.parametrize("backend", ["numpy", "llvm"])
def test_a_change_of_each_gradient_counts_once(kind: Any, change: Callable[[list[Any]], None], backend: str) -> None:
    gg.manual_seed(0)
    layer, x = kind(3, 4, batch_first=True), gg.randn(5, 3, 3)
    parameters = list(layer.parameters())

    def step(wanted: bool) -> Any:
        for one in parameters:
            one.grad = None
        (layer(x)[0] ** 2).sum().backward()
        if wanted:
            change(parameters)
        return [one.grad * 1 for one in parameters]

    plain = [one.numpy() for one in step(False)]
    norm = np.sqrt(sum(float((one**2).sum()) for one in plain))
    factor = {clipped: min(0.5 / (norm + 1e-6), 1.0), halved: 0.5, divided: 0.25}[change]
    for run in (step, gg.compile(step, backend=backend, strict=True)):
        for found, one in zip(run(True), plain, strict=True):
            np.testing.assert_allclose(found.numpy(), factor * one, rtol=1e-4, atol=1e-7)


def test_one_parameter_added_to_another_has_a_gradient_of_its_own() -> None:
    first, second = (gg.ones(3, requires_grad=True) for _ in range(2))

    @gg.compile(strict=True)
    def step() -> Any:
        first.grad = second.grad = None
        ((first + second) ** 2).sum().backward()
        first.grad.mul_(10.0)
        return first.grad * 1, second.grad * 1

    one, other = step()
    assert one.tolist() == [40.0] * 3
    assert other.tolist() == [4.0] * 3
