"""The origin of a NaN: each stage of a step; the search changes nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import glassgrad as gg
from glassgrad import doctor, nn
from glassgrad.nn import functional as F


def parts() -> tuple[Any, Any]:
    gg.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.5), nn.Linear(8, 3))
    return model, (gg.randn(6, 4), gg.tensor([0, 1, 2, 0, 1, 2]))


def entropy(logits: Any, targets: Any) -> Any:
    p = (logits * 1e6).softmax(1)
    return (p * p.log()).sum()


def hidden_root(logits: Any, targets: Any) -> Any:
    square = (logits * 0) ** 2
    return gg.where(square > 0, square.sqrt(), 0.0).sum() + F.cross_entropy(logits, targets)


STAGES: dict[str, tuple[Callable[[Any, Any], Any], str, str]] = {
    "forward": (entropy, "NaN in the forward pass of the loss", "multiply"),
    "backward": (hidden_root, "NaN in the backward pass", "branch that where did not take"),
}


@pytest.mark.parametrize("stage", STAGES)
def test_ops_are_named_with_their_lines(stage: str) -> None:
    loss_fn, rule, words = STAGES[stage]
    model, batch = parts()
    found = doctor.nan_origin(model, batch, loss_fn)
    assert found is not None
    assert (found.rule, found.severity) == (rule, "error")
    assert words in found.what + found.advice
    assert Path(__file__).name in found.what


def test_data_parameters_and_the_optimizers_step() -> None:
    model, (x, y) = parts()
    bad = x.clone()
    bad[2, 1] = float("nan")
    found = doctor.nan_origin(model, (bad, y), F.cross_entropy)
    assert found is not None
    assert "1 of 24 places, first at [2, 1]" in found.what

    optimizer = gg.optim.SGD(model.parameters(), lr=float("inf"))
    found = doctor.nan_origin(model, (x, y), F.cross_entropy, optimizer)
    assert found is not None
    assert found.rule == "NaN in the step of SGD"

    with gg.no_grad():
        model[4].bias[1] = float("nan")
    found = doctor.nan_origin(model, (x, y), F.cross_entropy)
    assert found is not None
    assert (found.rule, "4.bias" in found.what) == ("NaN in a parameter", True)


def test_a_healthy_step_changes_nothing() -> None:
    model, batch = parts()
    optimizer = gg.optim.Adam(model.parameters())
    F.cross_entropy(model(batch[0]), batch[1]).backward()
    optimizer.step()

    def everything() -> list[bytes]:
        state = [entry for held in optimizer.state.values() for entry in held.values()]
        tensors = [*model.state_dict().values(), *(p.grad for p in model.parameters()), *state]
        return [np.asarray(t.detach()).tobytes() if isinstance(t, gg.Tensor) else repr(t).encode() for t in tensors]

    before, random = everything(), gg.get_rng_state()
    assert doctor.nan_origin(model, batch, F.cross_entropy, optimizer) is None
    assert everything() == before
    assert gg.get_rng_state() == random
    assert not gg.is_anomaly_enabled()


def test_models_of_pytorch_are_looked_at_op_by_op() -> None:
    torch = pytest.importorskip("torch", reason="the model is PyTorch's")

    class Root(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            square = (x - x) ** 2
            return x + torch.where(square > 0, square.sqrt(), torch.zeros(()))

    class Mask(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return x + torch.tensor([1.0, 0.0, 1.0]).log()

    def origin(last: Any, loss_fn: Any, **options: Any) -> Any:
        torch.manual_seed(0)
        model = torch.nn.Sequential(torch.nn.Linear(4, 3), last)
        optimizer = torch.optim.Adam(model.parameters(), eps=options.pop("eps", 1e-8))
        before = [p.detach().clone() for p in model.parameters()]
        batch = torch.randn(6, 4), torch.tensor([0, 2, 2, 0, 0, 2])
        found = doctor.nan_origin(model, batch, loss_fn, optimizer, **options)
        assert all(map(torch.equal, before, model.parameters()))
        assert not optimizer.state
        return found

    entropy_ = torch.nn.functional.cross_entropy
    same = torch.nn.Identity()
    assert origin(same, entropy_) is None
    found = origin(same, lambda o, _: (o - 100).sqrt().sum())
    assert (found.rule, found.remedy.split(":")[0]) == ("NaN in the forward pass of the loss", "sqrt(x.clamp(min=eps))")
    found = origin(Root(), entropy_)
    assert found.rule == "NaN in the backward pass"
    assert "the backward pass of sqrt" in found.what
    assert "in 1 (Root) made 18 of 18 elements NaN, the first at [0, 0], of 0, 0" in found.what
    assert Path(__file__).name in found.where
    assert origin(same, lambda o, y: entropy_(o * 0, y), eps=0.0).rule == "NaN in the step of Adam"
    assert "log at" in origin(Mask(), entropy_, inf=True).what
    assert origin(Mask(), entropy_, inf=True, allow=["1"]) is None
    assert origin(Mask(), entropy_) is None
