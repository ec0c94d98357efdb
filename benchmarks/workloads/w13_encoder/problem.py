"""The one initial state and the one series of batches that every peer of W13 starts from."""

from __future__ import annotations

import numpy as np

from benchmarks.workloads._images import drawn

VOCABULARY, WIDTH, HEADS, INNER, LAYERS, PLACES, CLASSES = 1_000, 256, 8, 1_024, 4, 128, 10
BATCH, BATCHES = 16, 8
DROPOUT, NORM_EPSILON = 0.1, 1e-5
RATE, BETAS, EPSILON = 1e-4, (0.9, 0.999), 1e-8
KINDS = (("weight", 2), ("bias", 1))
LINEARS = (("self_attn.out_proj", WIDTH, WIDTH), ("linear1", WIDTH, INNER), ("linear2", INNER, WIDTH))


def initial() -> dict[str, np.ndarray]:
    """Parameters under the names of `network`, which are those of `nn.TransformerEncoder`."""
    shapes: dict[str, tuple[int, ...]] = {"tokens.weight": (VOCABULARY, WIDTH), "positions.weight": (PLACES, WIDTH)}
    for layer in range(LAYERS):
        name = f"encoder.layers.{layer}"
        shapes |= {f"{name}.self_attn.in_proj_{kind}": (3 * WIDTH, WIDTH)[:count] for kind, count in KINDS}
        for linear, near, far in LINEARS:
            shapes |= {f"{name}.{linear}.weight": (far, near), f"{name}.{linear}.bias": (far,)}
        for norm in ("norm1", "norm2"):
            shapes |= {f"{name}.{norm}.weight": (WIDTH,), f"{name}.{norm}.bias": (WIDTH,)}
    return drawn(shapes | {"head.weight": (CLASSES, WIDTH), "head.bias": (CLASSES,)})


def batches() -> tuple[np.ndarray, np.ndarray]:
    """Tokens (BATCHES, BATCH, PLACES), int64, a tenth of them from the label's own hundred words; labels."""
    generator = np.random.default_rng(7)
    labels = generator.integers(0, CLASSES, (BATCHES, BATCH))
    tokens = generator.integers(0, VOCABULARY, (BATCHES, BATCH, PLACES))
    own = 100 * labels[..., None] + tokens % 100
    return np.where(generator.random(tokens.shape) < 0.1, own, tokens), labels
