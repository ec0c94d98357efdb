"""Checkpoints: the same numbers, far less memory, and errors if the second run differs from the first."""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import glassgrad as gg
from glassgrad import errors, func
from glassgrad.checkpoint import checkpoint, checkpoint_sequential
from glassgrad.nn import functional as F


def layer(x: Any, w: Any) -> Any:
    return F.dropout((x @ w).tanh() * x.exp(), 0.5)


def gradients(f: Callable[..., Any], *shapes: Any) -> list[Any]:
    gg.manual_seed(3)
    leaves = [gg.randn(*shape, dtype=np.float64, requires_grad=True) for shape in shapes]
    y = f(*leaves)
    after_forward = gg.rand(2).numpy()
    y.backward()
    after_backward = gg.rand(2).numpy()
    return [y.detach().numpy(), after_forward, after_backward, *(leaf.grad.numpy() for leaf in leaves)]


WAYS: dict[str, Callable[..., Any]] = {
    "argument and closure": lambda x, w: checkpoint(lambda x: layer(x, w).sum(), x),
    "keyword": lambda x, w: checkpoint(layer, x, w=w).sum(),
    "nested": lambda x, w: checkpoint(lambda x: (checkpoint(layer, x, w) * w.sum()).sum(), x),
    "two": lambda x, w: (checkpoint(layer, x, w) * checkpoint(layer, x * 2, w)).sum(),
    "chain": lambda x, w: checkpoint(layer, checkpoint(layer, x, w), w).sum(),
    "policy": lambda x, w: checkpoint(layer, x, w, keep=["matmul", "exp"]).sum(),
    "several results": lambda x, w: sum(y.sum() for y in checkpoint(lambda x: (layer(x, w), x * 2), x)),
    "fused": lambda x, w: checkpoint(lambda x: F.linear(F.layer_norm(x, (3,)), w), x).square().sum(),
    "fused, policy": lambda x, w: (
        checkpoint(lambda x: F.linear(F.layer_norm(x, (3,)), w), x, keep=["linear", "layer_norm"]).square().sum()
    ),
}
PLAIN: dict[str, Callable[..., Any]] = {
    "argument and closure": lambda x, w: layer(x, w).sum(),
    "keyword": lambda x, w: layer(x, w).sum(),
    "nested": lambda x, w: (layer(x, w) * w.sum()).sum(),
    "two": lambda x, w: (layer(x, w) * layer(x * 2, w)).sum(),
    "chain": lambda x, w: layer(layer(x, w), w).sum(),
    "policy": lambda x, w: layer(x, w).sum(),
    "several results": lambda x, w: sum(y.sum() for y in (layer(x, w), x * 2)),
    "fused": lambda x, w: F.linear(F.layer_norm(x, (3,)), w).square().sum(),
    "fused, policy": lambda x, w: F.linear(F.layer_norm(x, (3,)), w).square().sum(),
}


@pytest.mark.parametrize("way", WAYS)
def test_the_same_to_the_last_bit(way: str) -> None:
    """Values, gradients and the random numbers drawn afterwards."""
    for a, b in zip(gradients(WAYS[way], (3, 3), (3, 3)), gradients(PLAIN[way], (3, 3), (3, 3)), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("way", WAYS)
def test_under_transforms(way: str) -> None:
    x, w = (gg.tensor(np.random.default_rng(seed).normal(size=(3, 3))) for seed in (0, 1))

    def seeded(f: Any) -> Any:
        def run(x: Any) -> Any:
            gg.manual_seed(5)
            return f(x, w)

        return run

    transforms = {
        "hessian": lambda f: func.hessian(f)(x),
        "hvp": lambda f: func.hvp(f, (x,), (w,)),
        "reverse over reverse": lambda f: func.grad(lambda x: (func.grad(f)(x) * w).sum())(x),
        "vmap": lambda f: func.vmap(func.grad(f), randomness="same")(gg.stack([x, w])),
        "through vmap": lambda f: func.grad(lambda x: func.vmap(f, randomness="different")(gg.stack([x, w])).sum())(x),
    }
    for name, transform in transforms.items():
        np.testing.assert_allclose(
            transform(seeded(WAYS[way])).numpy(), transform(seeded(PLAIN[way])).numpy(), rtol=1e-10, err_msg=name
        )


def test_the_function_runs_twice_and_kept_ops_once() -> None:
    calls: list[int] = []
    x = gg.ones(2, requires_grad=True)
    y = checkpoint(lambda x: calls.append(1) or x.exp().sin().sum(), x)
    assert len(calls) == 1
    y.backward(retain_graph=True)
    assert len(calls) == 2
    y.backward()
    assert len(calls) == 3
    with gg.no_grad():
        checkpoint(lambda x: calls.append(1) or x.exp(), x)
    assert len(calls) == 4

    class Counted(gg.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return 2 * g * ctx.saved_tensors[0]

    checkpoint(lambda x: Counted.apply(x.exp()).sum(), x).backward()
    np.testing.assert_allclose(x.grad.numpy(), 2 * (np.exp(1) * np.cos(np.exp(1))) + 2 * np.exp(2), rtol=1e-5)


def test_gradients_only_of_some_and_none() -> None:
    x = gg.ones(2)
    assert not checkpoint(lambda x: x.exp(), x).requires_grad
    w = gg.ones(2, requires_grad=True)
    (g,) = gg.autograd.grad(checkpoint(lambda x: (x * w).sum(), x), w)
    assert g.tolist() == [1.0, 1.0]


@pytest.mark.parametrize("count", [1, 2, 3, 10, 64])
def test_segments_cover_all_layers(count: int) -> None:
    layers = [lambda x, number=number: x * (1 + 0.1 * number) for number in range(count)]
    x = gg.ones(2, requires_grad=True)
    for segments in (None, 1, min(count, 2), count):
        x.grad = None
        checkpoint_sequential(layers, segments, x).sum().backward()
        np.testing.assert_allclose(x.grad.numpy(), np.prod([1 + 0.1 * n for n in range(count)]), rtol=1e-4)
    with pytest.raises(errors.ArgumentError, match="segments=0"):
        checkpoint_sequential(layers, 0, x)


# --- when the second run is not the first ---------------------------------------------------------------


def test_another_second_run_is_named() -> None:
    x = gg.ones(2, requires_grad=True)
    calls: list[int] = []

    def moody(x: Any) -> Any:
        calls.append(1)
        return x.exp() if len(calls) == 1 else x.sin()

    with pytest.raises(errors.AutogradError, match=r"op 1 was exp, now it is sin at .*test_checkpoint\.py:\d+"):
        checkpoint(moody, x).sum().backward()

    def longer(x: Any) -> Any:
        calls.append(1)
        return x.exp() if len(calls) < 4 else x.exp().exp()

    with pytest.raises(errors.AutogradError, match="recorded 1 ops in its first run and 2 in its second"):
        checkpoint(longer, x).sum().backward()


def test_overwritten_arguments_are_named() -> None:
    x, w = gg.ones(2, requires_grad=True), gg.ones(2, requires_grad=True)
    for tensor in (x, w):
        h = x * 1
        y = checkpoint(lambda h: (h.exp() * w).sum(), h)
        with gg.no_grad():
            (h if tensor is x else w).add_(1.0)
        with pytest.raises(errors.AutogradError, match=r"overwritten in place at .*test_checkpoint\.py:\d+"):
            y.backward()


def test_an_unknown_policy() -> None:
    with pytest.raises(errors.ArgumentError, match="names no primitives"):
        checkpoint(lambda x: x, gg.ones(1, requires_grad=True), keep=["matmull"])


# --- memory and time ------------------------------------------------------------------------------------


def peak(run: Callable[[], Any]) -> int:
    tracemalloc.start()
    try:
        run()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def network(count: int, width: int) -> list[Any]:
    gg.manual_seed(0)
    return [gg.nn.Sequential(gg.nn.Linear(width, width), gg.nn.Tanh()) for _ in range(count)]


def test_memory_of_64_layers_is_at_least_4_times_lower() -> None:
    """Also of the leanest kind of layer, which keeps one array: the bound is close there, and far for others."""
    layers = network(64, 8)
    x = gg.ones(4096, 8)

    def train(forward: Callable[[Any], Any]) -> None:
        forward(x).sum().backward()
        for one in layers:
            one.zero_grad()

    def plain(x: Any) -> Any:
        for one in layers:
            x = one(x)
        return x

    train(plain)  # what is allocated once is allocated now
    without = peak(lambda: train(plain))
    checkpointed = peak(lambda: train(lambda x: checkpoint_sequential(layers, None, x)))
    assert without / checkpointed >= 4, (without, checkpointed)
    equal = peak(lambda: train(lambda x: checkpoint_sequential(layers, 8, x)))
    assert equal < without / 3, (without, equal)


@pytest.mark.slow
def test_time_of_64_layers_is_at_most_1_4_times_more() -> None:
    layers = network(64, 256)
    x = gg.randn(256, 256)

    def seconds(forward: Callable[[Any], Any]) -> float:
        start = time.perf_counter()
        forward(x).sum().backward()
        return time.perf_counter() - start

    def plain(x: Any) -> Any:
        for one in layers:
            x = one(x)
        return x

    ratios = []
    for _ in range(5):  # other processes disturb both alike, but not at the same time
        without = min(seconds(plain) for _ in range(3))
        ratios.append(min(seconds(lambda x: checkpoint_sequential(layers, None, x)) for _ in range(3)) / without)
        if ratios[-1] <= 1.4:
            return
    raise AssertionError(ratios)


@pytest.mark.parametrize(
    "function",
    [
        lambda h, c: (h * c.mul_(2.0)).sin(),
        lambda h, c: (h * c.add_(h.detach())).sin(),
        lambda h, c: ((h * c).sin(), c.add_(1.0))[0],
        lambda h, c: (h * c[1:].mul_(3.0).sum()).sin(),
    ],
)
def test_a_write_that_would_happen_twice_is_refused(function: Any) -> None:
    x = gg.tensor([1.0, 2.0, 3.0], requires_grad=True)
    captured = gg.tensor([1.0, 2.0, 4.0])
    y = checkpoint(lambda h: function(h, captured), x * 1)
    with pytest.raises(errors.AutogradError, match="to memory that existed before"):
        y.sum().backward()


def test_writes_to_memory_of_its_own_are_no_matter_in_a_checkpoint() -> None:
    def function(h: Any) -> Any:
        out = gg.zeros(3)
        out[0] = h[1]
        out[1:] = h[:2] * 2
        out.mul_(3)
        return out.sin()

    x, again = (gg.tensor([1.0, 2.0, 3.0], requires_grad=True) for _ in range(2))
    checkpoint(function, x * 1).sum().backward()
    function(again * 1).sum().backward()
    assert x.grad is not None
    np.testing.assert_array_equal(x.grad.numpy(), again.grad.numpy())
