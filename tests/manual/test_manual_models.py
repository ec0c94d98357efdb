"""The hand-written networks of the training commands: the engine's numbers, and a whole step at a fair speed."""

from __future__ import annotations

import gzip
import time

import numpy as np
import pytest

import glassgrad as gg
from glassgrad import manual, models, nn
from glassgrad.manual import models as by_hand


def test_names_mlp_trains_like_the_engines():
    gg.manual_seed(3)
    theirs = models.NamesMLP(hidden=30)
    mine = by_hand.NamesMLP(hidden=30)
    mine.load_state_dict({name: value.numpy() for name, value in theirs.state_dict().items()})
    rng = np.random.default_rng(0)
    optimizers = manual.SGD(mine.parameters(), lr=0.2), gg.optim.SGD(theirs.parameters(), lr=0.2)
    for _ in range(8):
        tokens, targets = rng.integers(0, 27, (32, 3)), rng.integers(0, 27, 32)
        loss = by_hand.classifier_step(mine, optimizers[0], tokens, targets)
        optimizers[1].zero_grad()
        other = nn.functional.cross_entropy(theirs(gg.tensor(tokens)), gg.tensor(targets))
        other.backward()
        optimizers[1].step()
        assert loss == pytest.approx(other.item(), rel=2e-5)
    for name, value in theirs.state_dict().items():
        np.testing.assert_allclose(mine.state_dict()[name], value.numpy(), rtol=1e-3, atol=1e-5)


def test_initial_weights_are_drawn_like_the_engines():
    mine, theirs = by_hand.NamesMLP(rng=np.random.default_rng(0)), models.NamesMLP()
    assert {n: v.shape for n, v in mine.state_dict().items()} == {n: v.shape for n, v in theirs.state_dict().items()}
    for name, value in theirs.state_dict().items():
        assert mine.state_dict()[name].std() == pytest.approx(value.numpy().std(), rel=0.15, abs=1e-6)


def test_digits_by_a_multilayer_network(data_dir):
    """2,000 real digits for training, 500 others to test: three linear layers, RMSprop with momentum."""
    folder = data_dir / "mnist-t10k"
    images, labels = load_digits(folder)
    net = by_hand.mlp((784, 64, 64, 10), np.random.default_rng(0))
    optimizer = manual.RMSprop(net.parameters(), lr=1e-3, momentum=0.9)
    rng = np.random.default_rng(1)
    for _ in range(120):
        rows = rng.integers(0, 2000, 100)
        by_hand.classifier_step(net, optimizer, images[rows], labels[rows])
    predicted = net.eval()(images[2000:2500]).argmax(axis=1)
    assert (predicted == labels[2000:2500]).mean() > 0.85


def load_digits(folder):
    def read(pattern, header):
        path = next(iter(sorted(folder.glob(pattern))), None)
        if path is None:
            pytest.skip(f"no {pattern} in the sample data")
        opener = gzip.open if path.suffix == ".gz" else open
        with opener(path, "rb") as file:
            return np.frombuffer(file.read()[header:], np.uint8)

    images = read("*images*", 16).reshape(-1, 784).astype(np.float32) / 255
    return images, read("*labels*", 8).astype(np.int64)


def test_a_convolutional_step_is_not_slow(single_threaded_torch):
    """No loop over pixels: a step may take a few times what PyTorch takes, not hundreds of times."""
    import torch

    rng = np.random.default_rng(0)
    images, labels = rng.normal(size=(16, 1, 28, 28)).astype(np.float32), rng.integers(0, 10, 16)
    net = by_hand.small_cnn(rng=rng)
    adam = manual.Adam(net.parameters())
    layers = torch.nn
    theirs = layers.Sequential(
        layers.Conv2d(1, 32, 3, padding=1),
        layers.ReLU(),
        layers.MaxPool2d(2),
        layers.Conv2d(32, 64, 3, padding=1),
        layers.ReLU(),
        layers.MaxPool2d(2),
        layers.Flatten(),
        layers.Linear(64 * 49, 128),
        layers.ReLU(),
        layers.Linear(128, 10),
    )
    their_adam = torch.optim.Adam(theirs.parameters())

    def their_step():
        their_adam.zero_grad()
        torch.nn.functional.cross_entropy(theirs(torch.from_numpy(images)), torch.from_numpy(labels)).backward()
        their_adam.step()

    def seconds(step):
        times = []
        for _ in range(4):
            start = time.perf_counter()
            step()
            times.append(time.perf_counter() - start)
        return min(times)

    mine = seconds(lambda: by_hand.classifier_step(net, adam, images, labels))
    assert mine < 15 * seconds(their_step)
