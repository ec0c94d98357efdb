"""GPT-2 small (Radford et al. 2019): 124,439,808 parameters; here with a context of 256, which spares 0.6 million."""

from __future__ import annotations

import numpy as np

TOKENS, CONTEXT, WIDTH, HEADS, LAYERS = 50257, 256, 768, 12, 12
BATCH, BATCHES = 1, 4
RATE, BETAS, EPSILON, DECAY = 3e-4, (0.9, 0.95), 1e-8, 0.1


def batches() -> list[tuple[np.ndarray, np.ndarray]]:
    """Tokens and those that follow them."""
    generator = np.random.default_rng(0)
    texts = generator.integers(TOKENS, size=(BATCHES, BATCH, CONTEXT + 1))
    return [(np.ascontiguousarray(text[:, :-1]), np.ascontiguousarray(text[:, 1:])) for text in texts]


def weight(name: str, shape: tuple[int, ...]) -> np.ndarray:
    """The first value of a parameter, by its name."""
    if "norm" in name and name.endswith("weight"):
        return np.ones(shape, np.float32)
    if name.endswith("bias"):
        return np.zeros(shape, np.float32)
    generator = np.random.default_rng([ord(letter) for letter in name])
    return generator.standard_normal(shape, np.float32) * np.float32(0.02)
