"""What the workloads on images share without a library: drawn weights and labelled pictures, by NumPy alone."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np


def drawn(shapes: Mapping[str, tuple[int, ...]], seed: int = 2024) -> dict[str, np.ndarray]:
    """Weights of these shapes: uniform with the variance of one over the inputs, norms of one, biases of zero."""
    generator = np.random.default_rng(seed)
    state = {}
    for name, shape in shapes.items():
        if len(shape) > 1:
            bound = np.sqrt(3 / np.prod(shape[1:]))
            state[name] = generator.uniform(-bound, bound, shape).astype(np.float32)
        else:
            state[name] = np.full(shape, 1.0 if name.endswith("weight") else 0.0, np.float32)
    return state


def norm(name: str, channels: int) -> dict[str, tuple[int, ...]]:
    """The shapes of a batch norm's parameters."""
    return {f"{name}.weight": (channels,), f"{name}.bias": (channels,)}


def pictures(count: int, batch: int, side: int, classes: int = 10) -> tuple[np.ndarray, np.ndarray]:
    """Images (count, batch, 3, side, side) in [0, 1]: a bright patch whose place is the label, under noise; labels."""
    generator = np.random.default_rng(7)
    labels = generator.integers(0, classes, (count, batch))
    images = 0.5 * generator.random((count, batch, 3, side, side), dtype=np.float32)
    step = side // 4
    for one, place in np.ndindex(labels.shape):
        row, column = divmod(int(labels[one, place]), 4)
        images[one, place, :, step * row : step * (row + 1), step * column : step * (column + 1)] += 0.5
    return images, labels
