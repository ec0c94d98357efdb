"""Scans in native code: every axis, direction, dtype and remainder of a vector, NaN and Inf, shared by threads."""

from __future__ import annotations

import numpy as np
import pytest

import glassgrad as gg
from glassgrad.compile.ir.graph import GraphBuilder
from glassgrad.compile.llvm.sequences.scan import STEPS
from glassgrad.ops.core import REGISTRY
from tests.compile.graphs import agree, lower

assert gg  # importing it fills the registry
SHAPES = [
    ((7,), 0),
    ((1,), 0),
    ((3, 5), 1),
    ((3, 5), 0),
    ((2, 9, 3), 1),
    ((2, 4, 37), 1),
    ((40, 3, 16), 0),
    ((1, 6), 0),
]
EDGES = [np.nan, np.inf, -np.inf, 0.0, -0.0]


def _step(op, args, params, threads=1):
    builder = GraphBuilder()
    with np.errstate(all="ignore"):
        want = REGISTRY[op].compute(tuple(args), params)
    operands = [builder.input(arg.shape, arg.dtype) for arg in args]
    out = builder.apply(op, operands, want.shape, want.dtype, params)
    return lower(builder.build([out]), threads=threads), want


def _params(op, axis, reverse=False):
    return {"axis": axis, "reverse": reverse} if op in {"cumsum", "recurrence"} else {"axis": axis}


def _args(op, shape, dtype, seed=0):
    rng = np.random.default_rng(seed)
    return [rng.normal(size=shape).astype(dtype) for _ in range(1 + (op == "recurrence"))]


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
@pytest.mark.parametrize(("shape", "axis"), SHAPES, ids=str)
@pytest.mark.parametrize("op", STEPS)
def test_scans_agree_with_numpy(op, shape, axis, dtype):
    for reverse in (False, True) if op in {"cumsum", "recurrence"} else (False,):
        args = _args(op, shape, dtype)
        step, want = _step(op, args, _params(op, axis, reverse))
        assert all(row.kind != "host" for row in step.explain())
        found = step(*args)[0]
        if dtype == np.float16:
            np.testing.assert_allclose(found, want, rtol=8e-3, atol=8e-3)
        else:
            agree(found, want)


@pytest.mark.parametrize("dtype", [np.bool_, np.int8, np.uint16, np.int64])
@pytest.mark.parametrize("op", ["cumsum", "cumprod", "cummax_index", "cummin_index"])
def test_scans_of_integers_are_exact(op, dtype):
    x = np.random.default_rng(0).integers(0, 5, (3, 6, 5)).astype(dtype)
    for axis in range(3):
        step, want = _step(op, [x], _params(op, axis))
        found = step(x)[0]
        assert found.dtype == want.dtype
        np.testing.assert_array_equal(found, want)


@pytest.mark.parametrize("op", STEPS)
def test_nan_and_infinities_come_out_where_numpy_has_them(op):
    rng = np.random.default_rng(0)
    for _ in range(20):
        args = _args(op, (6, 8), np.float64)
        for x in args:
            x[rng.random(x.shape) < 0.2] = rng.choice(EDGES)
        step, want = _step(op, args, _params(op, 1))
        agree(step(*args)[0], want)


def test_the_first_coefficient_of_a_recurrence_counts_for_nothing():
    a, b = np.array([[np.inf, 2.0, 3.0]]), np.array([[1.0, 1.0, 1.0]])
    step, want = _step("recurrence", [a, b], {"axis": 1, "reverse": False})
    np.testing.assert_array_equal(want, [[1.0, 3.0, 10.0]])
    np.testing.assert_array_equal(step(a, b)[0], want)


@pytest.mark.parametrize("op", STEPS)
def test_threads_share_the_rows(op):
    args = _args(op, (64, 33, 8), np.float32)
    one, _ = _step(op, args, _params(op, 1))
    two, _ = _step(op, args, _params(op, 1), threads=2)
    np.testing.assert_array_equal(one(*args)[0], two(*args)[0])


def test_operands_that_lie_turned_or_inside_another_array_are_read_right():
    x = np.random.default_rng(0).normal(size=(5, 6)).astype(np.float32)
    step = gg.compile(lambda t: (t.T * 1).cumsum(0) + t[1:4, 2:].cumsum(1).sum() + t.cummax(0).values.sum())
    t = gg.tensor(x)
    want = np.cumsum(x.T, 0) + np.cumsum(x[1:4, 2:], 1).sum() + np.maximum.accumulate(x, 0).sum()
    np.testing.assert_allclose(step(t).numpy(), want, rtol=1e-4, atol=1e-4)


def test_gradients_of_scans_are_native_and_agree_with_eager():
    def loss(x):
        return (x.cumprod(1) * x.cumsum(0).sin()).sum() + x.logcumsumexp(1).sum() + x.cummin(1).values.sum()

    x = gg.tensor(np.random.default_rng(0).normal(size=(4, 5)))
    step = gg.compile(gg.func.grad(loss))
    np.testing.assert_allclose(step(x).numpy(), gg.func.grad(loss)(x).numpy(), rtol=1e-10, atol=1e-12)
