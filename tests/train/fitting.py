"""A small problem for tests of `Trainer`, and the values by which they compare runs."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import glassgrad as gg
from glassgrad import nn, optim
from glassgrad.nn import functional as F
from glassgrad.train import Trainer, TrainingConfig, load_weights
from glassgrad.utils.data import DataLoader, TensorDataset

ROWS, CLASSES = 60, 3


def data(seed: int = 0, rows: int = ROWS) -> tuple[Any, Any]:
    """Points and the classes a line cuts them into."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((rows, 4)).astype(np.float32)
    return x, (x @ rng.standard_normal((4, CLASSES))).argmax(axis=1)


def net(dropout: float = 0.1) -> Any:
    """A classifier with dropout, so that the random numbers matter."""
    return nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Dropout(dropout), nn.Linear(8, CLASSES))


def loader(batch_size: int = 8, shuffle: bool = True, **options: Any) -> Any:
    """Ours, over `data`."""
    x, y = data()
    return DataLoader(TensorDataset(gg.tensor(x), gg.tensor(y)), batch_size=batch_size, shuffle=shuffle, **options)


def trainer(
    *,
    model: Any = None,
    train: Any = None,
    validation: bool = True,
    scheduler: Any = None,
    dropout: float = 0.1,
    loss_fn: Any = F.cross_entropy,
    make_optimizer: Any = None,
    callbacks: Sequence[Any] = (),
    metrics: Any = None,
    **config: Any,
) -> Trainer:
    """A trainer of the small problem, the same each time."""
    gg.manual_seed(1)
    model = model() if model is not None else net(dropout)
    optimizer = (make_optimizer or (lambda parameters: optim.AdamW(parameters, lr=0.02)))(model.parameters())
    given = {"epochs": 3, "log_every": 5, "progress": "none", "engine": "eager", **config}
    return Trainer(
        model,
        optimizer,
        loss_fn,
        loader() if train is None else train,
        loader(30, shuffle=False) if validation else None,
        scheduler(optimizer) if scheduler else None,
        TrainingConfig(**given),
        callbacks,
        metrics=metrics,
    )


def weights(model: Any) -> dict[str, Any]:
    """Copies of everything in a model."""
    return {name: np.array(value.array) for name, value in model.state_dict().items()}


def assert_same(model: Any, other: Any) -> None:
    """Bit for bit."""
    for name, array in weights(model).items():
        np.testing.assert_array_equal(array, weights(other)[name], err_msg=name)


def timeless(records: Any) -> list[dict[str, Any]]:
    """Records without how long things took."""
    return [{key: value for key, value in one.items() if not key.endswith("seconds")} for one in records]


def stored(path: Path) -> dict[str, Any]:
    """The weights in a file of a run."""
    model = net()
    load_weights(model, path)
    return weights(model)


def dead_process() -> int:
    """Return the number of a process that has ended."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid
