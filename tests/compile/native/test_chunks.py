"""One native call around a kernel for one chunk equals the kernel chunk by chunk, with any number of shares."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from glassgrad.ops import elementwise as ew
from glassgrad.ops.reduce import sum_p

pytest.importorskip("llvmlite", reason="native code needs llvmlite")

from glassgrad.compile import eager_kernel

ROWS, WIDTH, CHUNKS = 3, 7, 5


def formula(x, scale, weight):
    """Rows against their own mean and length, which are values between kernels; and a sum over the rows."""
    centred = x - sum_p(x, axis=(1,), keepdims=True) * (1 / WIDTH)
    normal = centred * ew.rsqrt(sum_p(centred * centred, axis=(1,), keepdims=True) + 1.0)
    return normal * weight * scale, sum_p(normal, axis=(0,), keepdims=False)


def expected(x, scale, weight):
    centred = x - x.mean(axis=1, keepdims=True)
    normal = centred / np.sqrt((centred**2).sum(axis=1, keepdims=True) + 1)
    return normal * weight * scale, normal.reshape(CHUNKS, ROWS, WIDTH).sum(axis=1)


@pytest.fixture(scope="module", params=[np.float32, np.float64])
def kernel(request):
    dtype = np.dtype(request.param)
    types = (((ROWS, WIDTH), dtype), ((ROWS, 1), dtype), ((WIDTH,), dtype))
    return dtype, eager_kernel.kernel_for(formula, types, (), {}, 1)


def run(kernel, dtype, shares, seed=0):
    rng = np.random.default_rng(seed)
    given = [rng.standard_normal(shape) for shape in ((ROWS * CHUNKS, WIDTH), (ROWS * CHUNKS, 1), (WIDTH,))]
    arrays = [one.astype(dtype) for one in given]
    y, sums = np.full((ROWS * CHUNKS, WIDTH), np.nan, dtype), np.full((CHUNKS, WIDTH), np.nan, dtype)
    steps = [ROWS * WIDTH * dtype.itemsize, ROWS * dtype.itemsize, 0, ROWS * WIDTH * dtype.itemsize, sums.strides[0]]
    kernel.along([*arrays, y, sums], steps, CHUNKS, shares)
    tolerance = 2e-5 if dtype == np.float32 else 1e-12
    for found, wanted in zip((y, sums), expected(*given), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=tolerance, atol=tolerance)
    return y.tobytes() + sums.tobytes()


@pytest.mark.parametrize("shares", [1, 2, 3])
def test_chunks_are_computed_at_their_places(kernel, shares):
    dtype, code = kernel
    assert run(code, dtype, shares) == run(code, dtype, 1)


def test_no_chunks_write_nothing(kernel):
    dtype, code = kernel
    arrays = [np.ones(shape, dtype) for shape in ((0, WIDTH), (0, 1), (WIDTH,), (0, WIDTH), (0, WIDTH))]
    code.along(arrays, [0] * 5, 0, 2)
    np.testing.assert_array_equal(arrays[2], 1)


def test_threads_of_python_may_run_it_at_the_same_time(kernel):
    dtype, code = kernel
    failed = []

    def work(seed):
        try:
            for _ in range(30):
                run(code, dtype, 2, seed)
        except AssertionError as error:
            failed.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert not failed


def test_arrays_of_another_number_are_refused(kernel):
    dtype, code = kernel
    with pytest.raises(ValueError, match="zip"):
        code.along([np.ones((ROWS, WIDTH), dtype)], [0], 1, 1)
