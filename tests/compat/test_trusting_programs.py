"""Operations that PyTorch allows and glassgrad refuses elsewhere: writes through `.data`, pickled models."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import glassgrad as gg
from glassgrad import compat


def noisy(torch: Any) -> Any:
    """Two samples from one buffer of noise, overwritten between them; the slope of their sum."""
    spread = torch.tensor([0.5, -1.0, 2.0], requires_grad=True)
    noise = torch.tensor([1.0, 2.0, 3.0])
    total = (spread.exp() * noise).sum()
    noise.data.copy_(torch.tensor([-1.0, 0.5, 4.0]))
    total = total + (spread.exp() * noise).sum()
    total.backward()
    return spread.grad


def test_a_write_through_data_is_not_seen() -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is the other library")
    with compat.as_torch():
        found = noisy(gg)
    np.testing.assert_allclose(found.numpy(), noisy(torch).numpy(), rtol=1e-6)
    with pytest.raises(gg.errors.AutogradError, match="overwritten"):
        noisy(gg)


def test_data_is_the_same_memory() -> None:
    with compat.as_torch():
        for x in (gg.zeros(2, 3), gg.zeros(2, 3).T, gg.zeros(2, 3)[:, 1:], gg.zeros(2, dtype=gg.int64), gg.zeros(0, 2)):
            x.data.add_(1)
            assert (x.numpy() == 1).all()
            x.data = x * 2
            assert (x.numpy() == 2).all()
        x = gg.tensor([1.0], requires_grad=True)
        assert not x.data.requires_grad
        z = x.detach()
        y = x.exp() * z
        z.add_(1)  # not by `.data`
        with pytest.raises(gg.errors.AutogradError):
            y.backward()


class Model(gg.nn.Module):
    """A class of the program's own."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = gg.nn.Linear(2, 3)
        self.name = "mine"


def test_whole_models_are_saved_and_read_by_those_who_trust_them(tmp_path: Path) -> None:
    model, path = Model(), tmp_path / "model.pt"
    with pytest.raises(gg.errors.KindError):
        gg.save(model, path)
    with compat.as_torch() as torch:
        torch.save(model, path)
        with pytest.raises(gg.errors.ArgumentError, match="weights_only=False"):
            torch.load(path)
        again = torch.load(path, weights_only=False)
        buffer = io.BytesIO()
        torch.save({"model": model, "step": 3}, buffer)
        buffer.seek(0)
        assert torch.load(buffer, weights_only=False)["step"] == 3
        torch.save(model.state_dict(), path)
        assert sorted(torch.load(path)) == ["layer.bias", "layer.weight"]
    assert isinstance(again, Model)
    assert again.name == "mine"
    np.testing.assert_array_equal(again.layer.weight.detach(), model.layer.weight.detach())
    assert sorted(gg.load(path)) == ["layer.bias", "layer.weight"]  # plain data is written as elsewhere


def test_no_tensor_is_on_a_gpu() -> None:
    with compat.as_torch() as torch:
        assert not isinstance(torch.ones(2), torch.cuda.FloatTensor | torch.cuda.LongTensor)
        with pytest.raises(gg.errors.ArgumentError, match="cuda"):
            torch.cuda.FloatTensor(2)
