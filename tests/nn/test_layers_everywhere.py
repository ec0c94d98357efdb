"""Layers and losses in native code, under checkpoint and under vmap: their eager results."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import glassgrad as gg
from glassgrad import nn
from glassgrad.utils.checkpoint import checkpoint
from tests.nn.layer_cases import ATTENTION, LAYERS, OURS, RECURRENT, Case
from tests.nn.loss_cases import LOSSES

ALL = [one for one in [*LAYERS, *OURS, *LOSSES] if one.name != "Identity"]
FIRST = list({one.name: one for one in reversed(ALL)}.values())[::-1]  # one case a class
SEQUENCES = [*RECURRENT, *ATTENTION]


def built(one: Case) -> Any:
    gg.manual_seed(0)
    options = {k: gg.tensor(v) if isinstance(v, np.ndarray) else v for k, v in one.options.items()}
    return getattr(nn, one.name)(*one.args, **options).train(one.training)


def flat(result: Any) -> list[Any]:
    if isinstance(result, tuple | list):
        return [leaf for part in result for leaf in flat(part)]
    return [] if result is None else [result]


def keywords(one: Case) -> dict[str, Any]:
    return {k: gg.tensor(v) if isinstance(v, np.ndarray) else v for k, v in one.keywords.items()}


def total(outputs: Any) -> Any:
    parts = [(y * y.detach().cos()).sum() for y in flat(outputs) if y.dtype.kind == "f"]
    return sum(parts[1:], parts[0])


def gradients(one: Case, layer: Any, call: Any) -> list[Any]:
    """The value and all gradients of one call."""
    layer.zero_grad()
    inputs = [gg.tensor(array, requires_grad=array.dtype.kind == "f") for array in one.draw()]
    value = total(call(*inputs))
    if value.requires_grad:
        value.backward()
    found = [x.grad for x in inputs] + [p.grad for p in layer.parameters()]
    return [float(value), *(None if g is None else g.numpy().copy() for g in found)]


def agree(found: list[Any], expected: list[Any], scale: float = 1.0) -> None:
    assert len(found) == len(expected)
    for a, b in zip(found, expected, strict=True):
        assert (a is None) == (b is None)
        if a is not None:
            np.testing.assert_allclose(a, b, rtol=1e-3 * scale, atol=3e-5 * scale)


def in_native_code(one: Case) -> None:
    layer = built(one)
    state = {name: value.numpy().copy() for name, value in layer.state_dict().items()}
    expected = gradients(one, layer, lambda *x: layer(*x, **keywords(one)))
    layer.load_state_dict(state)
    layer.zero_grad()

    def step(*inputs: Any) -> Any:
        value = total(layer(*inputs, **keywords(one)))
        if value.requires_grad:
            value.backward()
        return value

    inputs = [gg.tensor(array, requires_grad=array.dtype.kind == "f") for array in one.draw()]
    value = gg.compile(step, backend="llvm", threads=1)(*inputs)
    found = [x.grad for x in inputs] + [p.grad for p in layer.parameters()]
    agree([float(value), *(None if g is None else g.numpy() for g in found)], expected)


@pytest.mark.parametrize("one", [one for one in FIRST if one.compiled], ids=lambda one: one.id)
def test_native_code_agrees_with_eager(one: Case) -> None:
    in_native_code(one)


@pytest.mark.slow
@pytest.mark.parametrize("one", [one for one in ALL if one.compiled and one not in FIRST], ids=lambda one: one.id)
def test_native_code_agrees_with_eager_for_every_option(one: Case) -> None:
    in_native_code(one)


@pytest.mark.parametrize("one", [*FIRST, *(one for one in SEQUENCES if one not in FIRST)], ids=lambda one: one.id)
def test_checkpointed_layers_have_the_same_gradients(one: Case) -> None:
    layer = built(one)
    state = {name: value.numpy().copy() for name, value in layer.state_dict().items()}
    expected = gradients(one, layer, lambda *x: layer(*x, **keywords(one)))
    layer.load_state_dict(state)
    found = gradients(one, layer, lambda *x: checkpoint(lambda *y: layer(*y, **keywords(one)), *x, use_reentrant=False))
    agree(found, expected)


# What depends on the batch as a whole, draws random numbers, or asks for the values of its arguments.
NOT_BATCHED = {
    "BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "InstanceNorm2d", "CTCLoss", "EmbeddingBag", "Embedding", "RReLU",
    "Dropout1d", "Dropout3d", "AlphaDropout", "FractionalMaxPool2d", "FractionalMaxPool3d",
}  # fmt: skip  # a table


@pytest.mark.parametrize(
    "one", [one for one in [*FIRST, *SEQUENCES] if one.name not in NOT_BATCHED], ids=lambda one: one.id
)
def test_layers_under_vmap_give_what_a_loop_gives(one: Case) -> None:
    layer = built(one)
    arrays = one.draw()
    batches = [
        np.stack([array, array[::-1].copy() if array.ndim else array])
        if array.dtype.kind == "f"
        else np.stack([array, array])
        for array in arrays
    ]

    def call(*inputs: Any) -> tuple[Any, ...]:
        return tuple(flat(layer(*inputs, **keywords(one))))

    together = gg.func.vmap(call)(*map(gg.tensor, batches))
    for at in range(2):
        alone = call(*(gg.tensor(batch[at]) for batch in batches))
        for a, b in zip(together, alone, strict=True):
            np.testing.assert_allclose(a[at].detach().numpy(), b.detach().numpy(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize(
    ("make", "shape"),
    [
        (lambda: nn.LSTM(3, 4, 2, dropout=0.5), (5, 2, 3)),
        (lambda: nn.GRU(3, 4, 2, dropout=0.5, bidirectional=True), (5, 2, 3)),
        (lambda: nn.TransformerEncoderLayer(4, 2, 8, 0.3, batch_first=True), (2, 3, 4)),
        (lambda: nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 8, 0.2), 2), (3, 2, 4)),
        (lambda: nn.Sequential(nn.Dropout(0.4), nn.Dropout2d(0.3), nn.AlphaDropout(0.2)), (2, 3, 4, 4)),
    ],
    ids=["lstm", "gru", "transformer layer", "transformer", "dropouts"],
)
def test_dropout_draws_the_same_numbers_eagerly_compiled_and_checkpointed(make: Any, shape: Any, backend: str) -> None:
    gg.manual_seed(1)
    layer = make()
    x = gg.randn(*shape, requires_grad=True)

    def step(x: Any) -> Any:
        value = total(flat(layer(x))[0])
        value.backward()
        return value

    def again(x: Any) -> Any:
        value = total(checkpoint(lambda y: flat(layer(y))[0], x, use_reentrant=False))
        value.backward()
        return value

    results = []
    for run in (step, gg.compile(step, backend=backend), again):
        layer.zero_grad()
        x.grad = None
        gg.manual_seed(5)
        value = float(run(x))
        results.append([value, x.grad.numpy().copy(), *(p.grad.numpy().copy() for p in layer.parameters())])
    agree(results[1], results[0])
    agree(results[2], results[0])
    gg.manual_seed(6)
    layer.zero_grad()
    assert float(step(x)) != results[0][0], "another seed drops others"
