"""Values that may be overwritten before the backward pass: at least those that PyTorch allows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import glassgrad as gg

torch = pytest.importorskip("torch", reason="PyTorch is the oracle")

# Each takes the library, three matrices of one shape, and an image, and returns a tensor.
CALLS: dict[str, Callable[..., Any]] = {
    "linear": lambda F, a, b, c, i: F.linear(a, b),
    "linear with bias": lambda F, a, b, c, i: F.linear(a, b, c[0]),
    "lerp": lambda F, a, b, c, i: a.lerp(b, c),
    "multiply": lambda F, a, b, c, i: a * b,
    "divide": lambda F, a, b, c, i: a / b,
    "matmul": lambda F, a, b, c, i: a @ b,
    "add": lambda F, a, b, c, i: a + b,
    "max_pool2d": lambda F, a, b, c, i: F.max_pool2d(i, 2),
    "max_pool2d, flat": lambda F, a, b, c, i: F.max_pool2d(i, 2).flatten(1),
    "max_pool1d": lambda F, a, b, c, i: F.max_pool1d(i[0], 2),
    "avg_pool2d": lambda F, a, b, c, i: F.avg_pool2d(i, 2),
    "conv2d": lambda F, a, b, c, i: F.conv2d(i, a[None, None]),
    "gelu": lambda F, a, b, c, i: F.gelu(a),
    "gelu by tanh": lambda F, a, b, c, i: F.gelu(a, approximate="tanh"),
    "silu": lambda F, a, b, c, i: F.silu(a),
    "leaky_relu": lambda F, a, b, c, i: F.leaky_relu(a, 0.1),
    "softplus": lambda F, a, b, c, i: F.softplus(a),
    "sin": lambda F, a, b, c, i: a.sin(),
    "log": lambda F, a, b, c, i: (a * a + 1).log(),
}
TARGETS = ("result", "a", "b", "c", "image")
RNG = np.random.default_rng(0)
NUMBERS = [RNG.normal(size=(4, 4)) + 2 for _ in range(3)] + [RNG.normal(size=(1, 2, 8, 8))]


def gradients(make: Any, F: Any, call: str, target: str, tracked: int) -> Any:
    """Return the gradients after a write to one of the values, or nothing where the backward pass refuses."""
    leaves = [make(array.copy()) for array in NUMBERS]
    leaves[tracked].requires_grad_()
    values = [leaf * 1.0 for leaf in leaves]
    if call == "conv2d":
        values[3] = values[3][:, :1]
    result = CALLS[call](F, *values)
    loss = (result * 1.5).sum()
    if target == "result":
        result = result.relu_() if result.requires_grad else result
        loss = (result * 0.5).sum()
    else:
        values[TARGETS.index(target) - 1].mul_(2)
    try:
        loss.backward()
    except RuntimeError:
        return None
    return leaves[tracked].grad.numpy()


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("call", CALLS)
def test_what_pytorch_lets_a_program_overwrite(call: str, target: str) -> None:
    compared = 0
    for tracked in range(4):
        try:
            wanted = gradients(torch.from_numpy, torch.nn.functional, call, target, tracked)
        except RuntimeError:  # the result does not depend on what is tracked
            continue
        if wanted is None:
            continue
        found = gradients(gg.from_numpy, gg.nn.functional, call, target, tracked)
        assert found is not None, f"refused, tracking {TARGETS[tracked + 1]}"
        np.testing.assert_allclose(found, wanted, rtol=1e-10)
        compared += 1
    assert compared or target != "result"


@pytest.mark.parametrize("backend", ["llvm", "numpy"])
def test_relu_in_place_behind_a_pooling_compiled(backend: str) -> None:
    def step(x: Any) -> Any:
        x = x.detach().clone().requires_grad_()
        y = gg.nn.functional.max_pool2d(x, 2)
        gg.nn.functional.gelu(y.relu_()).mul_(2).sum().backward()
        return x.grad

    x = gg.from_numpy(NUMBERS[3])
    compiled = gg.compile(step, backend=backend, strict=True)
    np.testing.assert_allclose(compiled(x).numpy(), step(x).numpy(), rtol=1e-10)


def test_a_write_beside_what_was_saved_is_allowed() -> None:
    """Integrators fill the columns of one array while products of the earlier ones wait for their derivative."""
    w = gg.tensor([2.0, 3.0], requires_grad=True)
    k = gg.zeros(2, 3)
    k[:, 0] = gg.tensor([1.0, 2.0])
    y = (k[:, :1] * w[:, None]).sum()
    k.data[:, 1] = gg.ones(2)
    k.data[1, 2] = 5.0
    y.backward()
    assert w.grad.tolist() == [1.0, 2.0]
    for write in (lambda: k.data[:, 0].fill_(1.0), lambda: k.data[1].fill_(1.0), lambda: k.data.add_(1.0)):
        y = (k[:, :1] * w[:, None]).sum()
        write()
        with pytest.raises(gg.errors.AutogradError, match="overwritten in place"):
            y.backward()


def test_rows_of_a_buffer_are_told_apart_however_many_were_written() -> None:
    # A buffer of experiences: each step reads one row and writes another, for longer than any log of writes.
    buffer, weight = gg.ones(8, 2), gg.tensor([2.0, 3.0], requires_grad=True)
    for step in range(600):
        loss = (buffer[0] * weight).sum()
        buffer[1 + step % 7] = float(step)
        weight.grad = None
        loss.backward()
        assert weight.grad.tolist() == [1.0, 1.0]
    loss = (buffer[0] * weight).sum()
    buffer[0] = 5.0
    with pytest.raises(gg.errors.AutogradError, match="overwritten in place"):
        loss.backward()


def test_a_row_that_was_overwritten_long_ago_is_still_known() -> None:
    buffer, weight = gg.ones(8, 2), gg.tensor([2.0, 3.0], requires_grad=True)
    loss = (buffer[0] * weight).sum()
    buffer[0] = 5.0
    for step in range(600):
        buffer[1 + step % 7] = float(step)
    with pytest.raises(gg.errors.AutogradError, match="overwritten in place"):
        loss.backward()


def test_after_all_was_overwritten_parts_are_told_apart_again() -> None:
    buffer, weight = gg.ones(8, 2), gg.tensor([2.0, 3.0], requires_grad=True)
    buffer.zero_()
    loss = (buffer[0] * weight).sum()
    buffer[1] = 5.0
    loss.backward()
    assert weight.grad.tolist() == [0.0, 0.0]


def test_rows_of_a_loop_are_views() -> None:
    x, added = gg.zeros(3, 2), gg.tensor([1.0, 2.0], requires_grad=True)
    for row in x:
        row.add_(added)
    (x * x).sum().backward()
    np.testing.assert_array_equal(added.grad, [6.0, 12.0])
    for values in (gg.zeros(3), gg.zeros(3, dtype=gg.int64), gg.zeros(3, dtype=gg.bool)):
        for position, value in enumerate(values):
            assert value.shape == ()
            value.fill_(position)
        np.testing.assert_array_equal(values, np.arange(3).astype(values.dtype))
    parameter = gg.nn.Parameter(gg.ones(2))
    with gg.no_grad():
        assert [type(one) for one in parameter] == [gg.Tensor] * 2
    assert all(one.requires_grad for one in parameter)
    assert list(gg.zeros(0, 2)) == []
