"""Small networks that learn, step for step like micrograd's, and faster."""

from __future__ import annotations

import importlib
import random
import time

import numpy as np
import pytest

from glassgrad import scalar
from glassgrad.scalar import MLP, Value


def two_moons(count, seed=0):
    """Two interleaving half circles with a little noise; labels are -1 and 1."""
    rng = np.random.default_rng(seed)
    angle = rng.uniform(0, np.pi, count)
    label = np.where(np.arange(count) % 2 == 0, 1, -1)
    x = np.where(label > 0, np.cos(angle), 1 - np.cos(angle))
    y = np.where(label > 0, np.sin(angle), 0.5 - np.sin(angle))
    return np.stack([x, y], axis=1) + rng.normal(0, 0.1, (count, 2)), label


def micrograd_demo(value_type, mlp_type, inputs, labels, steps):
    """What micrograd's demonstration does: hinge loss, L2 term, decaying learning rate. Returns losses, accuracy."""
    random.seed(1337)
    model = mlp_type(inputs.shape[1], [16, 16, 1])
    history = []
    for k in range(steps):
        rows = [list(map(value_type, row)) for row in inputs]
        scores = list(map(model, rows))
        losses = [(1 + -label * score).relu() for label, score in zip(labels, scores, strict=True)]
        data_loss = sum(losses) * (1.0 / len(losses))
        regularisation = 1e-4 * sum(p * p for p in model.parameters())
        total = data_loss + regularisation
        accuracy = sum((label > 0) == (score.data > 0) for label, score in zip(labels, scores, strict=True)) / len(
            labels
        )
        model.zero_grad()
        total.backward()
        for p in model.parameters():
            p.data -= (1.0 - 0.9 * k / 100) * p.grad
        history.append((float(total.data), accuracy))
    return history


def micrograd():
    engine = pytest.importorskip("micrograd.engine", reason="micrograd is the oracle of this test")
    return engine.Value, importlib.import_module("micrograd.nn").MLP


@pytest.mark.slow
def test_micrograds_demo_gives_micrograds_numbers():
    """Same seed, same weights, same losses: only the import differs."""
    inputs, labels = two_moons(30)
    mine = micrograd_demo(Value, MLP, inputs, labels, 5)
    theirs = micrograd_demo(*micrograd(), inputs, labels, 5)
    assert np.allclose(mine, theirs, rtol=1e-9)


@pytest.mark.slow
def test_a_step_takes_less_than_six_tenths_of_micrograds_time():
    inputs, labels = two_moons(40)

    def seconds(value_type, mlp_type):
        times = []
        for _ in range(3):
            start = time.perf_counter()
            micrograd_demo(value_type, mlp_type, inputs, labels, 1)
            times.append(time.perf_counter() - start)
        return min(times)

    assert seconds(Value, MLP) < 0.6 * seconds(*micrograd())


@pytest.mark.slow
def test_moons_are_learnt():
    inputs, labels = two_moons(60)
    history = micrograd_demo(Value, MLP, inputs, labels, 60)
    assert history[-1][1] == 1.0
    assert history[-1][0] < 0.1 * history[0][0]


XOR = [((0.0, 0.0), 0.0), ((0.0, 1.0), 1.0), ((1.0, 0.0), 1.0), ((1.0, 1.0), 0.0)]


@pytest.mark.parametrize("seed", range(5))
def test_xor_is_learnt(seed):
    random.seed(seed)
    model = MLP(2, [4, 1], act="tanh")
    for _ in range(1000):
        loss = sum((model(x) - target) ** 2 for x, target in XOR) / 4
        model.zero_grad()
        loss.backward()
        for p in model.parameters():
            p.data -= 0.3 * p.grad
    assert all(abs(model(x).data - target) < 0.1 for x, target in XOR)


def test_shapes_and_names_of_networks():
    model = MLP(3, [4, 2])
    assert len(model.parameters()) == 3 * 4 + 4 + 4 * 2 + 2
    assert str(scalar.MLP(2, [1, 1])) == "MLP of [Layer of [ReLUNeuron(2)], Layer of [LinearNeuron(1)]]"
    assert str(scalar.Neuron(3, act="tanh")) == "TanhNeuron(3)"
    out = model([1, 2.0, Value(3.0)])
    assert isinstance(out, list)
    assert len(out) == 2
    assert isinstance(MLP(3, [4, 1])([1, 2, 3]), Value)
    (out @ out).backward()
    assert any(p.grad for p in model.parameters())
    model.zero_grad()
    assert not any(p.grad for p in model.parameters())
