"""Three spirals, told apart by a small network: a script with options of its own, a run that can be resumed, a picture.

python examples/training/spirals.py --epochs 100 --hidden 32 --run-dir runs/spirals
python examples/training/spirals.py --help
"""

from __future__ import annotations

import sys
from dataclasses import dataclass

import numpy as np

import glassgrad as gg
from glassgrad import nn, optim
from glassgrad.errors import InputError
from glassgrad.nn import functional as F
from glassgrad.train import Trainer, TrainingConfig, accuracy, option
from glassgrad.utils.data import DataLoader, TensorDataset, random_split


@dataclass(frozen=True)
class Config(TrainingConfig):
    """The options of this script, in addition to those of every run."""

    epochs: int = option(60, "how often each point is trained on", low=1)
    hidden: int = option(32, "units of each hidden layer", low=1)
    rate: float = option(0.01, "highest learning rate", above=0)
    seed: int = option(1, "seed of points, weights and batches", low=0)


def spirals(seed: int, points: int = 1_500) -> TensorDataset:
    """Return points (n, 2) on three noisy arms, and the arm of each point."""
    rng = np.random.default_rng(seed)
    arm, along = rng.integers(0, 3, points), rng.random(points)
    angle = 2 * np.pi * (arm / 3 + along) + 0.15 * rng.standard_normal(points)
    places = np.stack([along * np.cos(angle), along * np.sin(angle)], axis=1)
    return TensorDataset(gg.tensor(places.astype(np.float32)), gg.tensor(arm))


def main(arguments: list[str]) -> int:
    """Train, and print the result."""
    config = Config.from_command_line(arguments)
    gg.manual_seed(config.seed)
    train, held_out = random_split(spirals(config.seed), [1_200, 300])
    loader = DataLoader(train, batch_size=60, shuffle=True)
    model = nn.Sequential(
        nn.Linear(2, config.hidden),
        nn.ReLU(),
        nn.Linear(config.hidden, config.hidden),
        nn.ReLU(),
        nn.Linear(config.hidden, 3),
    )
    optimizer = optim.AdamW(model.parameters(), lr=config.rate)
    scheduler = optim.lr_scheduler.OneCycleLR(optimizer, config.rate, total_steps=config.epochs * len(loader) + 1)
    trainer = Trainer(
        model,
        optimizer,
        F.cross_entropy,
        loader,
        DataLoader(held_out, batch_size=300),
        scheduler,
        config,
        metrics={"accuracy": accuracy},
    )
    result = trainer.fit(resume=True)
    print(f"after {result.step:,} steps {result.measures['accuracy']:.1%} of the points held out are right")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except InputError as error:
        sys.exit(f"error: {error}")
