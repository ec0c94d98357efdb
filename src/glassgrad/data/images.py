"""Small grey images of ten classes: MNIST from idx files, and the 8x8 digits that come with the package."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from glassgrad import errors
from glassgrad.data.files import no_directory
from glassgrad.data.idx import read_pair

Array = np.ndarray

CLASSES = 10
IMAGES, LABELS = "images-idx3-ubyte", "labels-idx1-ubyte"

_SET_ASIDE = 10
"""One image in this many, at the end, is for testing if a folder has only one part: 1,000 of 10,000."""


@dataclass(frozen=True)
class ImageData:
    """Images (n, h, w) of uint8 between 0 and `brightest`, and labels (n,) of int64, for training and testing.

    Example:
        >>> import numpy as np
        >>> from glassgrad.data import ImageData
        >>> images, labels = np.zeros((4, 8, 8), np.uint8), np.arange(4)
        >>> ImageData(images, labels, images, labels, "my scans").train_images.shape
        (4, 8, 8)
    """

    train_images: Array
    train_labels: Array
    test_images: Array
    test_labels: Array
    source: str
    brightest: int = 255

    @property
    def size(self) -> tuple[int, int]:
        """Height and width."""
        height, width = self.train_images.shape[1:]
        return int(height), int(width)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the images and labels, independent of the files' form."""
        found = hashlib.sha256()
        for array in (self.train_images, self.train_labels, self.test_images, self.test_labels):
            found.update(f"{array.shape} {array.dtype}".encode())
            found.update(array.tobytes())
        return found.hexdigest()


def shipped_digits() -> ImageData:
    """Return the 1,797 digits that come with the package: 1,437 to train, 360 to test (`digits/ORIGIN.md`).

    Example:
        >>> data = shipped_digits()
        >>> data.train_images.shape, data.test_images.shape
        ((1437, 8, 8), (360, 8, 8))
    """
    folder = Path(__file__).parent / "digits"
    images, labels = read_pair(folder / f"digits-{IMAGES}.gz", folder / f"digits-{LABELS}.gz")
    # In the file's order, which groups images by writer: the last fifth is by other writers than the rest.
    return _cut(images, labels, len(labels) // 5 + 1, "the UCI digits that come with glassgrad", 16)


def read_mnist(folder: str | Path) -> ImageData:
    """Read a folder with MNIST's four idx files under their usual names, gzipped or not.

    If only the files of one part exist, the last tenth of it is for testing. Raises `errors.InputError`.

    Example:
        >>> from glassgrad.data import read_mnist
        >>> images = read_mnist("MNIST/raw")  # doctest: +SKIP
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise errors.IDX_FOLDER(path=folder, reason=no_directory(folder))
    parts = {part: _pair(folder, part) for part in ("train", "t10k")}
    found = [read_pair(*pair) for pair in parts.values() if pair]
    if not found:
        raise errors.IDX_FOLDER(
            path=folder, reason=f"it has no train-{IMAGES} and no t10k-{IMAGES}, with or without .gz"
        )
    if len(found) == 1:
        ((images, labels),) = found
        return _cut(images, labels, len(labels) // _SET_ASIDE, str(folder), 255)
    (train_images, train_labels), (test_images, test_labels) = found
    if train_images.shape[1:] != test_images.shape[1:]:
        raise errors.IDX_SIZES(path=folder, train=train_images.shape[1:], test=test_images.shape[1:])
    return ImageData(train_images, train_labels, test_images, test_labels, str(folder))


def _cut(images: Array, labels: Array, aside: int, source: str, brightest: int) -> ImageData:
    if not aside:
        raise errors.IDX_TOO_FEW(path=source, count=len(labels), least=_SET_ASIDE)
    return ImageData(images[:-aside], labels[:-aside], images[-aside:], labels[-aside:], source, brightest)


def _pair(folder: Path, part: str) -> tuple[Path, Path] | None:
    """The image and the label file of a part; raise if only one of them exists."""
    images, labels = (_file(folder, f"{part}-{kind}") for kind in (IMAGES, LABELS))
    if images and labels:
        return images, labels
    found = images or labels
    if found is not None:
        missing = LABELS if images else IMAGES
        raise errors.IDX_FOLDER(path=folder, reason=f"it has {found.name} but no {part}-{missing}")
    return None


def _file(folder: Path, name: str) -> Path | None:
    return next((path for path in (folder / name, folder / f"{name}.gz") if path.is_file()), None)
