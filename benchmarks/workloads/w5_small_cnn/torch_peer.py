"""W5 in PyTorch as its users write it; mode `compile` hands the whole step to torch.compile."""

from __future__ import annotations

import torch
from torch import nn, optim
from torch.nn import functional as F

from benchmarks.workloads._torch import stepper
from benchmarks.workloads.w5_small_cnn.problem import (
    BETAS,
    CHANNELS,
    CLASSES,
    EPSILON,
    FLAT,
    HIDDEN,
    RATE,
    batches,
    initial,
)


def build(mode):
    model = nn.Sequential(
        nn.Conv2d(1, CHANNELS[0], 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(*CHANNELS, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(FLAT, HIDDEN),
        nn.ReLU(),
        nn.Linear(HIDDEN, CLASSES),
    )
    model.load_state_dict({name: torch.from_numpy(value) for name, value in initial().items()})
    optimizer = optim.Adam(model.parameters(), lr=RATE, betas=BETAS, eps=EPSILON)

    def step(images, labels):
        loss = F.cross_entropy(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    return stepper(step, mode, batches())
