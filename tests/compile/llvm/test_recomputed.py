"""Checkpoints in compiled steps: the memory of the plan and the process, and the same numbers as without them."""

from __future__ import annotations

import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import glassgrad as gg
from glassgrad import nn
from glassgrad.checkpoint import checkpoint, checkpoint_sequential
from glassgrad.compile.plan.recompute import key_of_parts

WIDTH, BATCH = 16, 64
ONE = WIDTH * BATCH * 4  # bytes of an activation


def chain(depth: int, forward: Callable[[Any, Any], Any], *, compiled: bool = True) -> tuple[Any, list[Any]]:
    """A step of a chain of layers, as a compiled function or not, and the weights after some steps."""
    generator = gg.Generator().manual_seed(0)
    model = nn.Sequential(*(nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Tanh()) for _ in range(depth)))
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=WIDTH**-0.5, generator=generator)
    optimizer = gg.optim.SGD(model.parameters(), lr=0.5)
    x = gg.randn(BATCH, WIDTH, generator=generator)

    def step(x: Any) -> Any:
        optimizer.zero_grad()
        loss = (forward(model, x) ** 2).mean()
        loss.backward()
        optimizer.step()
        return loss

    made = gg.compile(step, strict=True, threads=1) if compiled else step
    losses = [made(x) for _ in range(3)]
    return made, [*losses, *(parameter.detach() for parameter in model.parameters())]


def plain(model: Any, x: Any) -> Any:
    return model(x)


def sequential(model: Any, x: Any) -> Any:
    return checkpoint_sequential(model, None, x)


def halves(model: Any, x: Any) -> Any:
    layers = list(model.children())

    def first(x: Any) -> Any:
        return checkpoint(lambda x: nn.Sequential(*layers[2:4])(nn.Sequential(*layers[:2])(x)), x)

    return nn.Sequential(*layers[4:])(checkpoint(first, x))  # one inside of the other


@pytest.mark.parametrize("forward", [sequential, halves])
def test_gradients_are_the_same_to_the_last_bit(forward: Any) -> None:
    _, expected = chain(7, plain)
    step, found = chain(7, forward)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one.numpy(), other.numpy())
    assert step.stats.extra_flops > 0
    for one, other in zip(found, chain(7, forward, compiled=False)[1], strict=True):
        np.testing.assert_allclose(one.detach().numpy(), other.detach().numpy(), rtol=1e-4, atol=1e-6)


@pytest.mark.slow
def test_memory_of_a_chain_grows_with_the_root_of_its_length() -> None:
    """102 activations without checkpoints; with segments of k, k - 1, ... layers about sqrt(2 n) and a few."""
    whole, _ = chain(100, plain)
    step, _ = chain(100, sequential)
    assert whole.stats.peak_bytes > 100 * ONE
    assert whole.stats.extra_flops == 0
    assert step.stats.peak_bytes < (200**0.5 + 5) * ONE
    # All but the last layer of each segment once more: less than another forward pass.
    forward = 100 * 2 * WIDTH * WIDTH * BATCH
    assert forward / 2 < step.stats.extra_flops < 1.2 * forward


def test_memory_of_an_eager_chain_grows_with_the_root_of_its_length() -> None:
    found = {name: int(ran(EAGER, name)) for name in ("plain", "sequential")}
    one = 512 * 512 * 4
    assert found["plain"] > 95 * one
    assert found["sequential"] < 40 * one


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the system does not say what a process held")
def test_a_process_needs_less_memory() -> None:
    found = {name: int(ran(COMPILED, name)) for name in ("plain", "sequential")}
    # The batch is large beside what LLVM needs, which is a few MB more for the longer program.
    assert found["plain"] - found["sequential"] > 60 * 8192 * 64 * 4


EAGER = """
import sys, tracemalloc, glassgrad as gg
from glassgrad.checkpoint import checkpoint_sequential
layers = [gg.tanh] * 100
x = gg.full((512, 512), 0.5, requires_grad=True)
tracemalloc.start()
y = x
if sys.argv[1] == "plain":
    for layer in layers:
        y = layer(y)
else:
    y = checkpoint_sequential(layers, None, x)
y.sum().backward()
print(tracemalloc.get_traced_memory()[1])
"""
COMPILED = r"""
import re, sys, glassgrad as gg
from glassgrad import nn
from glassgrad.checkpoint import checkpoint_sequential
model = nn.Sequential(*(nn.Sequential(nn.Linear(64, 64), nn.Tanh()) for _ in range(100)))
def step(x):
    y = model(x) if sys.argv[1] == "plain" else checkpoint_sequential(model, None, x)
    loss = y.sum()
    loss.backward()
    return loss
gg.compile(step, strict=True, threads=1)(gg.ones(8192, 64))
print(int(re.search(r"VmHWM:\s+(\d+)", open("/proc/self/status", encoding="ascii").read())[1]) * 1024)
"""


def ran(program: str, name: str) -> str:
    return subprocess.run([sys.executable, "-c", program, name], check=True, capture_output=True, text=True).stdout


def test_the_policy_keeps_products() -> None:
    def block(x: Any) -> Any:
        return (x @ x).sin().exp().tanh() @ x

    def gradient(keep: Any) -> Any:
        @gg.compile(strict=True, threads=1)
        def step(x: Any) -> Any:
            x = x.detach().requires_grad_()
            y = checkpoint(block, x, keep=keep) if keep is not None else block(x)
            (y * y).sum().backward()
            return x.grad

        return step

    x = gg.randn(24, 24, generator=gg.Generator().manual_seed(1))
    steps = {keep: gradient(keep) for keep in (None, (), ("matmul",))}
    first, *others = [step(x).numpy() for step in steps.values()]
    for other in others:
        np.testing.assert_array_equal(other, first)
    product = 2 * 24**3
    assert steps[None].stats.extra_flops == 0
    assert steps[()].stats.extra_flops >= product
    assert 0 < steps["matmul",].stats.extra_flops < product


def test_dropout_draws_once() -> None:
    def run(*, marked: bool) -> Any:
        gg.manual_seed(4)
        w = gg.ones(32, 32, requires_grad=True)

        @gg.compile(strict=True)
        def step(x: Any) -> Any:
            def block(x: Any) -> Any:
                return nn.functional.dropout((x @ w).tanh(), 0.5).sin()

            y = checkpoint(block, x) if marked else block(x)
            y.sum().backward()
            return y

        x = gg.randn(8, 32, generator=gg.Generator().manual_seed(2))
        return step(x).detach().numpy(), w.grad.numpy()

    for one, other in zip(run(marked=True), run(marked=False), strict=True):
        np.testing.assert_array_equal(one, other)


def test_marks_are_part_of_the_name_on_the_disk() -> None:
    keys = {key_of_parts(chain(3, forward)[0].capture.graph) for forward in (plain, sequential)}
    assert len(keys) == 2


@pytest.mark.parametrize("threads", [1, 2])
def test_layers_with_a_shape_of_their_own(threads: int) -> None:
    """A transformer: views, permutations and fused ops on both sides of what holds the copies back."""
    from glassgrad.models.gpt import Block

    def run(*, marked: bool) -> tuple[Any, list[Any]]:
        gg.manual_seed(1)
        blocks = nn.ModuleList([Block(32, 4) for _ in range(3)])
        optimizer = gg.optim.AdamW(blocks.parameters())

        @gg.compile(strict=True, threads=threads)
        def step(x: Any) -> Any:
            for block in blocks:
                x = checkpoint(block, x) if marked else block(x)
            loss = (x * x).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            return loss

        x = gg.randn(2, 40, 32, generator=gg.Generator().manual_seed(2))
        return step, [step(x).item() for _ in range(3)]

    (whole, expected), (step, found) = (run(marked=marked) for marked in (False, True))
    # Other kernels are fused, so a product and a sum become one instruction elsewhere.
    np.testing.assert_allclose(found, expected, rtol=4 * np.finfo(np.float32).eps)
    assert step.stats.peak_bytes < 0.6 * whole.stats.peak_bytes


def limited(memory: Any) -> tuple[Any, list[Any]]:
    generator = gg.Generator().manual_seed(0)
    model = nn.Sequential(*(nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Tanh()) for _ in range(36)))
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=WIDTH**-0.5, generator=generator)
    x = gg.randn(BATCH, WIDTH, generator=generator)

    @gg.compile(strict=True, threads=1, memory=memory)
    def step(x: Any) -> Any:
        loss = (model(x) ** 2).mean()
        loss.backward()
        return loss

    return step, [step(x).item(), *(parameter.grad.numpy() for parameter in model.parameters())]


def test_a_limit_of_memory_is_kept_by_computing_little_twice() -> None:
    whole, expected = limited(None)
    found = []
    for activations in (40, 25, 18):
        step, results = limited(activations * ONE)
        for one, other in zip(results, expected, strict=True):
            np.testing.assert_array_equal(one, other)
        assert step.stats.peak_bytes <= activations * ONE
        assert step.stats.least_bytes == 0
        found.append(step.stats.extra_flops)
    assert found == sorted(found)
    assert found[0] == 0
    assert 0 < found[1] < found[2] < 36 * 2 * WIDTH * WIDTH * BATCH + 36 * BATCH * WIDTH * 3
    assert whole.stats.peak_bytes > 30 * ONE


@pytest.mark.slow
def test_the_least_possible_is_named_where_a_limit_cannot_be_kept() -> None:
    with pytest.warns(gg.errors.CompileWarning, match="more than the 5,000 of memory=") as told:
        step, results = limited("5 KB")
    assert f"{step.stats.peak_bytes:,} bytes" in str(told[0].message)
    assert step.stats.least_bytes == step.stats.peak_bytes
    assert step.stats.peak_bytes < 20 * ONE
    np.testing.assert_array_equal(results[1], limited(None)[1][1])


@pytest.mark.parametrize("memory", ["much", "3 apples", -1, True, "5 TB of it"])
def test_a_limit_that_is_no_size_is_refused(memory: Any) -> None:
    with pytest.raises(gg.errors.ArgumentError, match="a number of bytes, or a size"):
        gg.compile(lambda x: x, memory=memory)


def test_a_numpy_program_keeps_to_a_limit_of_memory() -> None:
    """By tracemalloc, which sees what NumPy asks for: what the program says it needs, and the same numbers."""
    whole, expected, most = numpy_program(None)
    assert whole.stats.extra_flops == 0
    found = []
    for part in (0.8, 0.6):
        limit = int(part * whole.stats.peak_bytes)
        step, results, taken = numpy_program(limit)
        for one, other in zip(results, expected, strict=True):
            np.testing.assert_array_equal(one, other)
        assert step.stats.peak_bytes <= limit
        assert step.stats.least_bytes == 0
        assert taken < most - 0.8 * (whole.stats.peak_bytes - step.stats.peak_bytes)
        found.append(step.stats.extra_flops)
    assert 0 < found[0] < found[1]


def test_a_numpy_program_names_the_least_possible() -> None:
    with pytest.warns(gg.errors.CompileWarning, match="more than the 5,000 of memory="):
        step, _, _ = numpy_program("5 KB")
    assert step.stats.least_bytes == step.stats.peak_bytes > 5000


def numpy_program(memory: Any) -> tuple[Any, list[Any], int]:
    """A chain of wide activations and small weights, its results, and the most that a call takes."""
    generator = gg.Generator().manual_seed(0)
    layers = [gg.randn(16, 16, generator=generator).mul_(0.25).requires_grad_() for _ in range(36)]
    x = gg.randn(4096, 16, generator=generator)

    @gg.compile(backend="numpy", strict=True, memory=memory)
    def step(x: Any) -> Any:
        for layer in layers:
            layer.grad = None
            x = (x @ layer).tanh()
        loss = (x**2).mean()
        loss.backward()
        return loss

    step(x)
    tracemalloc.start()
    loss = step(x).item()
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return step, [loss, *(layer.grad.numpy() for layer in layers)], most


@pytest.mark.parametrize("threads", [1, 2])
def test_what_a_plan_needs_is_known_before_code_is_written(threads: int) -> None:
    """The bytes that the planner goes by are those of the program; so no program is made in vain."""
    from glassgrad.compile import stages

    step, _ = chain(12, plain)
    graph = stages.planned(step.capture.graph, threads).graph
    program = stages.native(step.capture.graph, threads, stored=False)
    assert stages.needs(graph, threads) == program.stats.peak_bytes


def test_a_limit_that_scratch_memory_breaks_is_kept() -> None:
    layers = gg.nn.Sequential(*(gg.nn.Sequential(gg.nn.Linear(32, 32), gg.nn.Tanh()) for _ in range(20)))

    def gradients(x: gg.Tensor) -> None:
        layers(x).sum().backward()

    plain = gg.compile(gradients, threads=2)
    plain(gg.ones(64, 32))
    limit = plain.stats.peak_bytes * 7 // 10
    limited = gg.compile(gradients, threads=2, memory=limit)
    limited(gg.ones(64, 32))
    assert limited.stats.peak_bytes <= limit
    assert limited.stats.extra_flops > 0


def test_a_numpy_program_drops_what_is_checkpointed() -> None:
    """By tracemalloc: a chain of 40 keeps 40 activations and a few, or about the root of twice as many."""
    layers = [
        lambda x, w=w: (x @ w).tanh() for w in gg.randn(40, 16, 16, generator=gg.Generator().manual_seed(0)).unbind()
    ]

    def most(*, marked: bool) -> tuple[float, Any, Any]:
        @gg.compile(backend="numpy", strict=True)
        def step(x: Any) -> Any:
            y = x = x.detach().requires_grad_()
            for layer in [] if marked else layers:
                y = layer(y)
            (checkpoint_sequential(layers, None, x) if marked else y).sum().backward()
            return x.grad

        x = gg.randn(2048, 16, generator=gg.Generator().manual_seed(1))
        step(x)
        tracemalloc.start()
        try:
            gradient = step(x)
            return tracemalloc.get_traced_memory()[1] / (2048 * 16 * 4), gradient.numpy(), step.stats
        finally:
            tracemalloc.stop()

    (whole, expected, stats), (dropped, found, fewer) = most(marked=False), most(marked=True)
    assert whole > 40
    assert dropped < (2 * 40) ** 0.5 + 6
    np.testing.assert_array_equal(found, expected)
    assert stats.extra_flops == 0 < fewer.extra_flops < 40 * 2 * 2048 * 16 * 17
    assert fewer.peak_bytes < stats.peak_bytes / 2
