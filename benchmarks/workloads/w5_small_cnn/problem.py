"""The one initial state and the one series of batches that every peer of W5 starts from."""

from __future__ import annotations

import numpy as np

SIDE, CLASSES, BATCH, BATCHES = 28, 10, 64, 32
CHANNELS = (32, 64)
HIDDEN = 128
FLAT = CHANNELS[1] * (SIDE // 4) ** 2
RATE, BETAS, EPSILON = 1e-3, (0.9, 0.999), 1e-8


def initial() -> dict[str, np.ndarray]:
    """PyTorch's names for Sequential(conv, relu, pool, conv, relu, pool, flatten, linear, relu, linear)."""
    generator = np.random.default_rng(2024)
    shapes = {
        "0": (CHANNELS[0], 1, 3, 3),
        "3": (CHANNELS[1], CHANNELS[0], 3, 3),
        "7": (HIDDEN, FLAT),
        "9": (CLASSES, HIDDEN),
    }
    state = {}
    for name, shape in shapes.items():
        bound = 1 / np.sqrt(np.prod(shape[1:]))
        state[f"{name}.weight"] = generator.uniform(-bound, bound, shape).astype(np.float32)
        state[f"{name}.bias"] = generator.uniform(-bound, bound, shape[0]).astype(np.float32)
    return state


def batches() -> tuple[np.ndarray, np.ndarray]:
    """Images (BATCHES, 64, 1, 28, 28) float32: a bright patch whose place is the label, under noise; labels int64."""
    generator = np.random.default_rng(7)
    labels = generator.integers(0, CLASSES, (BATCHES, BATCH))
    images = generator.random((BATCHES, BATCH, 1, SIDE, SIDE), dtype=np.float32)
    for batch, place in np.ndindex(labels.shape):
        row, column = divmod(int(labels[batch, place]), 4)
        images[batch, place, 0, 9 * row : 9 * row + 7, 7 * column : 7 * column + 6] += 0.5
    return images, labels
