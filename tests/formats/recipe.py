"""The objects in the files of tests/formats, made the same by the version that writes and the one that reads.

A later version may draw other random numbers, so nothing here is drawn.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import glassgrad as gg
from glassgrad import nn, optim
from glassgrad.nn import functional as F
from glassgrad.train import Checkpoint, Trainer, TrainingConfig
from glassgrad.utils.data import DataLoader, TensorDataset

BEFORE, AFTER = 7, 9
VALUES = {"epoch": 3, "note": "é\n\x1a", "best": [0.5, None, True], "names": {"a": 1}}
ENTRY, HEADER, CODE = "5" * 64, {"triple": "none", "sizes": [1, 2], "name": "é"}, bytes(range(256))


def numbers(*shape: int) -> gg.Tensor:
    """Return numbers that look drawn, and depend on nothing."""
    count = int(np.prod(shape))
    return gg.tensor(np.sin(np.arange(1, count + 1) * 12.9898).astype(np.float32).reshape(shape))


def model() -> nn.Sequential:
    made = nn.Sequential(nn.Linear(3, 8), nn.BatchNorm1d(8), nn.Tanh(), nn.Linear(8, 2))
    with gg.no_grad():
        for parameter in made.parameters():
            parameter.copy_(0.5 * numbers(*parameter.shape))
    return made


def data() -> TensorDataset:
    points = numbers(40, 3)
    return TensorDataset(points, (points.sum(1) > 0).long())


def nested() -> dict[str, Any]:
    """Return an object of every kind that `gg.save` takes."""
    return {
        "model": model().state_dict(),
        "grad": gg.tensor([1.0, 2.0], requires_grad=True),
        "array": np.arange(6, dtype=np.int16).reshape(2, 3),
        "dtypes": [gg.tensor([1, 0], dtype=kind) for kind in (gg.bool, gg.uint8, gg.int32, gg.float16, gg.float64)],
        "narrow": gg.tensor([1.5, -2.0]).to(gg.bfloat16),
        "complex": gg.tensor([1 + 2j]),
        "empty": gg.zeros(0, 3),
        "scalar": gg.tensor(2.5),
        "plain": (1, -2.5, True, None, "é\n", float("inf")),
        3: {"deep": [{"deeper": ()}]},
    }


class Training:
    """A loop with a checkpoint of everything in it."""

    def __init__(self, path: Path) -> None:
        self.model = model()
        self.optimizer = optim.AdamW(self.model.parameters(), lr=0.02)
        self.schedule = optim.lr_scheduler.CosineAnnealingLR(self.optimizer, 20)
        self.checkpoint = Checkpoint(path, model=self.model, optimizer=self.optimizer, schedule=self.schedule)

    def steps(self, count: int) -> list[float]:
        """Take steps on all points, and return their losses."""
        points, labels = data().tensors
        losses = []
        for _ in range(count):
            loss = F.cross_entropy(self.model(points), labels)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            self.schedule.step()
            losses.append(loss.item())
        return losses


def trainer(folder: Path) -> Trainer:
    """Return a training whose batches come in the order of the data."""
    made = model()
    config = TrainingConfig(epochs=4, progress="none", log_every=1, run_dir=str(folder), log_to="csv")
    batches = DataLoader(data(), batch_size=8)
    return Trainer(made, optim.SGD(made.parameters(), lr=0.1, momentum=0.9), F.cross_entropy, batches, config=config)
