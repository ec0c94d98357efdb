"""Read a digit from a picture file in the form of the data sets: light on dark, cut out, scaled and centred."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from glassgrad import errors
from glassgrad.data.numpy_files import read_arrays
from glassgrad.errors.packages import needed

Array = Any  # np.ndarray

_INK = 0.2
"""A pixel belongs to the digit if it differs from the background by this share of the largest difference."""

_MARGIN = 20 / 28
"""MNIST's digits fill 20 of 28 pixels; those of 8 x 8 pixels reach the edges."""

_SHADES = " .:-=+*#%@"


def read_digit(path: Path, size: tuple[int, int], brightest: int) -> Array:
    """Read a digit, drawn or scanned, as a float32 array (h, w) between 0 and `brightest`.

    The background may be light or dark: it is the colour of most of the edge. The digit is cut out, scaled to the size
    that digits of the data set have, and placed with its centre of mass in the middle. A `.npy` file may hold its
    array.

    Raises:
        InputError: if there is no such file, it is not a picture, or it is empty.
        PackageError: without Pillow, which comes with glassgrad[pictures].
    """
    grey = _grey(path)
    edge = np.concatenate([grey[0], grey[-1], grey[:, 0], grey[:, -1]])
    ink = np.abs(grey - np.median(edge))
    if not ink.max() > 0:
        raise errors.PICTURE_BLANK(path=path)
    if ink.shape == size and ink.max() <= brightest and not np.median(edge):  # already in the form of the data set
        return ink.astype(np.float32)
    ink /= ink.max()
    rows, columns = (np.flatnonzero((ink > _INK).any(axis=axis)) for axis in (1, 0))
    cut = ink[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
    return (_centred(_resized(cut, size), size) * brightest).astype(np.float32)


def _grey(path: Path) -> Array:
    try:
        if path.suffix == ".npy":
            found = read_arrays(path)
            grey = found if isinstance(found, np.ndarray) else np.empty(0)
        else:
            with needed("PIL", "pictures", extra="pictures"):
                from PIL import Image
            with Image.open(path) as picture:
                colour = picture.convert("RGBA")
                grey = np.asarray(Image.alpha_composite(Image.new("RGBA", colour.size, "white"), colour).convert("L"))
    except (OSError, ValueError) as error:
        raise errors.PICTURE_UNREADABLE(path=path, reason=_reason(path, error)) from None
    if grey.ndim != 2 or grey.size == 0 or grey.dtype.kind not in "buif" or not np.isfinite(grey).all():
        raise errors.PICTURE_UNREADABLE(path=path, reason=f"its shape is {grey.shape}, its dtype {grey.dtype}")
    return grey.astype(np.float64)


def _reason(path: Path, error: Exception) -> str:
    if not path.exists():
        return "there is no such file"
    return "it is a directory" if path.is_dir() else " ".join(str(error).split())


def _resized(cut: Array, size: tuple[int, int]) -> Array:
    """Scale to the size of a digit in a picture of `size`, each pixel the mean of the area that it covers."""
    share = _MARGIN if min(size) > 8 else 1.0
    scale = min(share * size[0] / cut.shape[0], share * size[1] / cut.shape[1])
    height, width = (max(1, round(scale * length)) for length in cut.shape)
    return _means(height, cut.shape[0]) @ cut @ _means(width, cut.shape[1]).T


def _means(count: int, length: int) -> Array:
    """Return the matrix (count, length) that takes means over `count` equal stretches of `length` pixels."""
    edges = np.linspace(0, length, count + 1)
    places = np.arange(length)
    covered = np.minimum(edges[1:, None], places + 1) - np.maximum(edges[:-1, None], places)
    weights = np.clip(covered, 0, None)
    return weights / weights.sum(axis=1, keepdims=True)


def _centred(digit: Array, size: tuple[int, int]) -> Array:
    """Put a digit on an empty picture with its centre of mass in the middle, as far as it stays inside."""
    picture = np.zeros(size)
    begin = []
    for axis in (0, 1):
        weight = digit.sum(axis=1 - axis)
        middle = (weight * (np.arange(len(weight)) + 0.5)).sum() / weight.sum()
        begin.append(int(np.clip(round(size[axis] / 2 - middle), 0, size[axis] - digit.shape[axis])))
    picture[begin[0] : begin[0] + digit.shape[0], begin[1] : begin[1] + digit.shape[1]] = digit
    return picture / max(picture.max(), 1e-12)


def as_characters(picture: Array) -> Iterator[str]:
    """Yield the rows of a picture between 0 and 1 as text, two characters a pixel.

    Example:
        >>> list(as_characters(np.array([[0.0, 1.0]])))
        ['  @@']
    """
    for row in np.clip(picture, 0, 1):
        yield "".join(2 * _SHADES[round(float(value) * (len(_SHADES) - 1))] for value in row)


__all__ = ["as_characters", "read_digit"]
