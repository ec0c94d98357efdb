"""Views that a loop nest can read only one at a time: such values are copied first."""

from __future__ import annotations

import itertools
import math
import random

import numpy as np
import pytest

import glassgrad as gg

SIZES = (6, 8, 12, 24, 36)


def factorised(draw, size):
    """Return a shape of so many elements, sometimes with dimensions of size 1."""
    shape = []
    while size > 1:
        extent = draw.choice([n for n in range(2, size + 1) if size % n == 0])
        shape.append(extent)
        size //= extent
    shape += [1] * draw.choice([0, 0, 1])
    draw.shuffle(shape)
    return tuple(shape)


def chain(draw, size, shape, length):
    """Return views, one after the other, of a value of this shape; the last has the given shape of so many elements."""
    steps = []
    for _ in range(length):
        other = factorised(draw, size)
        order = draw.sample(range(len(other)), len(other))
        axis = draw.randrange(len(other))
        choices = [
            lambda v, other=other, order=order: v.reshape(other).permute(order),
            lambda v, other=other, order=order: v.reshape(other).permute(order),
            lambda v, other=other, axis=axis: v.reshape(other).flip(axis),
            lambda v, other=other, axis=axis: gg.roll(v.reshape(other), 1, axis),
            lambda v, other=other, axis=axis: gg.cat([v.reshape(other)] * 2, axis).narrow(axis, 1, other[axis]),
            lambda v: gg.stack(gg.unbind(v, -1), 0),
            lambda v: v.ravel().unfold(0, 2, 2),
            lambda v: v.expand(2, *v.shape).flip(0)[1],
            lambda v: gg.cat([v, v * 3], -1)[..., ::2] if v.shape[-1] % 2 == 0 else v,
            lambda v: gg.cat([v[:0], v.flip(0)]).flip(0),
            lambda v, other=other: v.reshape(other) - v.reshape(other).mean(-1, keepdim=True),
        ]
        steps.append(draw.choice(choices))
    return [*steps, lambda v: v.reshape(shape)]


def program(seed):
    """Return a function of several arrays, and the arrays."""
    draw = random.Random(seed)
    size = draw.choice(SIZES)
    shape = factorised(draw, size)
    count = draw.choice([2, 2, 3, 4])
    arrays = [np.random.default_rng([seed, at]).normal(size=factorised(draw, size)) for at in range(count)]
    chains = [chain(draw, size, shape, draw.choice([1, 1, 2, 3])) for _ in arrays]
    first = draw.choice([gg.tanh, lambda v: v, lambda v: v * 2])
    meet = [draw.choice([gg.add, gg.multiply, gg.maximum, lambda a, b: a - gg.sin(b)]) for _ in arrays]
    last = draw.choice([lambda v: v, lambda v: v.sum(-1), gg.cos, lambda v: gg.softmax(v, 0), lambda v: v.mT @ v])
    again = draw.choice([None, 0, 1])

    def run(*values):
        ends = []
        for value, steps in zip(values, chains, strict=True):
            value = first(value)
            for step in steps:
                value = step(value)
            ends.append(value)
        total = ends[0]
        for end, join in zip(ends[1:], meet, strict=False):
            total = join(total, end)
        total = last(total) if total.ndim > 1 else total
        return total if again is None else (total, ends[again])

    def step(*values):
        made = run(*values)
        whole = made if isinstance(made, tuple) else (made,)
        return (*whole, *gg.autograd.grad(sum((one * one).sum() for one in whole), values))

    return draw.choice([run, step]), arrays


def check(seed):
    function, arrays = program(seed)
    inputs = [gg.tensor(array, requires_grad=True) for array in arrays]
    wanted = function(*inputs)
    found = gg.compile(function, strict=True, threads=1 + seed % 2)(*inputs)
    pairs = [(found, wanted)] if isinstance(wanted, gg.Tensor) else zip(found, wanted, strict=True)
    for mine, true in pairs:
        np.testing.assert_allclose(mine.detach(), true.detach(), rtol=1e-11, atol=1e-11, err_msg=f"seed {seed}")


@pytest.mark.parametrize("start", [0, 6])
def test_views_of_several_values_meet(start):
    for seed in range(start, start + 6):
        check(seed)


@pytest.mark.slow
@pytest.mark.parametrize("start", range(1000, 4000, 200))
def test_many_views_of_several_values_meet(start):
    for seed in range(start, start + 200):
        check(seed)


def two_ways(a, b):
    return a.mT.reshape(6) + b.mT.reshape(6)


def computed_two_ways(a, b):
    return gg.tanh(a).mT.reshape(6) * gg.tanh(b).mT.reshape(6)


def two_reductions(a, b):
    return (a.mT.reshape(6) + b.mT.reshape(6)).sum() + (gg.exp(a).mT.reshape(6) * b.mT.reshape(6)).mean()


@pytest.mark.parametrize("function", [two_ways, computed_two_ways, two_reductions])
def test_one_loop_wanted_as_two_by_three_and_as_three_by_two(function):
    a, b = (gg.tensor(np.arange(6.0).reshape(shape)) for shape in ((3, 2), (2, 3)))
    run = gg.compile(function, strict=True)
    np.testing.assert_allclose(run(a, b), function(a, b), rtol=1e-14)


def test_a_value_that_readers_compute_again_is_stored_for_one_that_cannot():
    def run(x):
        centred = x - x.mean(1, keepdim=True)
        scale = 1 / (1 + (centred * centred).sum(1, keepdim=True))
        wide = gg.tanh((centred * scale).reshape(100, 169)).reshape(130, 130)
        return wide @ gg.ones(130, 3), gg.roll(centred, 1, 0), gg.roll(scale, 1, 0)

    x = gg.tensor(np.random.default_rng(0).normal(size=(130, 130)))
    for found, wanted in zip(gg.compile(run, strict=True)(x), run(x), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-11, atol=1e-13)


def test_all_shapes_of_few_elements_in_pairs():
    shapes = [shape for shape in itertools.product((1, 2, 3, 4), repeat=3) if math.prod(shape) == 12]
    values = [gg.tensor(np.random.default_rng(at).normal(size=shape)) for at, shape in enumerate(shapes)]

    def run(*values):
        flat = [value.permute(2, 0, 1).reshape(12) for value in values]
        return sum(a * b for a, b in itertools.pairwise(flat))

    np.testing.assert_allclose(gg.compile(run, strict=True)(*values), run(*values), rtol=1e-12, atol=1e-12)
