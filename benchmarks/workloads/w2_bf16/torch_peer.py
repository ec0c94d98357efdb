"""W2 under autocast in PyTorch as its users write it; mode `compile` hands the whole step to torch.compile."""

from __future__ import annotations

import itertools

import torch
from torch import nn, optim
from torch.nn import functional as F

from benchmarks.workloads._torch import stepper
from benchmarks.workloads.w2_mnist_mlp.problem import DECAY, EPSILON, MOMENTUM, RATE, WIDTHS, batches, initial


def build(mode):
    layers = []
    for inputs, outputs in itertools.pairwise(WIDTHS):
        layers += [nn.Linear(inputs, outputs), nn.ReLU()]
    model = nn.Sequential(*layers[:-1])
    model.load_state_dict({name: torch.from_numpy(value) for name, value in initial().items()})
    optimizer = optim.RMSprop(model.parameters(), lr=RATE, alpha=DECAY, eps=EPSILON, momentum=MOMENTUM)

    def step(images, labels):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = F.cross_entropy(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    return stepper(step, mode, batches())
