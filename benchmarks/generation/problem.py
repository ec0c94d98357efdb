"""A GPT with fixed weights, and numbers that decide on the tokens drawn: every peer draws the same."""

from __future__ import annotations

import numpy as np

TOKENS, CONTEXT, WIDTH, HEADS, LAYERS = 65, 64, 128, 4, 4
TEXT = CONTEXT  # tokens of a text, of which the first is given
TEMPERATURE = 0.8


def shapes() -> dict[str, tuple[int, ...]]:
    """The parameters by their names, in PyTorch's order."""
    width = WIDTH
    found = {"tokens.weight": (TOKENS, width), "positions.weight": (CONTEXT, width)}
    for layer in range(LAYERS):
        parts = {
            "norm1.weight": (width,), "norm1.bias": (width,), "qkv.weight": (3 * width, width),
            "qkv.bias": (3 * width,),
            "out.weight": (width, width), "out.bias": (width,), "norm2.weight": (width,), "norm2.bias": (width,),
            "up.weight": (4 * width, width), "up.bias": (4 * width,), "down.weight": (width, 4 * width),
            "down.bias": (width,),
        }  # fmt: skip  # a table
        found |= {f"blocks.{layer}.{name}": shape for name, shape in parts.items()}
    return found | {"norm.weight": (width,), "norm.bias": (width,), "head.weight": (TOKENS, width)}


def initial() -> dict[str, np.ndarray]:
    """Weights large enough that the tokens read before matter."""
    generator = np.random.default_rng(1)
    found = {}
    for name, shape in shapes().items():
        centre = 1.0 if name.endswith(("norm1.weight", "norm2.weight", "norm.weight")) else 0.0
        found[name] = (centre + 0.08 * generator.standard_normal(shape)).astype(np.float32)
    return found


def prompt(number: int) -> int:
    """The first token of a text."""
    return number * 7 % TOKENS


def chances(number: int) -> np.ndarray:
    """Return the numbers that decide on its other tokens."""
    return np.random.default_rng(number).random(TEXT - 1)


def checksum(text: np.ndarray) -> float:
    """Return one number for a text, which differs between texts that differ in one place."""
    return float((text * np.arange(1, len(text) + 1)).sum())
