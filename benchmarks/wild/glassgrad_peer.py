"""A drawn program in glassgrad; the mode is `eager` or `llvm`, and the seed."""

from __future__ import annotations

import glassgrad
from benchmarks.wild.programs import Wild
from benchmarks.workloads._glassgrad import prepared, stepper


def build(mode):
    how, seed = mode.split()
    wild = Wild(int(seed))
    data = prepared(zip(*wild.program.batches, strict=True))
    timed, checked = (stepper(wild.step(glassgrad, dropout), how, data) for dropout in (1, 0))
    timed.check = checked
    timed.stores = False  # its first step in a second process is not of interest
    return timed
