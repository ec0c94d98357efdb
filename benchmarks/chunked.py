"""The names network in its chunked form: 26 intermediates, each a separate tensor whose gradient can be inspected."""

from __future__ import annotations

from typing import Any

import numpy as np

BATCH, CONTEXT, WIDTH, HIDDEN, CLASSES = 32, 3, 10, 64, 27
COUNT = 26


def parameters(dtype: Any) -> dict[str, np.ndarray[Any, Any]]:
    """The same first weights for every library."""
    rng = np.random.default_rng(2147483647)
    shapes = {
        "C": (CLASSES, WIDTH), "W1": (CONTEXT * WIDTH, HIDDEN), "b1": (HIDDEN,), "W2": (HIDDEN, CLASSES),
        "b2": (CLASSES,), "bngain": (1, HIDDEN), "bnbias": (1, HIDDEN),
    }  # fmt: skip  # a table
    drawn = {name: rng.normal(size=shape) * 0.1 for name, shape in shapes.items()}
    drawn["bngain"] += 1
    drawn["W1"] *= 10 * (5 / 3) / np.sqrt(CONTEXT * WIDTH)
    drawn["C"] *= 10
    return {name: value.astype(dtype) for name, value in drawn.items()}


def forward(p: dict[str, Any], x: Any, y: Any, rows: Any) -> dict[str, Any]:
    """Return every intermediate of the forward pass by name, computed by functions common to PyTorch and glassgrad."""
    n = BATCH
    kept: dict[str, Any] = {}

    def keep(name: str, value: Any) -> Any:
        kept[name] = value
        value.retain_grad()
        return value

    emb = keep("emb", p["C"][x])
    embcat = keep("embcat", emb.view(emb.shape[0], -1))
    hprebn = keep("hprebn", embcat @ p["W1"] + p["b1"])
    bnsum = keep("bnsum", hprebn.sum(0, keepdim=True))
    bnmeani = keep("bnmeani", bnsum * (1 / n))
    bndiff = keep("bndiff", hprebn - bnmeani)
    bndiff2 = keep("bndiff2", bndiff**2)
    bnvarsum = keep("bnvarsum", bndiff2.sum(0, keepdim=True))
    bnvar = keep("bnvar", bnvarsum * (1 / (n - 1)))
    bnvareps = keep("bnvareps", bnvar + 1e-5)
    bnvar_inv = keep("bnvar_inv", bnvareps**-0.5)
    bnraw = keep("bnraw", bndiff * bnvar_inv)
    bnscaled = keep("bnscaled", p["bngain"] * bnraw)
    hpreact = keep("hpreact", bnscaled + p["bnbias"])
    h = keep("h", hpreact.tanh())
    product = keep("product", h @ p["W2"])
    logits = keep("logits", product + p["b2"])
    logit_maxes = keep("logit_maxes", logits.max(1, keepdim=True).values)
    norm_logits = keep("norm_logits", logits - logit_maxes)
    counts = keep("counts", norm_logits.exp())
    counts_sum = keep("counts_sum", counts.sum(1, keepdim=True))
    counts_sum_inv = keep("counts_sum_inv", counts_sum**-1)
    probs = keep("probs", counts * counts_sum_inv)
    logprobs = keep("logprobs", probs.log())
    picked = keep("picked", logprobs[rows, y])
    keep("loss", -picked.mean())
    return kept


def gradients(library: Any, dtype: Any) -> dict[str, np.ndarray[Any, Any]]:
    """Return the gradient of every intermediate and parameter; the argument is the module of PyTorch or glassgrad."""
    rng = np.random.default_rng(42)
    x, y, rows = rng.integers(0, CLASSES, (BATCH, CONTEXT)), rng.integers(0, CLASSES, BATCH), np.arange(BATCH)
    leaves = {name: library.tensor(value, requires_grad=True) for name, value in parameters(dtype).items()}
    kept = forward(leaves, library.tensor(x), library.tensor(y), library.tensor(rows))
    kept["loss"].backward()
    return {name: tensor.grad.numpy() for name, tensor in {**kept, **leaves}.items()}
