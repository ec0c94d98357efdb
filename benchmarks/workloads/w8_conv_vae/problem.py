"""The one initial state and the one series of batches that every peer of W8 starts from."""

from __future__ import annotations

import itertools

import numpy as np

from benchmarks.workloads._images import drawn, pictures

SIDE, BATCH, BATCHES = 64, 32, 4
CHANNELS, LATENT = (3, 32, 64, 128, 256), 64
KERNEL, STRIDE, PADDING = 4, 2, 1
SMALL = SIDE // STRIDE ** (len(CHANNELS) - 1)
FLAT = CHANNELS[-1] * SMALL**2
RATE, BETAS, EPSILON = 1e-3, (0.9, 0.999), 1e-8


def initial() -> dict[str, np.ndarray]:
    """Parameters under the names of `network`."""
    shapes: dict[str, tuple[int, ...]] = {}
    for number, (near, far) in enumerate(itertools.pairwise(CHANNELS)):
        back = len(CHANNELS) - 2 - number
        shapes |= {f"down.{number}.weight": (far, near, KERNEL, KERNEL), f"down.{number}.bias": (far,)}
        shapes |= {f"up.{back}.weight": (far, near, KERNEL, KERNEL), f"up.{back}.bias": (near,)}
    shapes |= {"code.weight": (2 * LATENT, FLAT), "code.bias": (2 * LATENT,)}
    return drawn(shapes | {"start.weight": (FLAT, LATENT), "start.bias": (FLAT,)})


def batches() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Images (BATCHES, BATCH, 3, 64, 64), the noise of their codes, and the images once more, to be compared with."""
    images, _ = pictures(BATCHES, BATCH, SIDE)
    noise = np.random.default_rng(11).standard_normal((BATCHES, BATCH, LATENT)).astype(np.float32)
    return images, noise, images
