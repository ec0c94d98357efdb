"""The engine of lesson 12 gives the gradients of the library, in the number of lines of its title."""

from __future__ import annotations

import contextlib
import io

import numpy as np
import pytest

import glassgrad as gg
from glassgrad.lessons import programs

(LESSON,) = [program for program in programs() if program.number == 12]
EXPRESSIONS = {
    "broadcast": lambda a, b: (a + b[0]) * (b.sum(0, keepdims=True) - 2.0) / (a * a + 1.0),
    "numbers on the left": lambda a, b: 1.0 - a + 2.0 / (b[:, :1] ** 2 + 1.0).sum(),
    "product": lambda a, b: (a @ b.swapaxes(0, 1)).tanh() @ b,
    "stacks": lambda a, b: a.reshape(2, 1, 2, 3) @ b.reshape(1, 2, 3, 3).swapaxes(-1, -2),
    "used often": lambda a, b: a * a + a.exp() * a + a[:2].mean() * b.mean(0),
    "means": lambda a, b: a.mean(1) * b[:4].mean(1) + a.sum() * a.mean(),
    "picked twice": lambda a, b: b[[0, 2, 0, 0]] * a,
    "picked apart": lambda a, b: a[np.arange(4), [0, 2, 2, 1]] * b[1:5, 0],
    "kinks and logarithms": lambda a, b: a.relu() * (b[:4] * b[:4] + 0.5).log(),
    "a chain": lambda a, b: (((a**3).tanh() * b[2:] - a).exp() + 1.0) ** -0.5,
}


@pytest.fixture(scope="module")
def engine():
    names = {"__name__": "lesson"}
    with contextlib.redirect_stdout(io.StringIO()):
        exec(compile(LESSON.text, str(LESSON.path), "exec"), names)  # noqa: S102 - the program of the lesson
    return names


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_gradients_are_those_of_the_library(engine, name):
    rng = np.random.default_rng(0)
    arrays = rng.normal(size=(4, 3)), rng.normal(size=(6, 3))
    weights = rng.normal(size=(4, 3))  # so that each number of the result has another cotangent
    mine = [engine["Tensor"](array, needs=True) for array in arrays]
    theirs = [gg.tensor(array, requires_grad=True) for array in arrays]
    results = []
    for tensors in (mine, theirs):
        out = EXPRESSIONS[name](*tensors)
        out = out * np.resize(weights, out.shape if tensors is theirs else out.data.shape)
        out.sum().backward()
        results.append(out)
    np.testing.assert_allclose(results[0].data, results[1].detach().numpy(), rtol=1e-12)
    for one, other in zip(mine, theirs, strict=True):
        expected = np.zeros(one.data.shape) if other.grad is None else other.grad.numpy()
        found = np.zeros(one.data.shape) if one.grad is None else one.grad
        np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)


def test_passes_add_up_and_gradients_are_owned(engine):
    x, y = engine["Tensor"]([1.0, 2.0], needs=True), engine["Tensor"]([3.0, 4.0], needs=True)
    for _ in range(3):
        (x + y).sum().backward()
    assert (x.grad.tolist(), y.grad.tolist()) == ([3.0, 3.0], [3.0, 3.0])
    x.grad *= 0
    assert y.grad.tolist() == [3.0, 3.0]


def test_the_engine_has_the_lines_that_it_claims():
    code = [cell.text for cell in LESSON.cells if cell.kind == "code"]
    training = next(i for i, text in enumerate(code) if "losses = []" in text)
    lines = [line for text in code[:training] for line in text.splitlines() if line.strip()]
    assert 100 < len(lines) <= 150
