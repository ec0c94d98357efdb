"""Grids of pictures."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from PIL import Image


def make_grid(
    tensor: Any,
    nrow: int = 8,
    padding: int = 2,
    normalize: bool = False,
    value_range: Any = None,
    scale_each: bool = False,
    pad_value: float = 0,
    **_options: Any,
) -> Any:
    """Lay pictures side by side."""
    if isinstance(tensor, list | tuple):
        tensor = torch.stack(list(tensor))
    values = tensor.detach().to(torch.float32).numpy()
    while values.ndim < 4:
        values = values[None]
    values = np.repeat(values, 3, 1) if values.shape[1] == 1 else values
    if normalize:
        low, high = value_range or (float(values.min()), float(values.max()))
        values = (values.clip(low, high) - low) / max(high - low, 1e-5)
    count, channels, height, width = values.shape
    columns = min(nrow, count)
    rows = math.ceil(count / columns)
    grid = np.full(
        (channels, rows * (height + padding) + padding, columns * (width + padding) + padding), pad_value, np.float32
    )
    for at, one in enumerate(values):
        y, x = at // columns * (height + padding) + padding, at % columns * (width + padding) + padding
        grid[:, y : y + height, x : x + width] = one
    return torch.from_numpy(grid)


def save_image(tensor: Any, fp: Any, format: Any = None, **options: Any) -> None:
    """Write pictures as one file."""
    values = make_grid(tensor, **options).numpy().transpose(1, 2, 0)
    Image.fromarray((values * 255 + 0.5).clip(0, 255).astype(np.uint8)).save(fp, format=format)
