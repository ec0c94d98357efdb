"""Invalid input: the message names it, and nothing has changed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import glassgrad as gg
from glassgrad import nn, optim
from glassgrad.nn import functional as F


class Net(nn.Module):
    """A convolution, then a linear layer with the wrong number of features."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(1, 4, 3)
        self.heads = nn.ModuleList([nn.Linear(100, 10)])

    def forward(self, x: Any) -> Any:
        return self.heads[0](F.relu(self.conv(x)).flatten(1))


def mlp(*rest: Any) -> nn.Sequential:
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), *rest)


MODELS: list[tuple[Callable[[], Any], tuple[int, ...], str, str]] = [
    (lambda: mlp(nn.Linear(16, 2)), (3, 4), "2, Linear(in_features=16", "0, Linear(in_features=4"),
    (Net, (2, 1, 8, 8), "heads.0, Linear(in_features=100", "conv, Conv2d(1, 4"),
    (lambda: nn.Sequential(nn.Conv2d(1, 4, 3), nn.Conv2d(8, 4, 3)), (1, 1, 8, 8), "1, Conv2d(8", "0, Conv2d(1"),
    (lambda: mlp(nn.BatchNorm1d(4)), (3, 4), "2, BatchNorm1d(4", "0, Linear"),
    (lambda: mlp(nn.LayerNorm(4)), (3, 4), "2, LayerNorm((4,)", "0, Linear"),
    (lambda: mlp(nn.LSTM(4, 3)), (5, 2, 4), "2, LSTM(4, 3)", "0, Linear"),
    (lambda: mlp(nn.TransformerEncoderLayer(4, 2, 8)), (3, 2, 4), "2.self_attn, a MultiheadAttention", "0, Linear"),
    (lambda: nn.Sequential(mlp(), mlp(nn.Linear(8, 1))), (3, 4), "1.0, Linear(in_features=4", "0.0, Linear"),
]


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
@pytest.mark.parametrize(("make", "shape", "layer", "before"), MODELS, ids=lambda part: str(part)[:24])
def test_both_layers_are_named(make: Any, shape: tuple[int, ...], layer: str, before: str, compiled: bool) -> None:
    model = make()
    run = gg.compile(model) if compiled else model
    with pytest.raises(gg.errors.ShapeError) as caught:
        run(gg.randn(*shape))
    text = str(caught.value)
    assert f"The layer is {layer}" in text
    assert f"which it got from {before}" in text
    assert "test_bad_input.py:" in text
    assert text.count("The layer is") == 1


def test_without_a_tape_the_layers_of_a_sequential_are_still_named() -> None:
    model = nn.Sequential(nn.Sequential(nn.Flatten(), nn.Linear(4, 8)), nn.Linear(16, 2))
    found = r"1, Linear\(in_features=16.*which it got from 0, a Sequential"
    with gg.no_grad(), pytest.raises(RuntimeError, match=found):
        model(gg.ones(3, 2, 2))


def test_a_layer_alone_and_an_op_of_the_users_are_left_as_they_are() -> None:
    with pytest.raises(gg.errors.ShapeError, match="takes 4") as caught:
        nn.Linear(4, 2)(gg.ones(3, 5))
    assert "The layer is" not in str(caught.value)

    class Own(nn.Module):
        def forward(self, x: Any) -> Any:
            return x + gg.ones(7)

    with pytest.raises(gg.errors.ShapeError) as caught:
        nn.Sequential(nn.Linear(4, 2), Own())(gg.ones(3, 4))
    assert "The layer is" not in str(caught.value)


def test_the_arguments_of_a_layer_are_not_taken_for_those_of_its_op() -> None:
    q = gg.ones(3, 2, 6)
    with pytest.raises(gg.errors.ShapeError, match=r"weight has shape \(24, 8\)"):
        nn.MultiheadAttention(8, 2)(q, q, q)


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
@pytest.mark.parametrize("loss", [F.cross_entropy, F.nll_loss])
@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (np.array([0, 4, 1]), "label 4 is out of range for 4 classes"),
        (np.array([0, -1, 1]), "label -1 is out of range"),
        (np.array([0.0, 3.0, 1.0], np.float32), "class indices as integers, given dtype float32"),
        (np.array([True, False, True]), "class indices as integers, given dtype bool"),
        (np.array([0, 3]), r"the input has shape \(3, 4\), the target \(2,\)"),
        (np.array([[0], [3], [1]]), r"a target of shape \(3,\)"),
    ],
)
def test_labels(loss: Any, labels: Any, message: str, compiled: bool) -> None:
    function = gg.compile(loss) if compiled else loss
    with pytest.raises((ValueError, TypeError, IndexError), match=message):
        function(gg.zeros(3, 4), gg.tensor(labels))


@pytest.mark.parametrize(
    ("use", "message"),
    [
        (lambda: nn.Embedding(10, 3)(gg.ones(2)), "indices as integers, given dtype float32"),
        (lambda: nn.Embedding(10, 3)(gg.tensor([1, 12])), r"index 12 at position \(1,\)"),
        (lambda: F.binary_cross_entropy(gg.tensor([0.5, 2.0]), gg.ones(2)), "probabilities between 0 and 1, given 2.0"),
        (lambda: F.binary_cross_entropy_with_logits(gg.ones(3, 1), gg.ones(3)), r"target of shape \(3, 1\)"),
    ],
)
def test_values_and_kinds(use: Any, message: str) -> None:
    with pytest.raises((ValueError, TypeError, IndexError), match=message):
        use()


# --- states of other models -----------------------------------------------------------------------


def test_a_state_of_another_architecture_is_listed_and_changes_nothing() -> None:
    model = nn.Sequential(nn.Linear(4, 8), nn.Linear(8, 2))
    other = nn.Sequential(nn.Linear(4, 9), nn.ReLU(), nn.Linear(9, 2))
    before = {name: value.numpy().copy() for name, value in model.state_dict().items()}
    for strict in (True, False):
        with pytest.raises(RuntimeError) as caught:
            model.load_state_dict(other.state_dict(), strict=strict)
        text = str(caught.value)
        assert "missing: 1.weight, 1.bias" in text
        assert "unexpected: 2.weight, 2.bias" in text
        assert "0.weight: (9, 4), expected (8, 4); 0.bias: (9,), expected (8,)" in text
        assert "strict=False" not in text, "it would not help"
    for name, value in model.state_dict().items():
        np.testing.assert_array_equal(value.numpy(), before[name])


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (lambda state: {"epoch": 3, "model": state}, "pass the entry under 'model'"),
        (lambda state: {f"module.{name}": value for name, value in state.items()}, r"removeprefix\('module\.'\)"),
        (lambda state: {name: value for name, value in state.items() if name != "1.bias"}, "strict=False to load what"),
        (lambda _state: None, "expects a dictionary of tensors by name, given a NoneType"),
        (lambda _state: nn.Linear(1, 1), r"pass its state_dict\(\)"),
    ],
)
def test_what_to_do_about_a_state_that_does_not_fit(changed: Any, message: str) -> None:
    model = nn.Sequential(nn.Linear(4, 8), nn.Linear(8, 2))
    with pytest.raises((RuntimeError, TypeError), match=message):
        model.load_state_dict(changed(model.state_dict()))


def test_states_of_other_optimizers() -> None:
    model = mlp()
    adam = optim.Adam(model.parameters())
    with pytest.raises(ValueError, match="lack betas, eps"):
        adam.load_state_dict(optim.SGD(model.parameters(), lr=0.1, momentum=0.9).state_dict())
    with pytest.raises(ValueError, match=r"\[1\] parameters, expected \[2\]"):
        adam.load_state_dict(optim.Adam([model[0].weight]).state_dict())
    assert adam.param_groups[0]["betas"] == (0.9, 0.999)
    older = adam.state_dict()
    del older["param_groups"][0]["maximize"]  # a switch that came later
    adam.load_state_dict(older)


def test_a_list_in_the_place_of_a_tensor_is_named() -> None:
    with pytest.raises(gg.errors.KindError, match=r"linear at .*takes tensors and arrays.*\n.*gg\.tensor"):
        nn.Linear(2, 1)([[1.0, 2.0]])
    with pytest.raises(AttributeError, match=r"no 'Dense'\.\nNext: Linear"):
        nn.Dense  # noqa: B018 - the look-up raises
