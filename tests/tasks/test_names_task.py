"""The names task on the engine: model, training step, calibration, losses and sampling, each against an oracle."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import glassgrad as gg
from glassgrad import nn
from glassgrad.data import Examples, WordList
from glassgrad.models import Bigram, NamesMLP, generate
from glassgrad.tasks.learners import EngineLearner
from glassgrad.tasks.names import NamesTask, configure
from glassgrad.train.calibrate import calibrate_batch_norm
from glassgrad.train.config import command_line
from glassgrad.train.learners.learner import measure

pytestmark = pytest.mark.usefixtures("numpy_target")  # test_engines.py trains in native code

NAMES = "anna bert carla dora emil fritz gerd hanna ida jonas karl lena mona nora otto paula quirin rosa"
WORDS = WordList(tuple(NAMES.split()), "test")


def task(**options: Any) -> NamesTask:
    return NamesTask(configure([command_line(options)]), WORDS)


def test_the_model_has_the_published_number_of_parameters() -> None:
    assert sum(parameter.numel() for parameter in NamesMLP().parameters()) == 12_297


def test_initial_weights_have_the_published_scale_and_depend_on_the_seed_alone() -> None:
    gg.manual_seed(1)
    first = NamesMLP(generator=gg.Generator().manual_seed(7))
    gg.manual_seed(2)
    second = NamesMLP(generator=gg.Generator().manual_seed(7))
    for name, value in first.state_dict().items():
        np.testing.assert_array_equal(value.numpy(), second.state_dict()[name].numpy())
    assert first.embedding.weight.detach().numpy().std() == pytest.approx(1, rel=0.2)
    assert first.hidden.weight.detach().numpy().std() == pytest.approx(5 / 3 / 30**0.5, rel=0.05)
    assert first.output.weight.detach().numpy().std() == pytest.approx(0.1, rel=0.05)
    assert not first.hidden.bias.detach().numpy().any()
    assert not first.output.bias.detach().numpy().any()


def test_fifty_training_steps_are_those_of_pytorch() -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is the oracle")

    class Twin(torch.nn.Module):
        def __init__(self, tokens: int) -> None:
            super().__init__()
            self.embedding = torch.nn.Embedding(tokens, 10)
            self.hidden = torch.nn.Linear(30, 200)
            self.norm = torch.nn.BatchNorm1d(200, momentum=0.01)
            self.output = torch.nn.Linear(200, tokens)

        def forward(self, tokens: Any) -> Any:
            return self.output(self.norm(self.hidden(self.embedding(tokens).flatten(1))).tanh())

    ours = task(steps=60, momentum=0.5, weight_decay=0.01, drop_at=0.5)
    twin = Twin(ours.data.tokenizer.size)
    state = {name: torch.tensor(np.array(value.numpy())) for name, value in ours.learner.model.state_dict().items()}
    twin.load_state_dict(state)
    optimizer = torch.optim.SGD(twin.parameters(), lr=0.1, momentum=0.5, weight_decay=0.01)
    for step in range(50):
        inputs, targets = ours.batch_at(step)
        ours.learner.set_rate(ours.rate_at(step))
        optimizer.param_groups[0]["lr"] = 0.1 if step < 30 else 0.01
        loss = torch.nn.functional.cross_entropy(twin(torch.tensor(inputs)), torch.tensor(targets))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        assert float(ours.learner.step(inputs, targets)) == pytest.approx(float(loss.detach()), abs=1e-4)
    for name, value in ours.learner.model.state_dict().items():
        np.testing.assert_allclose(value.numpy(), twin.state_dict()[name].numpy(), atol=1e-4, err_msg=name)


@pytest.mark.parametrize(("model", "rates"), [("mlp", (0.1, 0.01)), ("bigram", (10.0, 1.0))])
def test_the_rate_drops_for_the_second_half(model: str, rates: tuple[float, float]) -> None:
    entry = task(model=model, steps=1_000)
    assert [entry.rate_at(step) for step in (0, 499, 500, 999)] == [rates[0], rates[0], rates[1], rates[1]]
    entry.learner.set_rate(0.25)
    assert entry.learner.optimizer.param_groups[0]["lr"] == 0.25


def test_validation_leaves_the_model_as_it_was() -> None:
    entry = task(hidden=8)
    entry.learner.step(*entry.batch_at(0))
    before = {name: value.numpy().copy() for name, value in entry.learner.model.state_dict().items()}
    assert entry.evaluate() == entry.evaluate()
    assert entry.learner.model.training
    for name, value in entry.learner.model.state_dict().items():
        np.testing.assert_array_equal(value.numpy(), before[name])


@pytest.mark.parametrize("chunk", [7, 64, 10_000])
def test_calibrated_statistics_are_those_of_the_whole_set(chunk: int) -> None:
    entry = task(hidden=16)
    for step in range(20):
        entry.learner.step(*entry.batch_at(step))
    inputs = entry.data.train.inputs
    calibrate_batch_norm(entry.learner.model, inputs, chunk)
    weights = {name: value.numpy().astype(np.float64) for name, value in entry.learner.model.state_dict().items()}
    hidden = weights["embedding.weight"][inputs].reshape(len(inputs), -1) @ weights["hidden.weight"].T
    hidden += weights["hidden.bias"]
    np.testing.assert_allclose(weights["norm.running_mean"], hidden.mean(0), atol=1e-5)
    np.testing.assert_allclose(weights["norm.running_var"], hidden.var(0, ddof=1), rtol=1e-5)
    assert entry.learner.model.norm.momentum == 0.01


def test_calibration_does_nothing_to_a_model_without_batch_norm() -> None:
    model = Bigram(5)
    calibrate_batch_norm(model, np.zeros((4, 1), dtype=np.int64))
    assert not model.logits.weight.detach().numpy().any()


@pytest.mark.parametrize("chunk", [3, 1_000])
def test_mean_loss_is_that_of_the_formula(chunk: int) -> None:
    generator = np.random.default_rng(0)
    table = generator.standard_normal((6, 6)).astype(np.float32)
    model = Bigram(6)
    model.load_state_dict({"logits.weight": gg.tensor(table)})
    examples = Examples(generator.integers(6, size=(50, 2)), generator.integers(6, size=50))
    logits = table[examples.inputs[:, -1]].astype(np.float64)
    losses = np.log(np.exp(logits).sum(1)) - logits[np.arange(50), examples.targets]
    learner = EngineLearner(model, gg.optim.SGD(model.parameters(), lr=0.1))
    found = measure(learner.logits, examples, chunk)
    assert found.loss == pytest.approx(losses.mean(), rel=1e-6)
    assert found.accuracy == (logits.argmax(1) == examples.targets).mean()


class Table(nn.Module):
    """A model whose next-token probabilities are known."""

    def __init__(self, probabilities: Any) -> None:
        super().__init__()
        self.logits = np.log(np.asarray(probabilities, dtype=np.float32))

    def forward(self, tokens: Any) -> Any:
        return gg.tensor(self.logits[tokens.numpy()[:, -1]])


def test_samples_follow_the_probabilities() -> None:
    probabilities = np.array([[0.1, 0.6, 0.3], [0.5, 0.25, 0.25], [0.2, 0.1, 0.7]])
    pairs = np.zeros((3, 3))
    for tokens in generate(Table(probabilities), context=2, count=6_000, seed=3, longest=1_000):
        chain = [0, *tokens, 0]
        np.add.at(pairs, (chain[:-1], chain[1:]), 1)
    expected = pairs.sum(1, keepdims=True) * probabilities
    # Chi-squared with 6 degrees of freedom: beyond 30 with probability 4e-5.
    assert ((pairs - expected) ** 2 / expected).sum() < 30


def test_a_longer_request_begins_with_the_shorter_one() -> None:
    model = Table([[0.1, 0.6, 0.3], [0.5, 0.25, 0.25], [0.2, 0.1, 0.7]])
    few = list(generate(model, 1, 5, seed=1, longest=50))
    many = list(generate(model, 1, 5_000, seed=1, longest=50))
    assert many[:5] == few
    assert len(many) == 5_000
    assert list(generate(model, 1, 5, seed=2, longest=50)) != few


def test_a_model_that_never_ends_is_ended() -> None:
    with np.errstate(divide="ignore"):
        model = Table([[0.0, 1.0], [0.0, 1.0]])
    assert list(generate(model, 3, 2, seed=0, longest=7)) == [[1] * 7] * 2


@pytest.mark.slow
def test_the_published_loss_is_reached(data_dir: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "glassgrad", "train", "names", "--data", str(data_dir / "names.txt")]
    subprocess.run([*command, "--run-dir", str(tmp_path / "run")], check=True, capture_output=True)
    final = json.loads((tmp_path / "run" / "metrics.jsonl").read_text().splitlines()[-1])
    assert final["validation_loss"] <= 2.12
    assert final["train_loss"] <= 2.08
