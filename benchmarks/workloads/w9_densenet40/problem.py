"""The one initial state and the one series of batches that every peer of W9 starts from."""

from __future__ import annotations

import numpy as np

from benchmarks.workloads._images import drawn, norm, pictures

SIDE, CLASSES, BATCH, BATCHES = 32, 10, 32, 4
STEM, GROWTH, STAGES, LAYERS = 16, 12, 3, 12
RATE, MOMENTUM = 0.002, 0.9


def layers() -> list[tuple[str, int, int]]:
    """(name, inputs, outputs) of every layer; one with as many outputs as inputs is a transition between stages."""
    found, channels = [], STEM
    for stage in range(STAGES):
        for _ in range(LAYERS):
            found.append((f"layers.{len(found)}", channels, GROWTH))
            channels += GROWTH
        if stage < STAGES - 1:
            found.append((f"layers.{len(found)}", channels, channels))
    return found


WIDTH = STEM + STAGES * LAYERS * GROWTH


def initial() -> dict[str, np.ndarray]:
    """Parameters under the names of `network`."""
    shapes = {"conv.weight": (STEM, 3, 3, 3)}
    for name, inputs, outputs in layers():
        side = 1 if inputs == outputs else 3
        shapes |= norm(f"{name}.norm", inputs) | {f"{name}.conv.weight": (outputs, inputs, side, side)}
    shapes |= norm("norm", WIDTH)
    return drawn(shapes | {"head.weight": (CLASSES, WIDTH), "head.bias": (CLASSES,)})


def batches() -> tuple[np.ndarray, np.ndarray]:
    """Images (BATCHES, BATCH, 3, 32, 32) float32 and labels int64."""
    return pictures(BATCHES, BATCH, SIDE, CLASSES)
