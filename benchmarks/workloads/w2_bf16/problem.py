"""The weights and batches of W2."""

from __future__ import annotations

from benchmarks.workloads.w2_mnist_mlp.problem import (
    BATCH,
    BATCHES,
    DECAY,
    EPSILON,
    MOMENTUM,
    RATE,
    WIDTHS,
    batches,
    initial,
)

__all__ = ["BATCH", "BATCHES", "DECAY", "EPSILON", "MOMENTUM", "RATE", "WIDTHS", "batches", "initial"]
