"""Steps with recurrent layers: a loop over time is one instruction and agrees with eager mode."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import glassgrad as gg
from glassgrad import nn

SIZES = [(5, 3, 4), (33, 17, 7)]  # hidden, batch, steps; the second is cut by rows


def drawn(*shape: int) -> Any:
    return gg.tensor(np.random.default_rng(len(shape)).standard_normal(shape).astype("float32"), requires_grad=True)


def loss_of(layer: nn.Module, x: Any, states: Any, uses: str) -> Any:
    y, last = layer(x, states)
    last = last if isinstance(last, tuple) else (last,)
    used = {"y": [y], "last": list(last), "all": [y, *last]}[uses]
    return sum((one * one).sum() for one in used)


def gradients(layer: nn.Module, x: Any, states: Any, uses: str, backend: str | None) -> list[Any]:
    def step(x: Any, *states: Any) -> Any:
        given = states if len(states) > 1 else states[0]
        loss = loss_of(layer, x, given, uses)
        return loss, *gg.autograd.grad(loss, [x, *states, *layer.parameters()])

    run = step if backend is None else gg.compile(step, backend=backend, strict=True)
    return [one.numpy(force=True) for one in run(x, *states)]


@pytest.mark.parametrize("backend", ["llvm", "numpy"])
@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN", "relu"])
def test_compiled_layers_agree_with_eager_mode(kind: str, batch_first: bool, backend: str) -> None:
    if backend == "llvm":
        pytest.importorskip("llvmlite", reason="native code is made with llvmlite")
    options = {"nonlinearity": "relu"} if kind == "relu" else {}
    for number, (hidden, batch, steps) in enumerate(SIZES):
        gg.manual_seed(hidden)
        layer = getattr(nn, "RNN" if kind == "relu" else kind)(
            4, hidden, bidirectional=number == 0, batch_first=batch_first, **options
        )
        x = drawn(*((batch, steps, 4) if batch_first else (steps, batch, 4)))
        states = [drawn(2 - number, batch, hidden) for _ in range(1 + (kind == "LSTM"))]
        for uses in ("y", "last", "all"):
            expected = gradients(layer, x, states, uses, None)
            found = gradients(layer, x, states, uses, backend)
            for one, other in zip(found, expected, strict=True):
                np.testing.assert_allclose(one, other, rtol=2e-4, atol=2e-5)


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
def test_a_longer_sequence_has_as_many_instructions(kind: str) -> None:
    layer = getattr(nn, kind)(3, 4, 2)

    def step(x: Any) -> Any:
        loss = (layer(x)[0] ** 2).sum()
        return loss, *gg.autograd.grad(loss, list(layer.parameters()))

    lines = []
    for steps in (3, 50):
        compiled = gg.compile(step, backend="numpy", strict=True)
        compiled(gg.randn(steps, 2, 3))
        lines.append(compiled.source.count("\n"))
    assert abs(lines[0] - lines[1]) <= 2, "as an index has another width"


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
def test_the_printed_program_of_a_layer_runs(kind: str) -> None:
    gg.manual_seed(1)
    layer = getattr(nn, kind)(3, 4, batch_first=True, dtype=gg.float64)
    x = gg.randn(2, 5, 3, dtype=gg.float64)

    def step(x: Any) -> Any:
        y, last = layer(x)
        loss = (y**2).sum() + (last[0] ** 3).sum()
        return loss, *gg.autograd.grad(loss, list(layer.parameters()))

    compiled = gg.compile(step, backend="numpy", strict=True)
    expected = [one.numpy() for one in compiled(x)]
    source = compiled.source
    assert f"{kind.lower()}_scan(" in source
    assert f"{kind.lower()}_scan_back(" in source
    space: dict[str, Any] = {"__name__": "printed"}
    exec(source, space)  # noqa: S102 - a program that was just written
    arguments = {name: one.numpy(force=True) for name, one in layer.named_parameters()}
    found = space["step"](x=x.numpy(), **arguments)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-12)


def test_second_derivatives_in_a_step_are_those_of_eager_mode() -> None:
    layer = nn.GRU(3, 4, dtype=gg.float64)
    x = gg.randn(4, 2, 3, dtype=gg.float64).requires_grad_()

    def penalty(x: Any) -> Any:
        (g,) = gg.autograd.grad((layer(x)[0] ** 2).sum(), [x], create_graph=True)
        return gg.autograd.grad((g**2).sum(), list(layer.parameters()))

    expected = penalty(x)
    found = gg.compile(penalty, strict=True)(x)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one.numpy(force=True), other.numpy(force=True), rtol=1e-9, atol=1e-11)
