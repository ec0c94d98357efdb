"""W13 in PyTorch; mode `compile` hands the whole step to torch.compile."""

from __future__ import annotations

import torch

from benchmarks.workloads._same_words import loaded, training
from benchmarks.workloads._torch import stepper
from benchmarks.workloads.w13_encoder import problem as p
from benchmarks.workloads.w13_encoder.network import loss_fn, network


def parts(dropout=p.DROPOUT):
    """Model, optimizer and loss."""
    model = loaded(network(torch, dropout), torch, p.initial())
    optimizer = torch.optim.Adam(model.parameters(), lr=p.RATE, betas=p.BETAS, eps=p.EPSILON)
    return model, optimizer, loss_fn(torch)


def build(mode):
    timed, checked = (stepper(training(*parts(dropout)), mode, p.batches()) for dropout in (p.DROPOUT, 0.0))
    timed.check = checked
    return timed
