"""Batch-normalisation statistics of a whole data set, in place of the running ones of training."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import no_grad, tensor

Array = Any


def calibrate_batch_norm(model: Any, inputs: Array, chunk: int = 8_192) -> None:
    """Set the running mean and variance of every batch-norm layer to those over `inputs` (N, ...), in chunks.

    Chunks are merged by the exact formula for means and sums of squares (Chan, Golub, LeVeque 1979), in float64. Behind
    another batch-norm layer the result is that of the chunks, each normalised by its own statistics, as in training.
    """
    layers = [layer for layer in model.modules() if getattr(layer, "running_mean", None) is not None]
    if not layers:
        return
    momenta = [layer.momentum for layer in layers]
    merged = [_Moments() for _ in layers]
    model.train()
    try:
        for layer in layers:
            layer.momentum = 1.0  # the running statistics become those of the chunk
        for rows in np.array_split(inputs, max(1, -(-len(inputs) // chunk))):
            with no_grad():
                model(tensor(rows))
            for layer, moments in zip(layers, merged, strict=True):
                moments.add(len(rows), layer.running_mean.numpy(), layer.running_var.numpy())
    finally:
        for layer, momentum in zip(layers, momenta, strict=True):
            layer.momentum = momentum
    for layer, moments in zip(layers, merged, strict=True):
        layer.running_mean.numpy()[...] = moments.mean
        layer.running_var.numpy()[...] = moments.squares / max(moments.count - 1, 1)


class _Moments:
    """Count, mean and sum of squared deviations of everything added so far."""

    def __init__(self) -> None:
        self.count = 0
        self.mean: Array = 0.0
        self.squares: Array = 0.0

    def add(self, count: int, mean: Array, variance: Array) -> None:
        """Add a chunk by its mean and its variance, the latter as sum of squares over count - 1."""
        total = self.count + count
        step = mean.astype(np.float64) - self.mean
        self.squares = self.squares + variance.astype(np.float64) * (count - 1) + step**2 * (self.count * count / total)
        self.mean = self.mean + step * (count / total)
        self.count = total
