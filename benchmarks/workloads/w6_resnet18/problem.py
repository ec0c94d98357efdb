"""The one initial state and the one series of batches that every peer of W6 starts from."""

from __future__ import annotations

import numpy as np

from benchmarks.workloads._images import drawn, norm, pictures

SIDE, CLASSES, BATCH, BATCHES = 32, 10, 32, 4
WIDTHS, BLOCKS = (64, 128, 256, 512), 2
RATE, MOMENTUM = 0.002, 0.9


def blocks() -> list[tuple[str, int, int, int]]:
    """(name, inputs, outputs, stride) of every residual block: a stage halves the image and doubles the channels."""
    found, inputs = [], WIDTHS[0]
    for stage, outputs in enumerate(WIDTHS):
        for number in range(BLOCKS):
            found.append((f"blocks.{len(found)}", inputs, outputs, 2 if stage and not number else 1))
            inputs = outputs
    return found


def initial() -> dict[str, np.ndarray]:
    """Parameters under the names of `network`."""
    shapes = {"conv.weight": (WIDTHS[0], 3, 3, 3)} | norm("norm", WIDTHS[0])
    for name, inputs, outputs, stride in blocks():
        shapes |= {f"{name}.conv1.weight": (outputs, inputs, 3, 3)} | norm(f"{name}.norm1", outputs)
        shapes |= {f"{name}.conv2.weight": (outputs, outputs, 3, 3)} | norm(f"{name}.norm2", outputs)
        if stride > 1:
            shapes |= {f"{name}.short.0.weight": (outputs, inputs, 1, 1)} | norm(f"{name}.short.1", outputs)
    return drawn(shapes | {"head.weight": (CLASSES, WIDTHS[-1]), "head.bias": (CLASSES,)})


def batches() -> tuple[np.ndarray, np.ndarray]:
    """Images (BATCHES, BATCH, 3, 32, 32) float32 and labels int64."""
    return pictures(BATCHES, BATCH, SIDE, CLASSES)
