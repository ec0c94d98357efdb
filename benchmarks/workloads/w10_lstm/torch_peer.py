"""W10 in PyTorch; mode `compile` hands the whole step to torch.compile."""

from __future__ import annotations

import torch

from benchmarks.workloads._same_words import loaded, training, weights_of
from benchmarks.workloads._torch import stepper
from benchmarks.workloads.w10_lstm import problem as p
from benchmarks.workloads.w10_lstm.network import loss_fn, network


def parts():
    """Model, optimizer and loss."""
    model = loaded(network(torch), torch, p.initial())
    optimizer = torch.optim.Adam(model.parameters(), lr=p.RATE, betas=p.BETAS, eps=p.EPSILON)
    return model, optimizer, loss_fn(torch)


def build(mode):
    model, optimizer, loss_fn = parts()
    run = stepper(training(model, optimizer, loss_fn), mode, p.batches())
    run.weights = weights_of(model)
    return run
