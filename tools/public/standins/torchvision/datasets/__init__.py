"""Data sets of a few hundred pictures under torchvision's names: digits, and coloured shapes."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from PIL import Image
from sklearn.datasets import load_digits
from torch.utils.data import Dataset

DIGITS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
COUNTS = {True: 1024, False: 256}
SIDE = 28


@functools.cache
def digits() -> tuple[np.ndarray, np.ndarray]:
    """Return scikit-learn's digits as pictures of 28x28, and their labels, in a mixed order."""
    found = load_digits()
    order = np.random.default_rng(0).permutation(len(found.images))
    small = (found.images[order] * 15.9).astype(np.uint8)
    pictures = [np.asarray(Image.fromarray(one).resize((20, 20), Image.Resampling.BILINEAR)) for one in small]
    return np.pad(np.stack(pictures), ((0, 0), (4, 4), (4, 4))), found.target[order]


@functools.cache
def shapes(classes: int) -> tuple[np.ndarray, np.ndarray]:
    """Return pictures of 32x32x3 whose stripes and colours depend on the class, with noise."""
    rng = np.random.default_rng(1)
    labels = rng.integers(classes, size=sum(COUNTS.values()))
    waves = np.random.default_rng(2).uniform(0.1, 0.8, (classes, 3, 2))
    y, x = np.mgrid[:32, :32]
    phase = rng.uniform(0, 6, (len(labels), 1, 1, 3))
    angle = (
        waves[labels, :, 0][:, None, None] * x[None, :, :, None]
        + waves[labels, :, 1][:, None, None] * y[None, :, :, None]
    )
    pictures = 128 + 90 * np.sin(angle + phase) + rng.normal(0, 20, (len(labels), 32, 32, 3))
    return pictures.clip(0, 255).astype(np.uint8), labels


class VisionDataset(Dataset):
    """Pictures with labels, each through its transform."""

    def __init__(
        self,
        root: Any = None,
        transforms: Any = None,
        transform: Callable[..., Any] | None = None,
        target_transform: Callable[..., Any] | None = None,
    ) -> None:
        self.root, self.transforms, self.transform, self.target_transform = (
            root,
            transforms,
            transform,
            target_transform,
        )

    def taken(self, found: tuple[np.ndarray, np.ndarray], train: bool) -> None:
        """Take the part for training, or the rest."""
        part = slice(COUNTS[True]) if train else slice(COUNTS[True], COUNTS[True] + COUNTS[False])
        self.pictures, self.labels = found[0][part], found[1][part]
        if os.environ.get("PUBLIC_DATA") == "whole":  # as many pictures as the true data set has, each many times
            again = np.arange((60_000 if self.pictures.ndim == 3 else 50_000) if train else 10_000) % COUNTS[train]
            self.pictures, self.labels = self.pictures[again], self.labels[again]

    def __getitem__(self, index: int) -> Any:
        picture: Any = Image.fromarray(self.pictures[index])
        label: Any = int(self.labels[index])
        if self.transform is not None:
            picture = self.transform(picture)
        return picture, label if self.target_transform is None else self.target_transform(label)

    def __len__(self) -> int:
        return len(self.pictures)


class MNIST(VisionDataset):
    """Digits of 28x28."""

    classes = [f"{digit} - {name}" for digit, name in enumerate(DIGITS)]

    def __init__(
        self,
        root: Any = None,
        train: bool = True,
        transform: Any = None,
        target_transform: Any = None,
        download: bool = False,
        **_options: Any,
    ) -> None:
        super().__init__(root, None, transform, target_transform)
        self.train = train
        self.taken(digits(), train)
        self.data = torch.from_numpy(self.pictures.copy())
        self.targets = torch.from_numpy(self.labels.astype(np.int64))
        self.train_data = self.test_data = self.data
        self.train_labels = self.test_labels = self.targets
        self.class_to_idx = {name: at for at, name in enumerate(self.classes)}


class FashionMNIST(MNIST):
    """The same digits under other names."""

    classes = ["T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot"]


class KMNIST(MNIST):
    """The same digits."""


class QMNIST(MNIST):
    """The same digits."""


class EMNIST(MNIST):
    """The same digits, for each split."""

    def __init__(self, root: Any = None, split: str = "digits", train: bool = True, **options: Any) -> None:
        super().__init__(root, train, **options)
        self.split = split


class CIFAR10(VisionDataset):
    """Coloured waves of 32x32 in ten classes."""

    classes = ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"]
    count = 10

    def __init__(
        self,
        root: Any = None,
        train: bool = True,
        transform: Any = None,
        target_transform: Any = None,
        download: bool = False,
    ) -> None:
        super().__init__(root, None, transform, target_transform)
        self.train = train
        self.taken(shapes(self.count), train)
        self.data = self.pictures
        self.targets = self.labels.tolist()
        self.class_to_idx = {name: at for at, name in enumerate(self.classes)}


class CIFAR100(CIFAR10):
    """The same in a hundred classes."""

    classes = [f"class{at}" for at in range(100)]
    count = 100


class SVHN(CIFAR10):
    """The same waves, by split."""

    def __init__(self, root: Any = None, split: str = "train", transform: Any = None, **options: Any) -> None:
        super().__init__(root, split == "train", transform, **options)


class STL10(SVHN):
    """The same waves, by split."""


class FakeData(CIFAR10):
    """The same waves."""

    def __init__(
        self, size: int = 1000, image_size: Any = (3, 32, 32), num_classes: int = 10, transform: Any = None, **_o: Any
    ) -> None:
        super().__init__(None, True, transform)


class ImageFolder(VisionDataset):
    """Pictures of a folder of folders."""

    def __init__(self, root: Any, transform: Any = None, target_transform: Any = None, **_options: Any) -> None:
        from pathlib import Path

        super().__init__(root, None, transform, target_transform)
        self.classes = sorted(path.name for path in Path(root).iterdir() if path.is_dir())
        self.class_to_idx = {name: at for at, name in enumerate(self.classes)}
        self.samples = [
            (str(p), at) for at, name in enumerate(self.classes) for p in sorted((Path(root) / name).iterdir())
        ]
        self.imgs, self.targets = self.samples, [label for _path, label in self.samples]

    def __getitem__(self, index: int) -> Any:
        path, label = self.samples[index]
        picture: Any = Image.open(path).convert("RGB")
        return picture if self.transform is None else self.transform(picture), label

    def __len__(self) -> int:
        return len(self.samples)
