"""A drawn program in PyTorch; the mode is the seed."""

from __future__ import annotations

import torch

from benchmarks.wild.programs import Wild
from benchmarks.workloads._torch import stepper


def build(mode):
    wild = Wild(int(mode))
    data = list(zip(*wild.program.batches, strict=True))
    timed, checked = (stepper(wild.step(torch, dropout), "eager", data) for dropout in (1, 0))
    timed.check = checked
    return timed
