"""Normalisations of nearly constant rows in half precision: 1 / std**3 exceeds 65504, their gradients do not."""

from __future__ import annotations

import numpy as np
import pytest

import glassgrad as gg
from glassgrad.nn import functional as F

NORMS = {
    "layer": lambda x: F.layer_norm(x, x.shape[-1:]),
    "rms": lambda x: F.rms_norm(x, x.shape[-1:], eps=1e-5),
    "group": lambda x: F.group_norm(x, 1),
    "batch": lambda x: F.batch_norm(x, None, None, training=True),
}
# Far fewer digits are left of values that lie close together; the means differ by the last of them.
ROWS = {
    "one wide": np.linspace(-2, 2, 8)[:, None],
    "constant": np.zeros((4, 6)),
    "close together": np.linspace(-3e-3, 3e-3, 24).reshape(4, 6)[:, ::-1],
}


@pytest.mark.parametrize("backend", ["eager", "numpy", "llvm"])
@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("norm", NORMS)
def test_values_and_gradients_are_rounded_once(norm, rows, backend):
    values = ROWS[rows].astype(np.float16)
    weight = np.random.default_rng(0).normal(size=values.shape).astype(np.float32)

    def both(x):
        y = NORMS[norm](x)
        return y.detach(), gg.autograd.grad((y.float() * gg.tensor(weight)).sum(), [x])[0]

    run = both if backend == "eager" else gg.compile(both, backend=backend, strict=True)
    found = run(gg.tensor(values, requires_grad=True))
    # The gradient of y, which is float16, is one too: two roundings for the gradient of x.
    for one, truth in zip(found, both(gg.tensor(values.astype(np.float64), requires_grad=True)), strict=True):
        assert one.dtype == gg.float16
        np.testing.assert_allclose(
            one.numpy(), truth.numpy(), rtol=1e-3, atol=1e-3 * max(np.abs(truth.numpy()).max(), 0.1)
        )
