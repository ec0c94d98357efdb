"""The one initial state and the one series of batches that every peer of W1 starts from."""

from __future__ import annotations

import numpy as np

VOCABULARY, CONTEXT, WIDTH, HIDDEN, BATCH = 27, 3, 10, 200, 32
RATE = 0.1
MOMENTUM, EPSILON = 0.1, 1e-5  # of the running statistics, and of the variance
BATCHES = 256


def initial() -> dict[str, np.ndarray]:
    """Parameters under PyTorch's names for Sequential(Embedding, Flatten, Linear, BatchNorm1d, Tanh, Linear)."""
    generator = np.random.default_rng(2024)
    inputs = CONTEXT * WIDTH
    state = {
        "0.weight": generator.standard_normal((VOCABULARY, WIDTH)),
        "2.weight": generator.standard_normal((HIDDEN, inputs)) / np.sqrt(inputs),
        "2.bias": generator.uniform(-0.1, 0.1, HIDDEN),
        "3.weight": np.ones(HIDDEN),
        "3.bias": np.zeros(HIDDEN),
        "5.weight": generator.standard_normal((VOCABULARY, HIDDEN)) * 0.1 / np.sqrt(HIDDEN),
        "5.bias": np.zeros(VOCABULARY),
    }
    assert sum(value.size for value in state.values()) == 12_297
    return {name: value.astype(np.float32) for name, value in state.items()}


def batches() -> tuple[np.ndarray, np.ndarray]:
    """Contexts (BATCHES, 32, 3) and next characters (BATCHES, 32), int64; half of the next characters can be learnt."""
    generator = np.random.default_rng(7)
    contexts = generator.integers(0, VOCABULARY, (BATCHES, BATCH, CONTEXT))
    rule = contexts @ np.array([1, 5, 11]) % VOCABULARY
    noise = generator.integers(0, VOCABULARY, rule.shape)
    return contexts, np.where(generator.random(rule.shape) < 0.5, rule, noise)
