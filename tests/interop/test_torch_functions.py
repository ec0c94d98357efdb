"""PyTorch's functions with our tensors: they call our functions of the same names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import glassgrad as gg
from glassgrad import nn

torch = pytest.importorskip("torch", reason="its functions are called")
F, TF = nn.functional, torch.nn.functional

CALLS: dict[str, Callable[[Any], Any]] = {
    "relu": torch.relu, "gelu": TF.gelu, "silu": TF.silu, "softmax": lambda x: TF.softmax(x, dim=-1),
    "expit": torch.special.expit, "sum": lambda x: torch.sum(x, 1), "norm": torch.linalg.norm,
    "cdist": lambda x: torch.cdist(x, x[:2]), "layer": torch.nn.LeakyReLU(0.3), "fft": lambda x: torch.fft.rfft(x).real,
}  # fmt: skip  # a table


@pytest.mark.parametrize("name", CALLS)
def test_a_function_of_theirs_is_ours(name: str) -> None:
    x = np.random.default_rng(0).normal(size=(3, 4))
    results = []
    for library in (gg, torch):
        leaf = library.tensor(x, requires_grad=True)
        y = CALLS[name](leaf)
        (y * y).sum().backward()
        results.append((y, leaf.grad))
    for ours, theirs in zip(*results, strict=True):
        assert isinstance(ours, gg.Tensor)
        np.testing.assert_allclose(ours.detach().numpy(), theirs.detach().numpy(), rtol=1e-10, atol=1e-12)


def test_tensors_of_both_libraries_are_not_mixed() -> None:
    with pytest.raises(TypeError, match="torch_function"):
        torch.add(gg.ones(2), torch.ones(2))
    with pytest.raises(TypeError):
        torch.nn.PReLU()(gg.ones(2))  # its weight is PyTorch's


DISTANCES: dict[str, Any] = {
    "a function": lambda a, b: ((a - b) ** 2).sum(-1),
    "theirs": lambda a, b: 1 - TF.cosine_similarity(a, b),
    "their layer": torch.nn.PairwiseDistance(p=1),
}


@pytest.mark.parametrize("name", DISTANCES)
@pytest.mark.parametrize("swap", [False, True])
def test_a_triplet_loss_takes_any_distance(name: str, swap: bool) -> None:
    rng = np.random.default_rng(1)
    arrays = [rng.normal(size=(5, 3)) for _ in range(3)]
    options = {"distance_function": DISTANCES[name], "swap": swap, "margin": 0.5}
    results = []
    for library in (gg, torch):
        leaves = [library.tensor(x, requires_grad=True) for x in arrays]
        loss = library.nn.functional.triplet_margin_with_distance_loss(*leaves, **options)
        layer = library.nn.TripletMarginWithDistanceLoss(**options)
        assert layer(*leaves).item() == pytest.approx(loss.item(), rel=1e-12)
        loss.backward()
        results.append([loss.detach().numpy(), *(leaf.grad.numpy() for leaf in leaves)])
    for ours, theirs in zip(*results, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("activation", [TF.relu, torch.nn.GELU(), gg.tanh, lambda x: x * gg.sigmoid(x)])
def test_a_layer_takes_any_activation(activation: Any) -> None:
    layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, activation=activation)
    x = gg.randn(2, 3, 8)
    y = layer(x)
    assert isinstance(y, gg.Tensor)
    y.sum().backward()
    assert all(p.grad is not None for p in layer.parameters())
