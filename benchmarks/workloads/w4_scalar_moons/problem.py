"""The one initial state and the points that every peer of W4 starts from."""

from __future__ import annotations

import itertools

import numpy as np

WIDTHS = (2, 16, 16, 1)
POINTS = 100
RATE, PENALTY = 0.1, 1e-4


def initial() -> list[float]:
    """Weights then bias of each neuron, layer by layer: the order of ``MLP.parameters()``."""
    generator = np.random.default_rng(2024)
    values: list[float] = []
    for inputs, outputs in itertools.pairwise(WIDTHS):
        for _ in range(outputs):
            values += [*generator.uniform(-1, 1, inputs).tolist(), 0.0]
    return values


def points() -> tuple[list[list[float]], list[float]]:
    """Two interleaved half circles with a little noise; labels are -1 and 1."""
    generator = np.random.default_rng(7)
    angle = np.linspace(0, np.pi, POINTS // 2)
    upper = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    lower = np.stack([1 - np.cos(angle), 0.5 - np.sin(angle)], axis=1)
    where = np.concatenate([upper, lower]) + 0.1 * generator.standard_normal((POINTS, 2))
    return where.tolist(), [-1.0] * (POINTS // 2) + [1.0] * (POINTS // 2)
