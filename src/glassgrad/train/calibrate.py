"""Compute batch-normalisation statistics over a whole data set, to replace the running averages of training."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

Array = Any  # np.ndarray


def calibrate_batch_norm(model: Any, inputs: Array, chunk: int = 8_192) -> None:
    """Set the running mean and variance of every batch-norm layer of a module to those over `inputs` (N, ...)."""
    from glassgrad.engine.mode import no_grad
    from glassgrad.engine.tensors.creation import tensor

    def forward(rows: Array) -> None:
        with no_grad():
            model(tensor(rows))

    layers = [layer for layer in model.modules() if getattr(layer, "running_mean", None) is not None]
    if layers:
        model.train()
    calibrate_layers(layers, forward, inputs, chunk)


def calibrate_layers(layers: Sequence[Any], forward: Callable[[Array], Any], inputs: Array, chunk: int = 8_192) -> None:
    """Set the running statistics of `layers` to those of `forward` over `inputs` (N, ...), in chunks.

    Chunks are merged by the exact formula for means and sums of squares (Chan, Golub, LeVeque 1979), in float64. After
    another batch-norm layer, each chunk is normalised with its own statistics, as in training.
    """
    if not layers:
        return
    momenta = [layer.momentum for layer in layers]
    merged = [_Moments() for _ in layers]
    try:
        for layer in layers:
            layer.momentum = 1.0  # the running statistics become those of the chunk
        for rows in np.array_split(inputs, max(1, -(-len(inputs) // chunk))):
            forward(rows)
            for layer, moments in zip(layers, merged, strict=True):
                moments.add(len(rows), _array(layer.running_mean), _array(layer.running_var))
    finally:
        for layer, momentum in zip(layers, momenta, strict=True):
            layer.momentum = momentum
    for layer, moments in zip(layers, merged, strict=True):
        _array(layer.running_mean)[...] = moments.mean
        _array(layer.running_var)[...] = moments.squares / max(moments.count - 1, 1)


def _array(buffer: Array) -> Array:
    """The memory of a buffer, which is a tensor in an `nn` module and an array in a manual layer."""
    return buffer.numpy() if hasattr(buffer, "numpy") else buffer


class _Moments:
    """Count, mean and sum of squared deviations of everything added so far."""

    def __init__(self) -> None:
        self.count = 0
        self.mean: Array = 0.0
        self.squares: Array = 0.0

    def add(self, count: int, mean: Array, variance: Array) -> None:
        """Add a chunk by its mean and its variance (the sum of squares over count - 1)."""
        total = self.count + count
        step = mean.astype(np.float64) - self.mean
        self.squares = self.squares + variance.astype(np.float64) * (count - 1) + step**2 * (self.count * count / total)
        self.mean = self.mean + step * (count / total)
        self.count = total
