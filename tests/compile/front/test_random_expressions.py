"""Random expression graphs with gradients: every emitter gives the results of eager mode."""

from __future__ import annotations

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

import glassgrad as gg

UNARY = {
    "tanh": lambda x: x.tanh(), "exp": lambda x: (x * 0.3).exp(), "sigmoid": lambda x: x.sigmoid(),
    "relu": lambda x: x.relu(), "square": lambda x: x * x * 0.1, "neg": lambda x: -x,
    "log": lambda x: (x * x + 1).log(), "sqrt": lambda x: (x * x + 0.5).sqrt(), "abs": lambda x: x.abs(),
    "clip": lambda x: x.clip(-1, 1),
    "softmax": lambda x: x.softmax(-1), "norm": lambda x: x - x.mean(-1, keepdim=True),
    "lse": lambda x: x.logsumexp(-1, keepdim=True), "sum": lambda x: x.sum(0, keepdim=True) * 0.2,
    "mean": lambda x: x.mean(1, keepdim=True), "max": lambda x: x.max(1, keepdim=True).values,
    "turned": lambda x: x.T.reshape(x.shape), "shift": lambda x: gg.roll(x, 1, 1), "flip": lambda x: x.flip(0),
    "half": lambda x: gg.cat([x[:, ::2], x[:, 1::2]], 1), "tril": lambda x: x.tril(),
}  # fmt: skip  # a table
BINARY = {
    "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b,
    "div": lambda a, b: a / (b * b + 1), "max": gg.maximum,
    "where": lambda a, b: gg.where(a > b, a, b * 0.5), "product": lambda a, b: a @ b.expand(4, 4).mT * 0.3,
}  # fmt: skip  # a table


@st.composite
def programs(draw):
    """A list of steps, each an op on earlier values; values are (4, 4) or broadcast to it."""
    steps = []
    for number in range(draw(st.integers(2, 10))):
        known = st.integers(0, number + 2)
        if draw(st.booleans()):
            steps.append((draw(st.sampled_from(sorted(UNARY))), draw(known)))
        else:
            steps.append((draw(st.sampled_from(sorted(BINARY))), draw(known), draw(known)))
    return tuple(steps)


def run_steps(steps, inputs):
    values = list(inputs)
    for name, *operands in steps:
        arguments = [values[at] for at in operands]
        if len(arguments) == 1:
            whole = arguments[0].expand(4, 4) * 1
            values.append(UNARY[name](whole))
        else:
            values.append(BINARY[name](*[argument.expand(4, 4) for argument in arguments]))
    return values[-1]


def with_gradients(steps):
    def run(a, b, c):
        leaves = [x.detach().clone().requires_grad_() for x in (a, b, c)]
        result = run_steps(steps, leaves)
        (result * result).sum().backward()
        return [result.detach(), *[x.grad for x in leaves]]

    return run


def check(steps, backend, dtype, rtol):
    rng = np.random.default_rng(len(steps))
    inputs = [gg.from_numpy(rng.normal(size=shape).astype(dtype)) for shape in ((4, 4), (4, 1), (1, 4))]
    run = with_gradients(steps)
    wanted = run(*inputs)
    found = gg.compile(run, backend=backend)(*inputs)
    for one, other in zip(found, wanted, strict=True):
        assert (one is None) == (other is None)
        if one is not None:
            assert one.dtype == other.dtype
            scale = max(1.0, float(np.abs(other.array).max()))
            np.testing.assert_allclose(one.array, other.array, rtol=rtol, atol=rtol * scale, err_msg=str(steps))


@hypothesis.given(programs())
@hypothesis.settings(max_examples=24)
def test_numpy_float64(steps):
    check(steps, "numpy", np.float64, 1e-12)


@hypothesis.given(programs())
@hypothesis.settings(max_examples=8)
def test_numpy_float32(steps):
    check(steps, "numpy", np.float32, 2e-5)


@hypothesis.given(programs())
@hypothesis.settings(max_examples=8)
def test_llvm_float64(steps):
    check(steps, "llvm", np.float64, 1e-12)


@pytest.mark.slow
@hypothesis.given(programs())
@hypothesis.settings(max_examples=150)
def test_many(steps):
    check(steps, "numpy", np.float64, 1e-12)
    check(steps, "numpy", np.float32, 2e-5)
    check(steps, "llvm", np.float64, 1e-12)
    check(steps, "llvm", np.float32, 2e-5)
