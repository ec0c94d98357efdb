"""W1 in PyTorch as its users write it; mode `compile` hands the whole step to torch.compile."""

from __future__ import annotations

import torch
from torch import nn, optim
from torch.nn import functional as F

from benchmarks.workloads._torch import stepper
from benchmarks.workloads.w1_names_mlp.problem import CONTEXT, HIDDEN, RATE, VOCABULARY, WIDTH, batches, initial


def build(mode):
    model = nn.Sequential(
        nn.Embedding(VOCABULARY, WIDTH),
        nn.Flatten(),
        nn.Linear(CONTEXT * WIDTH, HIDDEN),
        nn.BatchNorm1d(HIDDEN),
        nn.Tanh(),
        nn.Linear(HIDDEN, VOCABULARY),
    )
    model.load_state_dict({name: torch.from_numpy(value) for name, value in initial().items()}, strict=False)
    optimizer = optim.SGD(model.parameters(), lr=RATE)

    def step(x, y):
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    return stepper(step, mode, batches())
