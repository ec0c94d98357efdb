"""W5 in glassgrad, written as C; mode is the compiler."""

from __future__ import annotations

from benchmarks.workloads import _c
from benchmarks.workloads.w5_small_cnn import problem
from benchmarks.workloads.w5_small_cnn.glassgrad_peer import parts


def build(mode):
    return _c.training(parts(), problem.batches(), mode)
