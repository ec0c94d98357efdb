"""Points of two classes in the plane that are not linearly separable."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from glassgrad import errors
from glassgrad.data.files import read_text

Array = np.ndarray


@dataclass(frozen=True)
class PlaneData:
    """Points (n, 2) of float32 and their classes (n,) of int64, 0 or 1, for training and testing."""

    train_points: Array
    train_labels: Array
    test_points: Array
    test_labels: Array


def xor(count: int, noise: float, generator: np.random.Generator) -> tuple[Array, Array]:
    """Return points around the corners of a square and whether exactly one of their coordinates is positive.

    `noise` is the standard deviation around the corners (±1, ±1), which are used in turn.

    Example:
        >>> points, labels = xor(4, 0.0, np.random.default_rng(0))
        >>> points.tolist(), labels.tolist()
        ([[-1.0, -1.0], [-1.0, 1.0], [1.0, -1.0], [1.0, 1.0]], [0, 1, 1, 0])
    """
    corner = np.arange(count) % 4
    first, second = corner // 2, corner % 2
    points = np.stack([2.0 * first - 1, 2.0 * second - 1], axis=1)
    return _noisy(points, noise, generator), first ^ second


def moons(count: int, noise: float, generator: np.random.Generator) -> tuple[Array, Array]:
    """Return points along two interleaved half circles, and the half circle of each point.

    The upper one is centred at (0, 0), the lower one at (1, 0.5), both have radius 1; `noise` is the standard deviation
    around them.

    Example:
        >>> points, labels = moons(4, 0.0, np.random.default_rng(0))
        >>> points.round(3).tolist(), labels.tolist()
        ([[1.0, 0.0], [0.0, 0.5], [-1.0, 0.0], [2.0, 0.5]], [0, 1, 0, 1])
    """
    lower = np.arange(count) % 2
    place = np.arange(count) // 2 / max(count // 2 - 1, 1)
    angle = np.pi * np.minimum(place, 1.0)
    upper_points = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    points = np.where(lower[:, None] == 1, np.array([1.0, 0.5]) - upper_points, upper_points)
    return _noisy(points, noise, generator), lower


def _noisy(points: Array, noise: float, generator: np.random.Generator) -> Array:
    return (points + noise * generator.standard_normal(points.shape)).astype(np.float32)


def read_points(given: str) -> list[tuple[float, float]]:
    """Return the point that "x,y" means, or the points of a text file with one per line.

    Raises `errors.InputError` for anything that is not a finite point.

    Example:
        >>> read_points("0.5,-1")
        [(0.5, -1.0)]
    """
    lines = read_text(given, "a text file").splitlines() if Path(given).is_file() else [given]
    return [_point(line) for line in lines if line.strip()]


def _point(text: str) -> tuple[float, float]:
    try:
        first, second = map(float, text.replace(",", " ").split())
    except ValueError:
        raise errors.POINT_UNREADABLE(given=text) from None
    if not (math.isfinite(first) and math.isfinite(second)):
        raise errors.POINT_UNREADABLE(given=text)
    return first, second


SHAPES: dict[str, Callable[[int, float, np.random.Generator], tuple[Array, Array]]] = {"xor": xor, "moons": moons}


def plane_data(shape: str, count: int, noise: float, seed: int) -> PlaneData:
    """Return `count` training points of a shape, and a quarter as many test points."""
    draw = SHAPES[shape]
    train = draw(count, noise, np.random.Generator(np.random.PCG64([seed, 3])))
    test = draw(max(count // 4, 1), noise, np.random.Generator(np.random.PCG64([seed, 4])))
    return PlaneData(*train, *test)
