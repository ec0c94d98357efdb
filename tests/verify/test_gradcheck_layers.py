"""gradcheck of hand-written layers and losses: arrays in, arrays out, and a derived backward pass."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from glassgrad import errors, manual
from glassgrad.verify import gradcheck

X = np.random.default_rng(0).normal(size=(3, 4))


class Affine:
    """A layer by hand that inherits from nothing."""

    def __init__(self, mistake: str = "") -> None:
        rng = np.random.default_rng(1)
        self.weight = SimpleNamespace(data=rng.normal(size=(4, 3)).astype(np.float32), grad=None)
        self.bias = SimpleNamespace(data=np.zeros(3, np.float32), grad=None)
        self.mistake = mistake

    def parameters(self) -> list[Any]:
        return [self.weight, self.bias]

    def __call__(self, x: Any) -> Any:
        return self.forward(x)

    def forward(self, x: Any) -> Any:
        self.x = x
        return x @ self.weight.data + self.bias.data

    def backward(self, dout: Any) -> Any:
        dw, db = self.x.T @ dout, dout.sum(axis=0)
        self.weight.grad = dw.T if self.mistake == "transposed" else dw
        self.bias.grad = {"mean": dout.mean(axis=0), "unsummed": dout}.get(self.mistake, db)
        return None if self.mistake == "none" else dout @ self.weight.data.T


def test_layers_by_hand() -> None:
    layer = Affine()
    verdict = gradcheck(layer, X.astype(np.float32))
    assert verdict.kind == "right", str(verdict)
    assert [row.name for row in verdict.rows] == ["x", "weight", "bias"]
    assert layer.weight.grad is None
    assert layer.weight.data.dtype == np.float32


@pytest.mark.parametrize(
    ("mistake", "name", "said"),
    [
        ("transposed", "weight", "shape (3, 4) for weight of shape (4, 3)"),
        ("unsummed", "bias", "shape (3, 3) for bias of shape (3,)"),
        ("mean", "bias", "the rule gives 0.333333 times the numeric value"),
    ],
)
def test_mistakes_of_layers_by_hand(mistake: str, name: str, said: str) -> None:
    verdict = gradcheck(Affine(mistake), X)
    assert verdict.kind == "wrong"
    assert said in str(verdict)
    if verdict.worst is not None:
        assert verdict.worst.name == name
        # |a - n| / (|a| + |n|) of a third is one half.
        assert verdict.worst.relative == pytest.approx(0.5, rel=1e-5)


def test_what_a_layer_gives_no_gradient_of_is_said() -> None:
    verdict = gradcheck(Affine("none"), X)
    assert verdict.kind == "right"
    assert "no gradient of x" in str(verdict)


def test_losses_by_hand_and_layers_that_draw() -> None:
    assert gradcheck(manual.CrossEntropyLoss(), X, np.array([0, 1, 3])).kind == "right"
    assert gradcheck(manual.MSELoss(), X, X * 2).kind == "right"
    assert gradcheck(manual.Dropout(0.5), X).kind == "nondeterministic"
    assert gradcheck(manual.ReLU(), np.array([[0.0, 1.0]])).kind == "kink here"

    class Halved:
        def forward(self, prediction: Any, target: Any) -> float:
            self.difference = prediction - target
            return float(0.5 * (self.difference**2).sum())

        def backward(self) -> Any:
            return self.difference

    assert gradcheck(Halved(), X, X * 2).kind == "right"


def test_a_parameter_has_data_and_grad() -> None:
    layer = Affine()
    layer.weight = layer.weight.data
    with pytest.raises(errors.KindError, match=r"'weight' is of type ndarray.*\n.*manual\.Parameter"):
        gradcheck(layer, X)
