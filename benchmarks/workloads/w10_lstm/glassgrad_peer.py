"""W10 in glassgrad; mode `eager`, or the emitter of a compiled step."""

from __future__ import annotations

import glassgrad as gg
from benchmarks.workloads._glassgrad import prepared, stepper
from benchmarks.workloads._same_words import loaded, training, weights_of
from benchmarks.workloads.w10_lstm import problem as p
from benchmarks.workloads.w10_lstm.network import loss_fn, network


def parts():
    """Model, optimizer and loss."""
    model = loaded(network(gg), gg, p.initial())
    optimizer = gg.optim.Adam(model.parameters(), lr=p.RATE, betas=p.BETAS, eps=p.EPSILON)
    return model, optimizer, loss_fn(gg)


def build(mode):
    model, optimizer, loss_fn = parts()
    run = stepper(training(model, optimizer, loss_fn), mode, prepared(p.batches()))
    run.weights = weights_of(model)
    return run
