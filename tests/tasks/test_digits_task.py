"""The tasks digits and mnist: shapes, schedule, initial weights, and a comparison with PyTorch."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from glassgrad.data import ImageData
from glassgrad.errors import InputError
from glassgrad.tasks.images import DIGITS, MNIST, ImagesTask
from glassgrad.train.config import command_line


def task(**options: Any) -> ImagesTask:
    return DIGITS.build(DIGITS.configure([command_line({"engine": "eager", **options})]))


def test_the_mlp_of_mnist_is_784_1024_1024_1024_10() -> None:
    images, labels = np.zeros((600, 28, 28), np.uint8), np.zeros(600, np.int64)
    config = MNIST.configure([command_line({"engine": "manual"})])
    made = ImagesTask("mnist", config, ImageData(images, labels, images, labels, "test"))
    shapes = [array.shape for name, array in made.learner.weights().items() if name.endswith("weight")]
    assert shapes == [(1024, 784), (1024, 1024), (1024, 1024), (10, 1024)]
    assert (config.batch, config.momentum, config.epochs) == (512, 0.9, 20)


def test_fifty_steps_of_the_cnn_are_those_of_pytorch() -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is the oracle")
    ours = task(model="cnn", channels=4, hidden=16, batch=32)
    layers = torch.nn
    twin = layers.Sequential(
        layers.Conv2d(1, 4, 3, padding=1),
        layers.ReLU(),
        layers.MaxPool2d(2),
        layers.Conv2d(4, 8, 3, padding=1),
        layers.ReLU(),
        layers.MaxPool2d(2),
        layers.Flatten(),
        layers.Linear(32, 16),
        layers.ReLU(),
        layers.Linear(16, 10),
    )
    twin.load_state_dict({name: torch.tensor(array) for name, array in ours.learner.weights().items()})
    optimizer = torch.optim.RMSprop(twin.parameters(), momentum=0.9)
    for step in range(50):
        inputs, targets = ours.batch_at(step)
        optimizer.param_groups[0]["lr"] = ours.rate_at(step)
        ours.learner.set_rate(ours.rate_at(step))
        loss = torch.nn.functional.cross_entropy(twin(torch.tensor(inputs)), torch.tensor(targets))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        assert float(ours.learner.step(inputs, targets)) == pytest.approx(float(loss.detach()), abs=1e-4)


def test_the_rate_rises_and_falls() -> None:
    entry = task(epochs=10, rate=0.01, final_rate=0.001, warm_up=0.1)
    rates = [entry.rate_at(step) for step in range(entry.steps)]
    top = entry.steps // 10
    assert entry.steps == 10 * (1437 // 64)
    assert rates[top] == max(rates) == pytest.approx(0.01)
    assert (np.diff(rates[: top + 1]) > 0).all()
    assert (np.diff(rates[top:]) < 0).all()
    assert rates[-1] == pytest.approx(0.001, rel=0.01)


def test_images_are_scaled_to_mean_0_and_spread_1() -> None:
    entry = task(shift=0, batch=1437)
    inputs, targets = entry.batch_at(0)
    assert (inputs.shape, inputs.dtype, targets.dtype) == ((1437, 64), np.float32, np.int64)
    assert (float(inputs.mean()), float(inputs.std())) == pytest.approx((0, 1), abs=1e-5)
    assert task(model="cnn").batch_at(0)[0].shape == (64, 1, 8, 8)


def test_initial_weights_have_hes_scale_and_depend_on_the_seed_alone() -> None:
    first, again, other = (task(hidden=256, seed=seed).learner.weights() for seed in (1, 1, 2))
    assert first["2.weight"].std() == pytest.approx((2 / 256) ** 0.5, rel=0.02)
    assert not first["2.bias"].any()
    np.testing.assert_array_equal(first["0.weight"], again["0.weight"])
    assert (first["0.weight"] != other["0.weight"]).mean() > 0.99


def test_batches_larger_than_the_data_and_images_too_small_are_refused() -> None:
    with pytest.raises(InputError, match="batch must be at most the 1,437 training images, given 1,438"):
        task(batch=1438)
    images, labels = np.zeros((20, 3, 8), np.uint8), np.zeros(20, np.int64)
    config = DIGITS.configure([command_line({"model": "cnn", "batch": 4})])
    with pytest.raises(InputError, match="images of 3 x 8 are too small"):
        ImagesTask("digits", config, ImageData(images, labels, images, labels, "test"))


@pytest.mark.slow
@pytest.mark.parametrize(("model", "least"), [("mlp", 0.96), ("cnn", 0.98)])
def test_mnist_is_learnt(data_dir: Path, tmp_path: Path, model: str, least: float) -> None:
    command = [sys.executable, "-m", "glassgrad", "train", "mnist", "--data", str(data_dir / "mnist-t10k")]
    subprocess.run([*command, "--model", model, "--run-dir", str(tmp_path / "run")], check=True, capture_output=True)
    final = json.loads((tmp_path / "run" / "metrics.jsonl").read_text().splitlines()[-1])
    assert final["test_accuracy"] >= least
