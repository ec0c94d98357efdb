"""W5 in glassgrad, written as C; mode is the compiler."""

from __future__ import annotations

from benchmarks.workloads import _c
from benchmarks.workloads._glassgrad import prepared
from benchmarks.workloads.w5_small_cnn import problem
from benchmarks.workloads.w5_small_cnn.glassgrad_peer import parts


def build(mode):
    model, optimizer, loss_fn = parts()

    def step(x, y):
        loss = loss_fn(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    return _c.runner(step, prepared(problem.batches()), mode)
