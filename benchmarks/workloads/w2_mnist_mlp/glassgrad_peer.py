"""W2 in glassgrad, the same lines as the PyTorch peer; mode `eager`, or the emitter of a compiled step."""

from __future__ import annotations

import itertools

import glassgrad as gg
from benchmarks.workloads._glassgrad import prepared, stepper
from benchmarks.workloads.w2_mnist_mlp.problem import DECAY, EPSILON, MOMENTUM, RATE, WIDTHS, batches, initial
from glassgrad import nn, optim
from glassgrad.nn import functional as F


def parts():
    """Model, optimizer and loss."""
    layers = []
    for inputs, outputs in itertools.pairwise(WIDTHS):
        layers += [nn.Linear(inputs, outputs), nn.ReLU()]
    model = nn.Sequential(*layers[:-1])
    model.load_state_dict({name: gg.tensor(value) for name, value in initial().items()})
    optimizer = optim.RMSprop(model.parameters(), lr=RATE, alpha=DECAY, eps=EPSILON, momentum=MOMENTUM)

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
