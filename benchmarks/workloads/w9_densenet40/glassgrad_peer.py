"""W9 in glassgrad; mode `eager`, or the emitter of a compiled step."""

from __future__ import annotations

import glassgrad as gg
from benchmarks.workloads._glassgrad import prepared, stepper
from benchmarks.workloads._same_words import classifier, training, weights_of
from benchmarks.workloads.w9_densenet40 import problem as p
from benchmarks.workloads.w9_densenet40.network import network


def parts():
    """Model, optimizer and loss."""
    return classifier(gg, network, p)


def build(mode):
    model, optimizer, loss_fn = parts()
    run = stepper(training(model, optimizer, loss_fn), mode, prepared(p.batches()))
    run.weights = weights_of(model)
    return run
