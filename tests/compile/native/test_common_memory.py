"""Kernels of eager mode keep intermediate values in memory that they share in turn."""

from __future__ import annotations

import threading

import numpy as np
import pytest

pytest.importorskip("llvmlite", reason="memory is shared by native kernels")

from glassgrad.compile.eager_kernel import Kernel, kernel_for
from glassgrad.compile.native.common_memory import COMMON, CommonMemory

SETTINGS = {"stride": (1, 1), "padding": ((1, 1), (1, 1)), "dilation": (1, 1), "groups": 1}


def weight_kernel(channels: int) -> tuple[Kernel, np.ndarray, np.ndarray, np.ndarray]:
    """A kernel that sums in parts, with its operands and what it should return."""
    rng = np.random.default_rng(channels)
    x, g = rng.normal(size=(8, channels, 6, 6)), rng.normal(size=(8, 5, 6, 6))
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (2, 3))
    types = [(x.shape, x.dtype), (g.shape, g.dtype)]
    kernel = kernel_for("conv2d_weight", types, (5, channels, 3, 3), {"kernel": (3, 3), **SETTINGS}, 1)
    assert kernel is not None
    return kernel, x, g, np.einsum("nchwij,nohw->ocij", windows, g)


def test_kernels_have_one_memory():
    small, large = weight_kernel(2), weight_kernel(7)
    for kernel, x, g, expected in (small, large, small):
        np.testing.assert_allclose(kernel(x, g), expected, rtol=1e-9, atol=1e-9)
    steps = small[0]._step, large[0]._step
    assert 0 < steps[0].size < steps[1].size
    assert steps[0].memory is steps[1].memory is COMMON.memory
    assert COMMON.memory.nbytes >= steps[1].size


def test_a_second_thread_does_not_wait_for_it():
    kernel, x, g, expected = weight_kernel(3)
    kernel(x, g)
    found = []
    with COMMON.lent(kernel._step.size) as taken:
        thread = threading.Thread(target=lambda: found.append((kernel(x, g), kernel._step.memory)))
        thread.start()
        thread.join(60)
    (result, used) = found[0]
    assert used is not taken
    np.testing.assert_allclose(result, expected, rtol=1e-9, atol=1e-9)
    kernel(x, g)
    assert kernel._step.memory is COMMON.memory


def test_it_grows_and_stays():
    common = CommonMemory()
    with common.lent(100) as first:
        assert first.nbytes >= 100
    with common.lent(50) as second:
        assert second is first
    with common.lent(1000) as third:
        assert third.nbytes >= 1000
    assert common.memory is third
