"""Transforms of pictures under torchvision's names."""

from __future__ import annotations

import random
from collections.abc import Callable
from enum import Enum
from typing import Any

import torch
from PIL import Image

from torchvision.transforms import functional
from torchvision.transforms import functional as F

DRAWS = random.Random(0)  # its own: each library gives the processes of a loader other seeds


class InterpolationMode(Enum):
    """Ways to resize; all are bilinear here."""

    NEAREST = "nearest"
    BILINEAR = "bilinear"
    BICUBIC = "bicubic"


class Compose:
    """One transform after the other."""

    def __init__(self, transforms: Any) -> None:
        self.transforms = transforms

    def __call__(self, value: Any) -> Any:
        for one in self.transforms:
            value = one(value)
        return value


class Lambda:
    """A function of the program."""

    def __init__(self, lambd: Callable[[Any], Any]) -> None:
        self.lambd = lambd

    def __call__(self, value: Any) -> Any:
        return self.lambd(value)


class ToTensor:
    """A picture as numbers in [0, 1], channels first."""

    def __call__(self, value: Any) -> Any:
        return F.to_tensor(value)


class PILToTensor:
    """A picture as bytes, channels first."""

    def __call__(self, value: Any) -> Any:
        return (F.to_tensor(value) * 255).round().to(torch.uint8)


class ConvertImageDtype:
    """Bytes as numbers in [0, 1]."""

    def __init__(self, dtype: Any) -> None:
        self.dtype = dtype

    def __call__(self, value: Any) -> Any:
        return value.to(self.dtype) / 255 if value.dtype == torch.uint8 else value.to(self.dtype)


class ToPILImage:
    """Numbers as a picture."""

    def __init__(self, mode: Any = None) -> None:
        self.mode = mode

    def __call__(self, value: Any) -> Any:
        return F.to_pil_image(value, self.mode)


class Normalize:
    """Mean 0 and deviation 1 by channel."""

    def __init__(self, mean: Any, std: Any, inplace: bool = False) -> None:
        self.mean, self.std = mean, std

    def __call__(self, value: Any) -> Any:
        return F.normalize(value, self.mean, self.std)


class Resize:
    """Another size."""

    def __init__(self, size: Any, interpolation: Any = None, **_options: Any) -> None:
        self.size = size

    def __call__(self, value: Any) -> Any:
        return F.resize(value, self.size)


Scale = Resize


class CenterCrop:
    """The middle."""

    def __init__(self, size: Any) -> None:
        self.size = (size, size) if isinstance(size, int) else tuple(size)

    def place(self, height: int, width: int) -> tuple[int, int]:
        """Return the corner."""
        return (height - self.size[0]) // 2, (width - self.size[1]) // 2

    def __call__(self, value: Any) -> Any:
        return F.crop(value, *self.place(*F.height_width(value)), *self.size)


class RandomCrop(CenterCrop):
    """A part anywhere."""

    def __init__(self, size: Any, padding: Any = None, **_options: Any) -> None:
        super().__init__(size)
        self.padding = padding

    def place(self, height: int, width: int) -> tuple[int, int]:
        """Return the corner."""
        return DRAWS.randint(0, height - self.size[0]), DRAWS.randint(0, width - self.size[1])

    def __call__(self, value: Any) -> Any:
        return super().__call__(F.pad(value, self.padding) if self.padding else value)


class RandomResizedCrop:
    """A part anywhere, resized."""

    def __init__(self, size: Any, scale: Any = (0.08, 1.0), **_options: Any) -> None:
        self.size, self.scale = (size, size) if isinstance(size, int) else tuple(size), scale

    def __call__(self, value: Any) -> Any:
        height, width = F.height_width(value)
        share = DRAWS.uniform(*self.scale) ** 0.5
        part = max(1, int(height * share)), max(1, int(width * share))
        return F.resize(RandomCrop(part)(value), self.size)


class RandomHorizontalFlip:
    """Mirrored, or not."""

    def __init__(self, p: float = 0.5) -> None:
        self.p = p

    def __call__(self, value: Any) -> Any:
        return F.hflip(value) if DRAWS.random() < self.p else value


class RandomVerticalFlip(RandomHorizontalFlip):
    """Upside down, or not."""

    def __call__(self, value: Any) -> Any:
        return value.transpose(Image.Transpose.FLIP_TOP_BOTTOM) if DRAWS.random() < self.p else value


class RandomRotation:
    """Turned."""

    def __init__(self, degrees: Any, **_options: Any) -> None:
        self.degrees = (-degrees, degrees) if isinstance(degrees, int | float) else tuple(degrees)

    def __call__(self, value: Any) -> Any:
        return F.rotate(value, DRAWS.uniform(*self.degrees))


class RandomAffine(RandomRotation):
    """Turned; the rest is left as it is."""


class Grayscale:
    """Without colours."""

    def __init__(self, num_output_channels: int = 1) -> None:
        self.count = num_output_channels

    def __call__(self, value: Any) -> Any:
        grey = value.convert("L")
        return grey if self.count == 1 else Image.merge("RGB", [grey] * 3)


class Pad:
    """With a frame."""

    def __init__(self, padding: Any, fill: Any = 0, padding_mode: str = "constant") -> None:
        self.padding, self.fill = padding, fill

    def __call__(self, value: Any) -> Any:
        return F.pad(value, self.padding, self.fill)


class ColorJitter:
    """As it is."""

    def __init__(self, *_arguments: Any, **_options: Any) -> None:
        pass

    def __call__(self, value: Any) -> Any:
        return value


RandomErasing = RandomGrayscale = GaussianBlur = ColorJitter


class RandomApply:
    """Some transforms, or none."""

    def __init__(self, transforms: Any, p: float = 0.5) -> None:
        self.inner, self.p = Compose(transforms), p

    def __call__(self, value: Any) -> Any:
        return self.inner(value) if DRAWS.random() < self.p else value
