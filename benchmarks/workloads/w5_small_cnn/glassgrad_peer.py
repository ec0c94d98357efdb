"""W5 in glassgrad, the same lines as the PyTorch peer; mode `eager`, or the emitter of a compiled step."""

from __future__ import annotations

import glassgrad as gg
from benchmarks.workloads._glassgrad import prepared, stepper
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
from glassgrad import nn, optim
from glassgrad.nn import functional as F


def parts():
    """Model, optimizer and loss."""
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
    model.load_state_dict({name: gg.tensor(value) for name, value in initial().items()})
    optimizer = optim.Adam(model.parameters(), lr=RATE, betas=BETAS, eps=EPSILON)

    return model, optimizer, F.cross_entropy


def build(mode):
    model, optimizer, loss_fn = parts()

    def step(images, labels):
        loss = loss_fn(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    return stepper(step, mode, prepared(batches()))
