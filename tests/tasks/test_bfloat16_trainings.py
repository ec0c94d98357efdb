"""Trainings in bfloat16 reach the results of float32: MNIST and a GPT on names, with real data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from glassgrad import amp
from glassgrad.tasks.images import MNIST
from glassgrad.tasks.names import NAMES
from glassgrad.train.config import command_line

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not amp.processor_multiplies(), reason="this processor has no products of bfloat16"),
]
DTYPES = ("float32", "bfloat16")


def trained(kind: Any, dtype: str, count: int, **options: Any) -> tuple[list[float], dict[str, float]]:
    """Return the losses of the steps, and the measures of the trained model."""
    task = kind.build(kind.configure([command_line({"dtype": dtype, **options})]))
    losses = []
    for step in range(count):
        task.learner.set_rate(task.rate_at(step))
        losses.append(float(task.learner.step(*task.batch_at(step))))
    return losses, task.settle()


def test_mnist_ends_within_a_hundredth(data_dir: Path) -> None:
    # The command's own rate. At five times of it, the loss of training is 0.01, and differs by several hundredths.
    options = {"data": str(data_dir / "mnist-t10k"), "hidden": 256, "layers": 2, "epochs": 6, "batch": 100}
    (_, single), (_, half) = (trained(MNIST, dtype, 480, **options) for dtype in DTYPES)
    print({name: (single[name], half[name]) for name in single})
    for name in ("train_loss", "test_loss"):
        assert half[name] == pytest.approx(single[name], rel=0.01)
        assert half[name] != single[name]
    assert half["test_accuracy"] == pytest.approx(single["test_accuracy"], abs=0.005)
    assert single["test_accuracy"] > 0.9


def test_a_gpt_ends_within_a_hundredth(data_dir: Path) -> None:
    options = {"data": str(data_dir / "names.txt"), "model": "gpt", "steps": 400, "dropout": 0.0}
    (first, single), (second, half) = (trained(NAMES, dtype, 400, **options) for dtype in DTYPES)
    print(np.mean(first[-50:]), np.mean(second[-50:]), single, half)
    assert np.mean(second[-50:]) == pytest.approx(np.mean(first[-50:]), rel=0.01)
    for name, loss in single.items():
        assert half[name] == pytest.approx(loss, rel=0.01)
    assert np.mean(first[-50:]) < np.mean(first[:50]) - 0.3
    assert first != second
