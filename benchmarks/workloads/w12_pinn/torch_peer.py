"""W12 in PyTorch; mode `compile` hands the whole step to torch.compile."""

from __future__ import annotations

import torch

from benchmarks.workloads._same_words import loaded, training, weights_of
from benchmarks.workloads._torch import stepper
from benchmarks.workloads.w12_pinn import problem as p
from benchmarks.workloads.w12_pinn.network import loss_fn, network, residual


def parts():
    """Model, optimizer and loss."""
    model = loaded(network(torch), torch, p.initial())
    optimizer = torch.optim.Adam(model.parameters(), lr=p.RATE, betas=p.BETAS, eps=p.EPSILON)
    return model, optimizer, loss_fn(torch)


def by_transforms(model):
    """The same by `torch.func.grad`: torch.compile refuses `torch.autograd.grad` with `create_graph`."""

    def total(x, t):
        return model.value(torch.cat([x, t], 1)).sum()

    slopes = torch.func.grad(total, (0, 1))

    def forward(x, t, edge):
        u_x, u_t = slopes(x, t)
        u_xx = torch.func.grad(lambda x: slopes(x, t)[0].sum())(x)
        return residual(model.value(torch.cat([x, t], 1)), u_x, u_t, u_xx), model.value(edge)

    return forward


def build(mode):
    model, optimizer, loss_fn = parts()
    forward = by_transforms(model) if mode == "compile" else model
    run = stepper(training(forward, optimizer, loss_fn), mode, p.batches())
    run.weights = weights_of(model)
    return run
