"""The models: sizes, initial weights, agreement with PyTorch, and dependencies of outputs on inputs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import glassgrad as gg
from glassgrad.models import GPT, CharRNN

SMALL: dict[str, Any] = {"gpt": lambda g: GPT(7, 9, 16, 2, 2, generator=g)} | {
    cell: (lambda g, cell=cell: CharRNN(7, cell, 5, 8, 2, generator=g)) for cell in ("rnn", "lstm", "gru")
}


def tokens(batch: int = 4, length: int = 9) -> Any:
    return np.random.default_rng(5).integers(7, size=(batch, length))


def test_the_gpt_has_the_number_of_parameters_its_layers_add_up_to() -> None:
    width, context, vocabulary = 128, 64, 65
    block = 2 * 2 * width + (width * 3 * width + 3 * width) + (width * width + width) + (8 * width * width + 5 * width)
    expected = 2 * vocabulary * width + context * width + 4 * block + 2 * width
    assert sum(parameter.numel() for parameter in GPT().parameters()) == expected == 818_176


@pytest.mark.parametrize("name", SMALL)
def test_first_weights_depend_on_the_generator_alone_and_predict_nothing(name: str) -> None:
    gg.manual_seed(1)
    first = SMALL[name](gg.Generator().manual_seed(7))
    gg.manual_seed(2)
    second = SMALL[name](gg.Generator().manual_seed(7))
    other = SMALL[name](gg.Generator().manual_seed(8))
    for key, value in first.state_dict().items():
        np.testing.assert_array_equal(value.numpy(), second.state_dict()[key].numpy())
    assert any((value.numpy() != other.state_dict()[key].numpy()).any() for key, value in first.state_dict().items())
    loss = gg.nn.functional.cross_entropy(first(gg.tensor(tokens())).flatten(0, 1), gg.tensor(tokens().ravel()))
    assert float(loss.detach()) == pytest.approx(np.log(7), abs=0.1)


@pytest.mark.parametrize("name", SMALL)
def test_a_prediction_depends_on_the_past_alone(name: str) -> None:
    model = SMALL[name](gg.Generator().manual_seed(7)).eval()
    first = tokens()
    changed = first.copy()
    changed[:, 5] = (changed[:, 5] + 1) % 7
    before, after = (model(gg.tensor(part)).detach().numpy() for part in (first, changed))
    np.testing.assert_array_equal(before[:, :5], after[:, :5])
    assert (abs(before - after)[:, 5:].max(axis=(0, 2)) > 0).all()


@pytest.mark.parametrize("name", SMALL)
def test_dropout_acts_in_training_only(name: str) -> None:
    model = GPT(7, 9, 16, 2, 1, dropout=0.5) if name == "gpt" else CharRNN(7, name, 5, 8, 2, dropout=0.5)
    inputs = gg.tensor(tokens())
    assert (model(inputs).detach().numpy() != model(inputs).detach().numpy()).any()
    model.eval()
    np.testing.assert_array_equal(model(inputs).detach().numpy(), model(inputs).detach().numpy())


def torch_lstm_logits(torch: Any, state: dict[str, Any], inputs: Any) -> Any:
    network = torch.nn.LSTM(5, 8, num_layers=2, batch_first=True, dtype=torch.float64)
    network.load_state_dict({key[8:]: value for key, value in state.items() if key.startswith("network.")})
    hidden, _ = network(state["embedding.weight"][inputs])
    return hidden @ state["output.weight"].T + state["output.bias"]


def torch_gpt_logits(torch: Any, state: dict[str, Any], inputs: Any) -> Any:
    F = torch.nn.functional
    batch, length = inputs.shape

    def norm(name: str, x: Any) -> Any:
        return F.layer_norm(x, x.shape[-1:], state[f"{name}.weight"], state[f"{name}.bias"])

    def linear(name: str, x: Any) -> Any:
        return F.linear(x, state[f"{name}.weight"], state[f"{name}.bias"])

    x = state["tokens.weight"][inputs] + state["positions.weight"][:length]
    forbidden = torch.ones(length, length).triu(1).bool()
    for place in range(2):
        block = f"blocks.{place}"
        q, k, v = linear(f"{block}.qkv", norm(f"{block}.norm1", x)).split(16, dim=-1)
        q, k, v = (part.reshape(batch, length, 2, 8).transpose(1, 2) for part in (q, k, v))
        scores = (q @ k.transpose(-1, -2) / 8**0.5).masked_fill(forbidden, -torch.inf)
        x = x + linear(f"{block}.out", (scores.softmax(-1) @ v).transpose(1, 2).reshape(batch, length, 16))
        x = x + linear(f"{block}.down", F.gelu(linear(f"{block}.up", norm(f"{block}.norm2", x))))
    return norm("norm", x) @ state["head.weight"].T


@pytest.mark.parametrize(("name", "oracle"), [("lstm", torch_lstm_logits), ("gpt", torch_gpt_logits)])
def test_logits_are_those_of_pytorch_from_the_same_weights(name: str, oracle: Any) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is the oracle")
    from tests.ops.against_torch import near_truth

    model = SMALL[name](gg.Generator().manual_seed(7)).eval()
    for parameter in model.parameters():
        parameter.data.mul_(5.0)
    state = {key: torch.tensor(np.array(value.numpy(), np.float64)) for key, value in model.state_dict().items()}
    with torch.no_grad():
        expected = oracle(torch, state, torch.tensor(tokens()))
    # The truth is in float64; seven layers with weights made five times as large.
    near_truth(model(gg.tensor(tokens())).detach().numpy(), expected.numpy(), multiple=200)
