"""The one initial state and the one series of batches that every peer of W2 starts from."""

from __future__ import annotations

import itertools

import numpy as np

WIDTHS = (784, 1024, 1024, 1024, 10)
BATCH, BATCHES = 512, 16
RATE, DECAY, MOMENTUM, EPSILON = 1e-4, 0.99, 0.9, 1e-8


def initial() -> dict[str, np.ndarray]:
    """Parameters under PyTorch's names for Sequential(Linear, ReLU, Linear, ReLU, Linear, ReLU, Linear)."""
    generator = np.random.default_rng(2024)
    state = {}
    for layer, (inputs, outputs) in enumerate(itertools.pairwise(WIDTHS)):
        bound = 1 / np.sqrt(inputs)
        state[f"{2 * layer}.weight"] = generator.uniform(-bound, bound, (outputs, inputs)).astype(np.float32)
        state[f"{2 * layer}.bias"] = generator.uniform(-bound, bound, outputs).astype(np.float32)
    return state


def batches() -> tuple[np.ndarray, np.ndarray]:
    """Images (BATCHES, 512, 784) float32 in [0, 1], mostly dark as MNIST's are; labels int64 of a linear teacher."""
    generator = np.random.default_rng(7)
    images = generator.random((BATCHES, BATCH, WIDTHS[0]), dtype=np.float32)
    images *= generator.random(images.shape, dtype=np.float32) < 0.2
    teacher = generator.standard_normal((WIDTHS[0], WIDTHS[-1])).astype(np.float32)
    return images, (images @ teacher).argmax(axis=-1)
