"""W1 in glassgrad, the same lines as the PyTorch peer; mode `eager`, or the emitter of a compiled step."""

from __future__ import annotations

import glassgrad as gg
from benchmarks.workloads._glassgrad import prepared, stepper
from benchmarks.workloads.w1_names_mlp.problem import CONTEXT, HIDDEN, RATE, VOCABULARY, WIDTH, batches, initial
from glassgrad import nn, optim
from glassgrad.nn import functional as F


def parts():
    """Model, optimizer and loss."""
    model = nn.Sequential(
        nn.Embedding(VOCABULARY, WIDTH),
        nn.Flatten(),
        nn.Linear(CONTEXT * WIDTH, HIDDEN),
        nn.BatchNorm1d(HIDDEN),
        nn.Tanh(),
        nn.Linear(HIDDEN, VOCABULARY),
    )
    model.load_state_dict({name: gg.tensor(value) for name, value in initial().items()}, strict=False)
    return model, optim.SGD(model.parameters(), lr=RATE), F.cross_entropy


def build(mode):
    model, optimizer, loss_fn = parts()

    def step(x, y):
        loss = loss_fn(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    return stepper(step, mode, prepared(batches()))
