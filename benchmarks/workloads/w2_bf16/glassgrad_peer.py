"""W2 under autocast in glassgrad, the same lines as the PyTorch peer; mode `float32` leaves autocast out."""

from __future__ import annotations

import glassgrad as gg
from benchmarks.workloads._glassgrad import prepared, stepper
from benchmarks.workloads.w2_mnist_mlp.glassgrad_peer import parts
from benchmarks.workloads.w2_mnist_mlp.problem import batches


def build(mode):
    model, optimizer, loss_fn = parts()

    def step(images, labels):
        with gg.autocast("cpu", dtype=gg.bfloat16, enabled=mode != "float32"):
            loss = loss_fn(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    run = stepper(step, "llvm" if mode == "float32" else mode, prepared(batches()))
    if mode != "float32":
        del run.stats  # the limits that a step is held against are those of float32
    return run
