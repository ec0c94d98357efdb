"""The one initial state and the one series of batches that every peer of W3 starts from."""

from __future__ import annotations

import numpy as np

VOCABULARY, CONTEXT, WIDTH, HEADS, LAYERS = 65, 64, 128, 4, 4
BATCH, BATCHES = 12, 64
RATE, BETAS, EPSILON, DECAY = 1e-3, (0.9, 0.99), 1e-8, 0.1
NORM_EPSILON = 1e-5


def initial() -> dict[str, np.ndarray]:
    """Parameters under the names of the PyTorch peer's modules; weights are (outputs, inputs)."""
    generator = np.random.default_rng(2024)

    def normal(*shape: int, scale: float = 0.02) -> np.ndarray:
        return (scale * generator.standard_normal(shape)).astype(np.float32)

    def norm(name: str) -> dict[str, np.ndarray]:
        return {f"{name}.weight": np.ones(WIDTH, np.float32), f"{name}.bias": np.zeros(WIDTH, np.float32)}

    def linear(name: str, inputs: int, outputs: int, scale: float = 0.02) -> dict[str, np.ndarray]:
        return {f"{name}.weight": normal(outputs, inputs, scale=scale), f"{name}.bias": np.zeros(outputs, np.float32)}

    state = {"tokens.weight": normal(VOCABULARY, WIDTH), "positions.weight": normal(CONTEXT, WIDTH)}
    into_stream = 0.02 / np.sqrt(2 * LAYERS)
    for layer in range(LAYERS):
        name = f"blocks.{layer}"
        state |= norm(f"{name}.norm1") | linear(f"{name}.qkv", WIDTH, 3 * WIDTH)
        state |= linear(f"{name}.out", WIDTH, WIDTH, into_stream) | norm(f"{name}.norm2")
        state |= linear(f"{name}.up", WIDTH, 4 * WIDTH) | linear(f"{name}.down", 4 * WIDTH, WIDTH, into_stream)
    return state | norm("norm") | {"head.weight": normal(VOCABULARY, WIDTH)}


def batches() -> tuple[np.ndarray, np.ndarray]:
    """Tokens (BATCHES, 12, 64) and the tokens one place on, int64, from a random Markov chain that can be learnt."""
    generator = np.random.default_rng(7)
    chain = generator.dirichlet(np.full(VOCABULARY, 0.05), VOCABULARY).cumsum(axis=1)
    text = np.zeros((BATCHES * BATCH, CONTEXT + 1), np.int64)
    text[:, 0] = generator.integers(0, VOCABULARY, len(text))
    for place in range(CONTEXT):
        draws = generator.random((len(text), 1))
        text[:, place + 1] = np.minimum((chain[text[:, place]] < draws).sum(axis=1), VOCABULARY - 1)
    text = text.reshape(BATCHES, BATCH, CONTEXT + 1)
    return np.ascontiguousarray(text[..., :-1]), np.ascontiguousarray(text[..., 1:])
