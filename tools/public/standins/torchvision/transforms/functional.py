"""Functions on pictures."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from PIL import Image

BILINEAR = Image.Resampling.BILINEAR


def to_tensor(pic: Any) -> Any:
    """Return channels first in [0, 1]."""
    values = np.asarray(pic)
    values = values[:, :, None] if values.ndim == 2 else values
    values = np.ascontiguousarray(values.transpose(2, 0, 1))
    return torch.from_numpy(values.astype(np.float32) / 255 if values.dtype == np.uint8 else values)


def to_pil_image(pic: Any, mode: Any = None) -> Any:
    """Return a picture from channels first, or from an array of channels last."""
    values = pic.detach().numpy().transpose(1, 2, 0) if hasattr(pic, "detach") else np.asarray(pic)
    if values.dtype != np.uint8:
        values = (values * 255).clip(0, 255).astype(np.uint8)
    return Image.fromarray(values[:, :, 0] if values.ndim == 3 and values.shape[2] == 1 else values)


def normalize(tensor: Any, mean: Any, std: Any, inplace: bool = False) -> Any:
    """Subtract the mean of each channel and divide by its deviation."""
    mean, std = (torch.tensor(one, dtype=tensor.dtype).reshape(-1, 1, 1) for one in (mean, std))
    return (tensor - mean) / std


def resized(pic: Any, size: tuple[int, int], way: Any = BILINEAR) -> Any:
    """Return a picture, or a tensor, in another size (height, width)."""
    if hasattr(pic, "detach"):
        batch = pic.unsqueeze(0) if pic.dim() == 3 else pic
        found = torch.nn.functional.interpolate(batch, size=size, mode="bilinear", align_corners=False)
        return found.squeeze(0) if pic.dim() == 3 else found
    return pic.resize((size[1], size[0]), BILINEAR)


def height_width(pic: Any) -> tuple[int, int]:
    """Return the height and the width."""
    return tuple(pic.shape[-2:]) if hasattr(pic, "detach") else (pic.height, pic.width)


def resize(img: Any, size: Any, interpolation: Any = BILINEAR, **_options: Any) -> Any:
    """Resize to (height, width), or the smaller side to one number."""
    if not isinstance(size, int):
        size = tuple(size)
        return resized(img, (size[0], size[-1]))
    height, width = height_width(img)
    scale = size / min(height, width)
    return resized(img, (round(height * scale), round(width * scale)))


def crop(img: Any, top: int, left: int, height: int, width: int) -> Any:
    """Cut a rectangle."""
    if hasattr(img, "detach"):
        return img[..., top : top + height, left : left + width]
    return img.crop((left, top, left + width, top + height))


def hflip(img: Any) -> Any:
    """Mirror left and right."""
    return img.flip(-1) if hasattr(img, "detach") else img.transpose(Image.Transpose.FLIP_LEFT_RIGHT)


def pad(img: Any, padding: Any, fill: Any = 0, padding_mode: str = "constant") -> Any:
    """Add a frame."""
    one = [padding] * 4 if isinstance(padding, int) else [*padding, *padding][:4]
    if hasattr(img, "detach"):
        return torch.nn.functional.pad(img, (one[0], one[2], one[1], one[3]), value=fill)
    found = Image.new(img.mode, (img.width + one[0] + one[2], img.height + one[1] + one[3]), fill)
    found.paste(img, (one[0], one[1]))
    return found


def rotate(img: Any, angle: float, **_options: Any) -> Any:
    """Turn a picture."""
    return img.rotate(angle)
