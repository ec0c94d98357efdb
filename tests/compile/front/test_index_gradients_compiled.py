"""Gradients that are known numbers during tracing, such as those of a sum, through ops whose index is an argument."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import glassgrad as gg
from glassgrad import nn
from glassgrad.nn import functional as F

OPS = {
    "rows": lambda w, i: w[i],
    "elements": lambda w, i: w[i, i],
    "behind a slice": lambda w, i: w[:, i],
    "index_select": lambda w, i: w.index_select(1, i),
    "take": lambda w, i: gg.take(w, i, axis=0),
    "gather": lambda w, i: w.gather(0, i.reshape(1, 3)),
    "take_along_dim": lambda w, i: gg.take_along_dim(w, i.reshape(3, 1), 1),
    "embedding": lambda w, i: F.embedding(i, w),
    "scatter": lambda w, i: gg.zeros(3, 3).scatter(0, i.reshape(1, 3), w),
    "scatter_add": lambda w, i: gg.zeros(3, 3).scatter_add(0, i.reshape(1, 3), w),
    "index_add": lambda w, i: gg.zeros(3, 3).index_add(0, i, w),
    "masked_fill": lambda w, i: w.masked_fill(i > 1, 0.0),
    "where": lambda w, i: gg.where(i > 1, w, 0 * w),
    "nll_loss": F.nll_loss,
    "cross_entropy": F.cross_entropy,
    "repeat": lambda w, i: w[i][i],
    "multiply": lambda w, i: w * i,
    "written": lambda w, i: gg.zeros(3, 3).index_put((i,), w) if hasattr(gg.Tensor, "index_put") else w[i],
}


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize("name", OPS)
def test_the_gradient_of_a_sum(name: str, backend: str) -> None:
    index = gg.tensor([2, 0, 2])

    def gradient(compiled: bool) -> Any:
        w = gg.arange(9).float().reshape(3, 3).requires_grad_()

        def step(i: Any) -> Any:
            w.grad = None
            loss = OPS[name](w, i).sum()
            loss.backward()
            return loss

        run = gg.compile(step, backend=backend, strict=True) if compiled else step
        return run(index).item(), w.grad.tolist()

    for found, wanted in zip(gradient(compiled=True), gradient(compiled=False), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


def test_an_embedding_layer() -> None:
    layer = nn.Embedding(4, 2)

    def step(i: Any) -> None:
        layer.zero_grad()
        layer(i).sum().backward()

    gg.compile(step, backend="numpy", strict=True)(gg.tensor([1, 3, 3]))
    assert layer.weight.grad.tolist() == [[0.0, 0.0], [1.0, 1.0], [0.0, 0.0], [2.0, 2.0]]
