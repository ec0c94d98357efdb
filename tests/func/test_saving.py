"""saved_tensors_hooks: the tensors that pass through them, and the others."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import glassgrad as gg
from glassgrad import errors
from glassgrad.autograd import graph
from glassgrad.checkpoint import checkpoint

HOOKS = graph.saved_tensors_hooks


def test_every_saved_array_passes_through() -> None:
    packed: list[Any] = []
    unpacked: list[Any] = []

    def pack(x: Any) -> Any:
        packed.append(x.shape)
        return x.numpy().copy()

    def unpack(array: Any) -> Any:
        unpacked.append(array.shape)
        return gg.tensor(array)

    x, w = gg.ones(2, 3, requires_grad=True), gg.ones(3, 4, requires_grad=True)
    with HOOKS(pack, unpack):
        y = (x @ w).tanh()
        total = y.sum()  # saves nothing
    z = total.exp()  # not inside
    assert packed == [(2, 3), (3, 4), (2, 4)]
    assert unpacked == []
    z.backward()
    assert sorted(unpacked) == sorted(packed)
    expected = np.exp(8 * np.tanh(3)) * (1 - np.tanh(3) ** 2) * 4
    np.testing.assert_allclose(x.grad.numpy(), expected, rtol=1e-4)


def test_what_unpack_returns_is_used() -> None:
    x = gg.tensor([1.0, 2.0], requires_grad=True)
    with HOOKS(lambda t: t, lambda t: t * 10):
        y = (x * x).sum()
    y.backward()
    assert x.grad.tolist() == [20.0, 40.0]


@pytest.mark.parametrize("op", ["linear", "layer_norm", "getitem", "cross_entropy", "sort"])
def test_fused_and_indexing_ops(op: str) -> None:
    ops: dict[str, Any] = {
        "linear": lambda x: gg.nn.functional.linear(x, x),
        "layer_norm": lambda x: gg.nn.functional.layer_norm(x, (3,)) * x,
        "getitem": lambda x: x[gg.tensor([0, 1, 1])] * x[1:, :1],
        "cross_entropy": lambda x: gg.nn.functional.cross_entropy(x, gg.tensor([0, 1])),
        "sort": lambda x: x.sort(1).values * x,
    }
    start = np.random.default_rng(0).normal(size=(2, 3))
    results = []
    for hooks in (False, True):
        x = gg.tensor(start, requires_grad=True)
        if hooks:
            with HOOKS(_to_bytes, _from_bytes):
                y = ops[op](x)
        else:
            y = ops[op](x)
        (y * y).sum().backward()
        results.append(x.grad.numpy())
    np.testing.assert_array_equal(results[0], results[1])


def _to_bytes(t: Any) -> Any:
    return t.numpy().tobytes(), t.dtype, t.shape


def _from_bytes(packed: Any) -> Any:
    content, dtype, shape = packed
    return gg.tensor(np.frombuffer(content, dtype).reshape(shape))


def test_higher_orders_and_functions() -> None:
    class Cube(gg.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x**3

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return 3 * g * ctx.saved_tensors[0] ** 2

    x = gg.tensor(np.array([1.0, 2.0]), requires_grad=True)
    with HOOKS(_to_bytes, _from_bytes):
        y = Cube.apply(x).sin().sum()
    (g,) = gg.autograd.grad(y, x, create_graph=True)
    (h,) = gg.autograd.grad(g.sum(), x)
    value = x.detach().numpy()
    np.testing.assert_allclose(h.numpy(), 6 * value * np.cos(value**3) - 9 * value**4 * np.sin(value**3))


def test_hooks_nest_and_live_beside_checkpoints() -> None:
    inner: list[Any] = []
    outer: list[Any] = []
    x = gg.tensor([1.0, 2.0], requires_grad=True)
    with HOOKS(lambda t: outer.append(t.shape) or t, lambda t: t):
        a = x.exp()
        with HOOKS(lambda t: inner.append(t.shape) or t, lambda t: t):
            b = a.sin()
        c = checkpoint(lambda b: b.cos().sum(), b)  # keeps nothing that could be packed
    assert (len(outer), len(inner)) == (1, 1)
    c.backward()
    value = np.array([1.0, 2.0])
    expected = -np.sin(np.sin(np.exp(value))) * np.cos(np.exp(value)) * np.exp(value)
    np.testing.assert_allclose(x.grad.numpy(), expected, rtol=1e-4)


def test_the_mode_ends_with_an_exception() -> None:
    packed: list[int] = []
    with pytest.raises(ZeroDivisionError), HOOKS(lambda t: packed.append(1) or t, lambda t: t):
        raise ZeroDivisionError
    gg.ones(2, requires_grad=True).exp()
    assert packed == []


def test_unpack_has_to_return_the_same_shape() -> None:
    x = gg.ones(2, requires_grad=True)
    for wrong in (lambda t: t[:1], lambda t: t.numpy()):
        with HOOKS(lambda t: t, wrong):
            y = x.exp().sum()
        with pytest.raises(errors.KindError, match=r"unpack_hook returned .* that exp at .*test_saving\.py:\d+ saved"):
            y.backward()
