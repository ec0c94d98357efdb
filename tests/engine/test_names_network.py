"""The names network in its chunked form: 26 intermediates, the gradient of each compared with PyTorch's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import glassgrad as gg
from benchmarks import chunked
from benchmarks.chunked import BATCH, CLASSES, CONTEXT, HIDDEN, WIDTH

torch = pytest.importorskip("torch", reason="the oracle is PyTorch")


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float32, 1e-6), (np.float64, 1e-12)], ids=["float32", "float64"])
def test_every_intermediate_gradient_agrees_with_pytorch(dtype: Any, tolerance: float) -> None:
    ours, theirs = chunked.gradients(gg, dtype), chunked.gradients(torch, dtype)
    assert len(ours) == chunked.COUNT + len(chunked.parameters(dtype))
    for name, gradient in ours.items():
        assert gradient.dtype == dtype
        np.testing.assert_allclose(gradient, theirs[name], atol=tolerance, rtol=10 * tolerance, err_msg=name)


def test_layers_agree_with_pytorch_over_fifty_steps() -> None:
    def build(lib: Any) -> Any:
        nn = lib.nn
        return nn.Sequential(
            nn.Embedding(CLASSES, WIDTH),
            nn.Flatten(),
            nn.Linear(CONTEXT * WIDTH, HIDDEN),
            nn.BatchNorm1d(HIDDEN),
            nn.Tanh(),
            nn.Linear(HIDDEN, CLASSES),
        )

    theirs = build(torch).double()
    ours = build(gg).double()
    assert list(ours.state_dict()) == list(theirs.state_dict())
    ours.load_state_dict(theirs.state_dict())
    optimizers = gg.optim.SGD(ours.parameters(), lr=0.1), torch.optim.SGD(theirs.parameters(), lr=0.1)
    rng = np.random.default_rng(1)
    for _ in range(50):
        x, y = rng.integers(0, CLASSES, (BATCH, CONTEXT)), rng.integers(0, CLASSES, BATCH)
        losses = []
        for lib, model, optimizer in ((gg, ours, optimizers[0]), (torch, theirs, optimizers[1])):
            loss = lib.nn.functional.cross_entropy(model(lib.tensor(x)), lib.tensor(y))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        assert losses[0] == pytest.approx(losses[1], rel=1e-10)
    for name, value in theirs.state_dict().items():
        np.testing.assert_allclose(ours.state_dict()[name].numpy(), value.numpy(), rtol=1e-9, atol=1e-11, err_msg=name)
