"""Gradients of large weights from few places, on any number of threads."""

from __future__ import annotations

import numpy as np
import pytest

from glassgrad.compile.llvm.module.target import host
from glassgrad.compile.plan.weight_parts import parts_of
from tests.compile.graphs import Builder, lower
from tests.thinning import covering

# images, channels, outputs, size, kernel, more parameters
CASES = {
    "3x3": (2, 37, 30, (4, 4), (3, 3), {"padding": ((1, 1), (1, 1))}),
    "4x4, stride 2": (4, 20, 24, (4, 4), (4, 4), {"stride": (2, 2), "padding": ((1, 1), (1, 1))}),
    "one window": (3, 50, 9, (3, 2), (3, 2), {}),
    "1x1": (2, 70, 67, (2, 3), (1, 1), {}),
    "1x1, stride 2": (3, 96, 40, (5, 3), (1, 1), {"stride": (2, 2)}),
    "dilated, uneven borders": (2, 19, 40, (5, 6), (3, 2), {"dilation": (2, 3), "padding": ((1, 0), (0, 2))}),
    "rows of more than a vector": (2, 20, 80, (1, 18), (2, 3), {"padding": ((1, 0), (1, 1))}),
}
WIDTHS = [64, 32, 16]
DEFAULTS = {"stride": (1, 1), "padding": ((0, 0), (0, 0)), "dilation": (1, 1), "groups": 1}


def truth(x, g, kernel, params):
    """The gradient of the weight, tap by tap in float64."""
    x, g = x.astype(np.float64), g.astype(np.float64)
    padded = np.pad(x, ((0, 0), (0, 0), *params["padding"]))
    found = np.zeros((g.shape[1], x.shape[1], *kernel))
    for i, j in np.ndindex(*kernel):
        at = [
            np.s_[tap * apart : tap * apart + step * (count - 1) + 1 : step]
            for tap, apart, step, count in zip((i, j), params["dilation"], params["stride"], g.shape[2:], strict=True)
        ]
        found[:, :, i, j] = np.einsum("nohw,nchw->oc", g, padded[:, :, at[0], at[1]])
    return found


@pytest.mark.parametrize(("name", "dtype", "width"), covering(list(CASES), [np.float32, np.float64], WIDTHS))
def test_large_weights_agree_with_float64_on_any_number_of_threads(name, dtype, width, monkeypatch):
    monkeypatch.setattr(host(), "vector_bytes", width)
    n, c, o, size, kernel, given = CASES[name]
    params = {**DEFAULTS, **given}
    reach = [apart * (taps - 1) + 1 for apart, taps in zip(params["dilation"], kernel, strict=True)]
    parts = zip(size, params["padding"], reach, params["stride"], strict=True)
    out = tuple((extent + sum(pair) - far) // step + 1 for extent, pair, far, step in parts)
    rng = np.random.default_rng(9)
    x, g = rng.normal(size=(n, c, *size)).astype(dtype), rng.normal(size=(n, o, *out)).astype(dtype)
    b = Builder(dtype)
    graph = b.build(b("conv2d_weight", b.input(*x.shape), b.input(*g.shape), kernel=kernel, **params))
    want, found = truth(x, g, kernel, params), []
    for threads in (1, 2, 3):
        step = lower(graph, threads)
        assert all(row.kind != "host" for row in step.explain())
        found.append(step(x, g)[0])
        assert np.abs(found[-1] - want).max() / np.sqrt((want**2).mean()) < 20 * np.finfo(dtype).eps
    assert found[0].tobytes() == found[1].tobytes() == found[2].tobytes()


def test_large_weights_have_few_parts():
    # images, elements of the weight: a ResNet's last and first layers
    assert parts_of(32, 512 * 512 * 9) == 4
    assert parts_of(32, 64 * 64 * 9) == 16
    assert parts_of(3, 64 * 64 * 9) == 3
