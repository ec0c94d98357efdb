"""The one initial state and the one series of batches that every peer of W7 starts from."""

from __future__ import annotations

import numpy as np

from benchmarks.workloads._images import drawn, norm, pictures

SIDE, CLASSES, BATCH, BATCHES = 32, 10, 32, 4
STEM, LAST = 32, 1280
STAGES = ((1, 16, 1, 1), (6, 24, 2, 1), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))
RATE, MOMENTUM = 0.002, 0.9


def blocks() -> list[tuple[str, int, int, int, int]]:
    """(name, inputs, hidden, outputs, stride) of every block; a stage is (expansion, outputs, blocks, stride)."""
    found, inputs = [], STEM
    for expansion, outputs, count, stride in STAGES:
        for number in range(count):
            found.append((f"blocks.{len(found)}", inputs, expansion * inputs, outputs, 1 if number else stride))
            inputs = outputs
    return found


def initial() -> dict[str, np.ndarray]:
    """Parameters under the names of `network`."""
    shapes = {"conv.weight": (STEM, 3, 3, 3)} | norm("norm", STEM)
    for name, inputs, hidden, outputs, _ in blocks():
        if hidden != inputs:
            shapes |= {f"{name}.widen.weight": (hidden, inputs, 1, 1)} | norm(f"{name}.norm1", hidden)
        shapes |= {f"{name}.depthwise.weight": (hidden, 1, 3, 3)} | norm(f"{name}.norm2", hidden)
        shapes |= {f"{name}.narrow.weight": (outputs, hidden, 1, 1)} | norm(f"{name}.norm3", outputs)
    shapes |= {"last.weight": (LAST, STAGES[-1][1], 1, 1)} | norm("last_norm", LAST)
    return drawn(shapes | {"head.weight": (CLASSES, LAST), "head.bias": (CLASSES,)})


def batches() -> tuple[np.ndarray, np.ndarray]:
    """Images (BATCHES, BATCH, 3, 32, 32) float32 and labels int64."""
    return pictures(BATCHES, BATCH, SIDE, CLASSES)
