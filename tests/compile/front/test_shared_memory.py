"""Arguments in memory to which the step writes, and writes through views."""

from __future__ import annotations

import numpy as np
import pytest

import glassgrad as gg
from glassgrad import errors

BACKENDS = ("numpy", "llvm")


def doubling(weight):
    def step(x):
        weight.mul_(2)
        return x * 1

    return step


@pytest.mark.parametrize("backend", BACKENDS)
def test_an_argument_in_memory_of_written_state_is_refused_in_any_call(backend):
    weight = gg.ones(3)
    step = gg.compile(doubling(weight), backend=backend, strict=True)
    assert step(gg.zeros(3)).tolist() == [0, 0, 0]
    for shared in (weight.detach(), weight.numpy(), gg.from_numpy(weight.numpy()[:])):
        with pytest.raises(errors.CompileError, match="x and weight lie in the same memory"):
            step(shared)
    with pytest.raises(errors.CompileError, match="lie in the same memory"):
        gg.compile(doubling(weight), backend=backend, strict=True)(weight[1:])
    assert weight.tolist() == [2, 2, 2]
    weight.data = gg.ones(3)  # another array, and its memory
    for _ in range(2):
        with pytest.raises(errors.CompileError, match="lie in the same memory"):
            step(weight.detach())
    assert step(gg.zeros(3)).tolist() == [0, 0, 0]


@pytest.mark.parametrize("backend", BACKENDS)
def test_neighbours_in_one_array_are_no_overlap(backend):
    whole = np.ones(6, np.float32)
    weight = gg.from_numpy(whole[:3])
    step = gg.compile(doubling(weight), backend=backend, strict=True)
    for factor in (2, 4):
        assert step(gg.from_numpy(whole[3:])).tolist() == [1, 1, 1]
        assert weight.tolist() == [factor] * 3


@pytest.mark.parametrize("backend", BACKENDS)
def test_arguments_that_overlap(backend):
    def step(x, y):
        x += 1
        return y * 2

    whole = gg.zeros(4)
    run = gg.compile(step, backend=backend, strict=True)
    assert run(whole[:2], whole[2:]).tolist() == [0, 0]
    with pytest.raises(errors.CompileError, match="y and x lie in the same memory"):
        run(whole[:2], whole[1:3])
    assert whole.tolist() == [1, 1, 0, 0]
    assert gg.compile(lambda x, y: x + y, backend=backend)(whole[:3], whole[1:]).tolist() == [2, 1, 0]


@pytest.mark.parametrize("backend", BACKENDS)
def test_writes_through_views_of_an_argument(backend):
    def step(x):
        x.view(4)[1:3].mul_(3.0)
        x.T[0].add_(1.0)
        return x * 1

    mine, twin = gg.arange(4).float().view(2, 2), gg.arange(4).float().view(2, 2)
    run = gg.compile(step, backend=backend, strict=True)
    for _ in range(3):
        assert run(mine).tolist() == step(twin).tolist()
        assert mine.tolist() == twin.tolist()


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_reshape_of_what_does_not_lie_in_order_is_a_copy(backend):
    def step(x):
        x[:, 1:3].reshape(6).mul_(5.0)
        x.T.reshape(12).add_(7.0)
        x.T[1].reshape(3, 1).sub_(2.0)
        x[1:].reshape(4, 2).T.mul_(3.0)
        return x * 1

    mine, twin = gg.arange(12).float().view(3, 4), gg.arange(12).float().view(3, 4)
    run = gg.compile(step, backend=backend, strict=True)
    for _ in range(2):
        assert run(mine).tolist() == step(twin).tolist()
        assert mine.tolist() == twin.tolist()


@pytest.mark.parametrize("backend", BACKENDS)
def test_writes_through_shapes_that_divide_in_no_common_way(backend):
    def step(x):
        x.view(60, 22)[3:50:2].mul_(2.0)
        x.view(110, 12).T.add_(x.mean())
        return x.view(12, 110) * 1

    mine, twin = (gg.tensor(np.arange(1320.0).reshape(33, 40)) for _ in range(2))
    run = gg.compile(step, backend=backend, strict=True)
    for _ in range(2):
        np.testing.assert_allclose(run(mine).numpy(), step(twin).numpy(), rtol=1e-12)
        np.testing.assert_allclose(mine.numpy(), twin.numpy(), rtol=1e-12)
