"""Data sets ready to train on: scaled, in the shape that layers expect, cut into training and test examples."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from glassgrad.data.download import fetch_mnist
from glassgrad.data.images import ImageData, read_mnist, shipped_digits
from glassgrad.data.names import Examples

Array = np.ndarray


def digits(*, flat: bool = False) -> tuple[Examples, Examples]:
    """Return the 1,797 handwritten digits of 8 x 8 pixels that come with glassgrad, scaled, for training and testing.

    Args:
        flat: images as rows of 64 numbers, for linear layers.

    Returns:
        Training and test examples: inputs (n, 1, 8, 8) or (n, 64) of float32 with mean 0 and standard deviation 1 over
        the training images, targets (n,) of int64. Each can be given to a `DataLoader`.

    Example:
        >>> from glassgrad.utils.data import DataLoader
        >>> train, test = digits(flat=True)
        >>> len(train), len(test)
        (1437, 360)
        >>> images, labels = next(iter(DataLoader(train, batch_size=64)))
        >>> images.shape, images.dtype, labels.dtype
        ((64, 64), dtype('float32'), dtype('int64'))
    """
    return _scaled(shipped_digits(), flat)


def mnist(folder: str | Path | None = None, *, flat: bool = False) -> tuple[Examples, Examples]:
    """Return MNIST's digits of 28 x 28 pixels, scaled like those of `digits`, for training and testing.

    Args:
        folder: where the idx files are, gzipped or not; if only one part is there, its last tenth is for testing. None
            fetches them once into the cache (11 MB) and checks them by SHA-256.
        flat: images as rows of 784 numbers, for linear layers.

    Raises:
        InputError: there are no such files, or no network to fetch them.

    Example:
        >>> train, test = mnist("mnist-folder")  # doctest: +SKIP
        >>> train.inputs.shape  # doctest: +SKIP
        (60000, 1, 28, 28)
    """
    return _scaled(read_mnist(fetch_mnist() if folder is None else folder), flat)


def _scaled(data: ImageData, flat: bool) -> tuple[Examples, Examples]:
    mean, spread = np.float32(data.train_images.mean()), np.float32(max(data.train_images.std(), 1e-6))

    def ready(images: Array, labels: Array) -> Examples:
        scaled = (images.astype(np.float32) - mean) / spread
        return Examples(scaled.reshape(len(scaled), -1) if flat else scaled[:, None], labels)

    return ready(data.train_images, data.train_labels), ready(data.test_images, data.test_labels)


__all__ = ["digits", "mnist"]
