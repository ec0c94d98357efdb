"""The one initial state and the one series of batches that every peer of W10 starts from."""

from __future__ import annotations

import numpy as np

from benchmarks.workloads._images import drawn

INPUTS, HIDDEN, LAYERS, PLACES, CLASSES = 64, 256, 2, 64, 10
BATCH, BATCHES = 32, 8
RATE, BETAS, EPSILON = 1e-3, (0.9, 0.999), 1e-8


def initial() -> dict[str, np.ndarray]:
    """Parameters under the names of `network`; the four gates are in PyTorch's order."""
    shapes: dict[str, tuple[int, ...]] = {}
    for layer in range(LAYERS):
        shapes[f"lstm.weight_ih_l{layer}"] = (4 * HIDDEN, HIDDEN if layer else INPUTS)
        shapes[f"lstm.weight_hh_l{layer}"] = (4 * HIDDEN, HIDDEN)
        shapes |= {f"lstm.bias_{side}_l{layer}": (4 * HIDDEN,) for side in ("ih", "hh")}
    return drawn(shapes | {"head.weight": (CLASSES, HIDDEN), "head.bias": (CLASSES,)})


def batches() -> tuple[np.ndarray, np.ndarray]:
    """Sequences (BATCHES, BATCH, PLACES, INPUTS), noise about a wave whose rate is the label; labels."""
    generator = np.random.default_rng(7)
    labels = generator.integers(0, CLASSES, (BATCHES, BATCH))
    waves = np.sin(0.1 * (1 + labels[..., None, None]) * np.arange(PLACES)[:, None] + np.arange(INPUTS))
    noise = generator.standard_normal((BATCHES, BATCH, PLACES, INPUTS))
    return (waves + 0.3 * noise).astype(np.float32), labels
