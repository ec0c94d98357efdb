"""W7 in PyTorch; mode `compile` hands the whole step to torch.compile."""

from __future__ import annotations

import torch

from benchmarks.workloads._same_words import classifier, training, weights_of
from benchmarks.workloads._torch import stepper
from benchmarks.workloads.w7_mobilenetv2 import problem as p
from benchmarks.workloads.w7_mobilenetv2.network import network


def parts():
    """Model, optimizer and loss."""
    return classifier(torch, network, p)


def build(mode):
    model, optimizer, loss_fn = parts()
    run = stepper(training(model, optimizer, loss_fn), mode, p.batches())
    run.weights = weights_of(model)
    return run
