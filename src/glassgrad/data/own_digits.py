"""Read a user's digits: a folder with pictures of each, or arrays in one of NumPy's files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from glassgrad import errors
from glassgrad.data.files import no_directory
from glassgrad.data.images import CLASSES, ImageData
from glassgrad.data.numpy_files import read_arrays
from glassgrad.data.pictures import read_digit

Array = Any  # np.ndarray

_SIZE = (8, 8)
_ASIDE = 5
"""Every fifth picture of a class is for testing if the data do not name the test pictures."""
_PICTURES = frozenset({".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".tif", ".tiff", ".pgm", ".npy"})
# The names of the four arrays of a file, or of two without test data.
_NAMES = (("x_train", "y_train", "x_test", "y_test"), ("images", "labels"), ("x", "y"))


def brightest_of(size: tuple[int, int]) -> int:
    """Return the value of a white pixel: that of MNIST, or that of the digits of 8 x 8 pixels."""
    return 255 if size[0] > _SIZE[0] else 16


def read_digits(path: str | Path) -> ImageData:
    """Read digits from a folder with subfolders 0 to 9 of pictures, or from a `.npz` file with images and labels.

    Pictures are cut out, scaled to 8 x 8 pixels and centred, as for `glassgrad predict`. A file has `images`
    (n, h, w) and `labels` (n,), or `x_train`, `y_train`, `x_test` and `y_test`; images keep their size.

    Raises:
        InputError: if the path is neither, or something in it is not a digit.

    Example:
        >>> import tempfile
        >>> file = tempfile.mkdtemp() + "/own.npz"
        >>> np.savez(file, images=np.random.rand(50, 12, 12), labels=np.arange(50) % 10)
        >>> read_digits(file).train_images.shape
        (40, 12, 12)
    """
    path = Path(path)
    if path.suffix == ".npz":
        return _from_arrays(path)
    if not path.is_dir():
        raise errors.DIGITS_NOT_FOUND(path=path, reason=no_directory(path))
    pictures = [(file, digit) for digit in range(CLASSES) for file in _pictures(path / str(digit))]
    if not pictures:
        raise errors.DIGITS_NOT_FOUND(path=path, reason="no subfolder 0 to 9 holds a picture")
    images = np.stack([read_digit(file, _SIZE, brightest_of(_SIZE)) for file, _ in pictures])
    return _parted(images.round().astype(np.uint8), np.array([digit for _, digit in pictures]), path)


def _pictures(folder: Path) -> list[Path]:
    files = folder.iterdir() if folder.is_dir() else ()
    return sorted(file for file in files if file.suffix.lower() in _PICTURES and not file.name.startswith("."))


def _from_arrays(path: Path) -> ImageData:
    try:
        found = read_arrays(path)
    except (OSError, ValueError) as error:
        reason = "there is no such file" if not path.exists() else error
        raise errors.DIGITS_NOT_FOUND(path=path, reason=reason) from None
    arrays: Mapping[str, Array] = found if isinstance(found, dict) else {}
    names = next((names for names in _NAMES if arrays.keys() >= set(names)), None)
    if names is None:
        raise errors.DIGITS_NOT_FOUND(path=path, reason=f"it holds {', '.join(sorted(arrays)) or 'nothing'}")
    parts = [arrays[name] for name in names]
    for images, labels in zip(parts[::2], parts[1::2], strict=True):
        _check(images, labels, path)
    size = parts[0].shape[1:]
    if parts[-2].shape[1:] != size:
        raise errors.IDX_SIZES(path=path, train=size, test=parts[-2].shape[1:])
    highest = max(float(images.max()) for images in parts[::2]) or 1.0
    scale = brightest_of(size) / highest
    images = [(one.astype(np.float64) * scale).round().astype(np.uint8) for one in parts[::2]]
    labels = [one.astype(np.int64) for one in parts[1::2]]
    if len(images) == 1:
        return _parted(images[0], labels[0], path)
    return ImageData(images[0], labels[0], images[1], labels[1], str(path), brightest_of(size))


def _check(images: Array, labels: Array, path: Path) -> None:
    fits = images.ndim == 3 and images.size and labels.shape == images.shape[:1]
    if not fits or images.dtype.kind not in "buif" or labels.dtype.kind not in "iu":
        raise errors.DIGITS_SHAPES(
            path=path, images=f"{images.dtype}{list(images.shape)}", labels=f"{labels.dtype}{list(labels.shape)}"
        )
    if not np.isfinite(images).all() or images.min() < 0:
        raise errors.DIGITS_RANGE(path=path)
    wrong = np.flatnonzero((labels < 0) | (labels >= CLASSES))
    if len(wrong):
        raise errors.IDX_LABEL(path=path, given=int(labels[wrong[0]]), place=int(wrong[0]), last=CLASSES - 1)


def _parted(images: Array, labels: Array, path: Path) -> ImageData:
    """Put each fifth image of every class aside for testing."""
    places = np.zeros(len(labels), np.int64)  # index among the images of the same class
    for digit in range(CLASSES):
        own = labels == digit
        places[own] = np.arange(own.sum())
    aside = places % _ASIDE == _ASIDE - 1
    if not aside.any():
        raise errors.IDX_TOO_FEW(path=path, count=len(labels), least=f"{_ASIDE} of one digit")
    source, brightest = str(path), brightest_of(images.shape[1:])
    labels = labels.astype(np.int64)
    return ImageData(images[~aside], labels[~aside], images[aside], labels[aside], source, brightest)
