"""The one initial state and the one series of batches that every peer of W11 starts from."""

from __future__ import annotations

import itertools

import numpy as np

from benchmarks.workloads._images import drawn, norm, pictures

SIDE, BATCH, BATCHES = 28, 32, 4
CHANNELS, GROUPS = (32, 64, 128), 8
RATE, BETAS, EPSILON = 1e-3, (0.9, 0.999), 1e-8
NORM_EPSILON = 1e-5


def blocks() -> list[tuple[str, int, int]]:
    """Name, inputs and outputs of every block, in the order in which they run."""
    down = [(f"down.{level}", *pair) for level, pair in enumerate(itertools.pairwise((1, *CHANNELS)))]
    up = [(f"up.{level}", CHANNELS[level] + CHANNELS[level + 1], CHANNELS[level]) for level in (1, 0)]
    return down + up


def initial() -> dict[str, np.ndarray]:
    """Parameters under the names of `network`."""
    shapes: dict[str, tuple[int, ...]] = {}
    for name, inputs, outputs in blocks():
        for number, near in enumerate((inputs, outputs)):
            shapes |= {f"{name}.conv{number}.weight": (outputs, near, 3, 3), f"{name}.conv{number}.bias": (outputs,)}
            shapes |= norm(f"{name}.norm{number}", outputs)
    for level, channels in enumerate(CHANNELS[:-1]):
        shapes |= {f"shrink.{level}.weight": (channels, channels, 3, 3), f"shrink.{level}.bias": (channels,)}
    return drawn(shapes | {"head.weight": (1, CHANNELS[0], 1, 1), "head.bias": (1,)})


def batches() -> tuple[np.ndarray, np.ndarray]:
    """Noisy images (BATCHES, BATCH, 1, 28, 28), some more than others, and the noise in them."""
    images = pictures(BATCHES, BATCH, SIDE)[0][:, :, :1]
    generator = np.random.default_rng(11)
    noise = generator.standard_normal(images.shape).astype(np.float32)
    level = generator.uniform(0.1, 0.9, (BATCHES, BATCH, 1, 1, 1)).astype(np.float32)
    return np.sqrt(1 - level) * images + np.sqrt(level) * noise, noise
