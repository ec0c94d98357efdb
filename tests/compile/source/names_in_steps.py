"""The names network in small named steps, for tests of the readable source."""

from __future__ import annotations

import numpy as np

import glassgrad as gg


def names_loss(tokens, targets, table, w1, b1, gain, shift, w2, b2):
    n = tokens.shape[0]
    embedded = table[tokens]
    joined = embedded.view(n, -1)
    product = joined @ w1
    before = product + b1
    before_sum = before.sum(0, keepdim=True)
    mean = before_sum * (1 / n)
    centred = before - mean
    squares = centred**2
    squares_sum = squares.sum(0, keepdim=True)
    variance = squares_sum * (1 / (n - 1))
    inverse = (variance + 1e-5) ** -0.5
    normal = centred * inverse
    scaled = gain * normal
    shifted = scaled + shift
    hidden = shifted.tanh()
    scores = hidden @ w2
    logits = scores + b2
    top = logits.max(1, keepdim=True).values
    lowered = logits - top
    counts = lowered.exp()
    total = counts.sum(1, keepdim=True)
    share = total**-1
    probabilities = counts * share
    logs = probabilities.log()
    picked = logs[gg.arange(n), targets]
    loss = -picked.mean()
    return loss  # noqa: RET504 - the last step has a name as well


STEPS = (
    "embedded", "joined", "product", "before", "before_sum", "mean", "centred", "squares", "squares_sum", "variance",
    "inverse", "normal", "scaled", "shifted", "hidden", "scores", "logits", "top", "lowered", "counts", "total",
    "share", "probabilities", "logs", "picked", "loss",
)  # fmt: skip  # a table
PARAMETERS = ("table", "w1", "b1", "gain", "shift", "w2", "b2")


def arguments(dtype=np.float64, batch=32, width=16):
    rng = np.random.default_rng(12)
    shapes = ((27, 4), (12, width), (width,), (1, width), (1, width), (width, 27), (27,))
    drawn = [gg.tensor(rng.normal(size=shape).astype(dtype) * 0.5, requires_grad=True) for shape in shapes]
    return [gg.tensor(rng.integers(0, 27, (batch, 3))), gg.tensor(rng.integers(0, 27, batch)), *drawn]
