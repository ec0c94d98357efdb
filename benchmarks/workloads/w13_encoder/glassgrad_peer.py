"""W13 in glassgrad; mode `eager`, or the emitter of a compiled step."""

from __future__ import annotations

import glassgrad as gg
from benchmarks.workloads._glassgrad import prepared, stepper
from benchmarks.workloads._same_words import loaded, training
from benchmarks.workloads.w13_encoder import problem as p
from benchmarks.workloads.w13_encoder.network import loss_fn, network


def parts(dropout=p.DROPOUT):
    """Model, optimizer and loss."""
    model = loaded(network(gg, dropout), gg, p.initial())
    optimizer = gg.optim.Adam(model.parameters(), lr=p.RATE, betas=p.BETAS, eps=p.EPSILON)
    return model, optimizer, loss_fn(gg)


def build(mode):
    timed, checked = (stepper(training(*parts(dropout)), mode, prepared(p.batches())) for dropout in (p.DROPOUT, 0.0))
    timed.check = checked
    return timed
