"""Normalisations of rows that hardly vary, in half precision: 1 / std**3 is beyond 65504, their gradients are not."""

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


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("norm", NORMS)
def test_compiled_gradients_stay_in_range(norm, rows, backend):
    values = ROWS[rows].astype(np.float16)
    weight = np.random.default_rng(0).normal(size=values.shape).astype(np.float32)

    def gradient(x):
        loss = (NORMS[norm](x).float() * gg.tensor(weight)).sum()
        return gg.autograd.grad(loss, [x])[0]

    compiled = gg.compile(gradient, backend=backend, strict=True)(gg.tensor(values, requires_grad=True))
    truth = gradient(gg.tensor(values.astype(np.float64), requires_grad=True)).numpy()
    assert compiled.dtype == gg.float16
    np.testing.assert_allclose(compiled.numpy(), truth, rtol=1e-2, atol=1e-2 * max(np.abs(truth).max(), 0.1))
