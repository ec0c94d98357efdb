"""The one initial state and the one series of batches that every peer of W12 starts from."""

from __future__ import annotations

import itertools

import numpy as np

from benchmarks.workloads._images import drawn

SIZES, VISCOSITY = (2, 32, 32, 1), 0.01 / np.pi
POINTS, EDGE_POINTS, BATCHES = 1024, 256, 8
RATE, BETAS, EPSILON = 1e-3, (0.9, 0.999), 1e-8


def initial() -> dict[str, np.ndarray]:
    """Parameters under the names of `network`."""
    shapes: dict[str, tuple[int, ...]] = {}
    for number, (near, far) in enumerate(itertools.pairwise(SIZES)):
        shapes |= {f"layers.{number}.weight": (far, near), f"layers.{number}.bias": (far,)}
    return drawn(shapes)


def batches() -> tuple[np.ndarray, ...]:
    """Places and times inside, x and t (BATCHES, POINTS, 1); those at the edge (BATCHES, EDGE_POINTS, 2); u there.

    At the beginning u is -sin(pi x); at x = -1 and x = 1 it stays zero.
    """
    generator = np.random.default_rng(7)
    x = generator.uniform(-1, 1, (BATCHES, POINTS, 1))
    t = generator.uniform(0, 1, (BATCHES, POINTS, 1))
    edge = np.stack(
        [generator.uniform(-1, 1, (BATCHES, EDGE_POINTS)), generator.uniform(0, 1, (BATCHES, EDGE_POINTS))], -1
    )
    half = EDGE_POINTS // 2
    edge[:, :half, 1] = 0
    edge[:, half:, 0] = np.sign(edge[:, half:, 0])
    wanted = np.where(edge[..., 1] == 0, -np.sin(np.pi * edge[..., 0]), 0)[..., None]
    return tuple(part.astype(np.float32) for part in (x, t, edge, wanted))
