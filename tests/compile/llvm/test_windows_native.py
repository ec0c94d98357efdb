"""Convolutions, poolings and their transposes in native code, at sizes with whole and partial vectors."""

from __future__ import annotations

import numpy as np
import pytest

from glassgrad.ops.core import REGISTRY
from tests.compile.graphs import Builder, agree, interpret, lower
from tests.thinning import covering

# x, w, parameters
CONVOLUTIONS = {
    "3x3": ((5, 6, 14, 14), (9, 6, 3, 3), {"padding": ((1, 1), (1, 1))}),
    "two vectors": ((2, 5, 6, 32), (17, 5, 3, 3), {"padding": ((1, 1), (1, 1))}),
    "odd lines": ((3, 3, 7, 15), (5, 3, 2, 3), {"padding": ((1, 0), (2, 1)), "dilation": (1, 1)}),
    "three vectors, dilated": ((2, 3, 9, 44), (33, 3, 3, 3), {"padding": ((2, 1), (2, 2)), "dilation": (2, 2)}),
    "one channel": ((3, 1, 28, 28), (32, 1, 3, 3), {"padding": ((1, 1), (1, 1))}),
    "strided": ((2, 3, 15, 17), (70, 3, 3, 2), {"stride": (2, 2), "padding": ((1, 0), (0, 2))}),
    "dilated": ((2, 4, 20, 19), (5, 4, 3, 3), {"dilation": (2, 3)}),
    "groups": ((2, 6, 9, 33), (8, 3, 2, 2), {"groups": 2}),
    "depthwise": ((2, 5, 9, 9), (5, 1, 3, 3), {"groups": 5, "padding": ((1, 1), (1, 1))}),
    "depthwise, strided": ((4, 3, 9, 34), (3, 1, 3, 5), {"groups": 3, "stride": (2, 2), "padding": ((1, 1), (2, 1))}),
    "depthwise, dilated": ((3, 4, 11, 20), (4, 1, 2, 3), {"groups": 4, "stride": (1, 3), "dilation": (3, 2)}),
    "depthwise, long rows": ((2, 2, 3, 90), (2, 1, 1, 4), {"groups": 2, "padding": ((0, 0), (3, 0))}),
    "1x1, small": ((6, 10, 7, 7), (12, 10, 1, 1), {}),
    "1x1": ((2, 40, 8, 16), (21, 40, 1, 1), {}),
    "many channels": ((2, 50, 6, 6), (33, 50, 3, 3), {"padding": ((1, 1), (1, 1))}),
    "long rows": ((1, 2, 5, 40), (3, 2, 3, 3), {}),
    # Small images, several at a time.
    "small": ((6, 10, 7, 7), (12, 10, 3, 3), {"padding": ((1, 1), (1, 1))}),
    "small, prime": ((7, 5, 4, 5), (70, 5, 3, 2), {"padding": ((0, 2), (1, 0))}),
    "small, strided": ((8, 6, 9, 8), (5, 6, 3, 3), {"stride": (2, 3), "padding": ((1, 1), (2, 0))}),
    "small, dilated": ((4, 3, 7, 20), (9, 3, 2, 3), {"dilation": (3, 2), "padding": ((2, 1), (0, 3))}),
    "small, groups": ((8, 8, 6, 5), (12, 4, 3, 3), {"groups": 2, "padding": ((1, 1), (1, 1))}),
    "small, wide": ((4, 2, 2, 40), (3, 2, 2, 5), {"padding": ((1, 0), (2, 2))}),
    "one window": ((16, 9, 3, 3), (20, 9, 3, 3), {}),
}
DEFAULTS = {"stride": (1, 1), "padding": ((0, 0), (0, 0)), "dilation": (1, 1), "groups": 1}


def run(op, arrays, params, threads, dtype):
    b = Builder(dtype)
    inputs = [b.input(*array.shape) for array in arrays]
    graph = b.build(b(op, *inputs, **params))
    step = lower(graph, threads=threads)
    agree(step(*arrays)[0], interpret(graph, arrays)[0][0], scale=None)
    return step


@pytest.mark.parametrize(("name", "dtype"), covering(list(CONVOLUTIONS), [np.float32, np.float64]))
def test_convolution_and_its_transposes(name, dtype):
    x_shape, w_shape, given = CONVOLUTIONS[name]
    params = {**DEFAULTS, **given}
    rng = np.random.default_rng(3)
    x, w = rng.normal(size=x_shape).astype(dtype), rng.normal(size=w_shape).astype(dtype)
    y = REGISTRY["conv2d"].evaluate(x, w, **params)
    gradient = rng.normal(size=y.shape).astype(dtype)
    for threads in (1, 2):
        steps = [
            run("conv2d", [x, w], params, threads, dtype),
            run("conv2d_input", [gradient, w], {**params, "size": x_shape[2:]}, threads, dtype),
            run("conv2d_weight", [x, gradient], {**params, "kernel": w_shape[2:]}, threads, dtype),
        ]
        assert all(row.kind != "host" for step in steps for row in step.explain())


@pytest.mark.parametrize("size", [(0, 3), (1, 0), (0, 0)])
@pytest.mark.parametrize(("groups", "kernel"), [(1, (3, 3)), (1, (2, 1)), (2, (3, 3))])
def test_an_image_without_elements_is_a_border_of_zeros(size, groups, kernel):
    params = {**DEFAULTS, "padding": ((2, 1), (1, 2)), "groups": groups}
    x, w = np.zeros((3, 2, *size), np.float32), np.ones((2, 2 // groups, *kernel), np.float32)
    gradient = np.ones(REGISTRY["conv2d"].evaluate(x, w, **params).shape, np.float32)
    for threads in (1, 2):
        b = Builder(np.float32)
        images, weights, cotangent = b.input(*x.shape), b.input(*w.shape), b.input(*gradient.shape)
        both = b("conv2d", images, weights, **params), b("conv2d_weight", images, cotangent, kernel=kernel, **params)
        # What fills the memory that the windows would be gathered in.
        busy = b("conv2d", b.input(3, 2, 9, 9), weights, **params)
        step = lower(b.build(*both, busy), threads=threads)
        for _ in range(2):
            y, slope, _ = step(x, w, gradient, np.full((3, 2, 9, 9), 7, np.float32))
            assert y.size
            assert not y.any()
            assert not slope.any()


# shape, parameters
POOLINGS = {
    "tiles": ((3, 4, 28, 28), {"kernel": (2, 2), "stride": (2, 2)}),
    "odd": ((2, 3, 15, 37), {"kernel": (3, 2), "stride": (2, 2), "padding": ((1, 1), (0, 0))}),
    "overlapping": ((2, 3, 12, 40), {"kernel": (3, 3), "stride": (1, 1), "padding": ((1, 1), (1, 1))}),
    "dilated": ((2, 3, 11, 12), {"kernel": (2, 2), "stride": (3, 2), "dilation": (2, 3)}),
    "hanging over": ((2, 3, 11, 12), {"kernel": (3, 3), "stride": (2, 2), "ceil": True}),
}
WINDOW = {"padding": ((0, 0), (0, 0)), "dilation": (1, 1), "ceil": False}


@pytest.mark.parametrize("name", POOLINGS)
def test_pooling_and_its_transposes(name):
    shape, given = POOLINGS[name]
    params = {**WINDOW, **given}
    rng = np.random.default_rng(4)
    # Few different values: ties are common.
    x = rng.integers(-3, 4, shape).astype(np.float32)
    y = REGISTRY["max_pool2d"].evaluate(x, **params)
    gradient = rng.normal(size=y.shape).astype(np.float32)
    for threads in (1, 2):
        steps = [
            run("max_pool2d", [x], params, threads, np.float32),
            run("max_pool2d_scatter", [gradient, x, y], params, threads, np.float32),
            run("sum_pool2d", [x], params, threads, np.float32),
            run("sum_spread2d", [gradient], {**params, "size": shape[2:]}, threads, np.float32),
        ]
        assert all(row.kind != "host" for step in steps for row in step.explain())


def test_pooling_keeps_nan():
    x = np.ones((1, 1, 4, 4), np.float32)
    x[0, 0, 1, 2] = np.nan
    params = {**WINDOW, "kernel": (2, 2), "stride": (2, 2)}
    b = Builder()
    graph = b.build(b("max_pool2d", b.input(1, 1, 4, 4), **params))
    assert np.isnan(lower(graph, threads=1)(x)[0]).tolist() == [[[[False, True], [False, False]]]]
