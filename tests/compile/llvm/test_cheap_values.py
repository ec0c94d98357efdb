"""Cheap values computed again: the same numbers in less memory, and steps that stay unchanged."""

from __future__ import annotations

from typing import Any

import numpy as np

import glassgrad as gg
from glassgrad import nn
from glassgrad.checkpoint import checkpoint
from glassgrad.compile import stages
from glassgrad.compile.ir.graph import Graph
from glassgrad.compile.plan.cheap import without_cheap
from glassgrad.compile.plan.native_form import normalise
from glassgrad.compile.plan.recompute import extra_flops
from glassgrad.nn import functional as F

CHANNELS, SIDE, BATCH = 8, 12, 4
ONE = BATCH * CHANNELS * SIDE * SIDE * 4  # bytes of an array of activations


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(CHANNELS, CHANNELS, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(CHANNELS)

    def forward(self, x: Any) -> Any:
        return F.relu6(self.norm(self.conv(x)))


def graph_of(layers: nn.Module, forward: Any = None) -> Graph:
    """The training step of a network in native form."""
    optimizer = gg.optim.SGD(layers.parameters(), lr=0.1)

    def step(x: Any) -> Any:
        optimizer.zero_grad()
        loss = (forward or layers)(x).square().mean()
        loss.backward()
        optimizer.step()
        return loss

    compiled = gg.compile(step, strict=True, threads=1, keep_grads=False)
    compiled(gg.randn(BATCH, CHANNELS, SIDE, SIDE, generator=gg.Generator().manual_seed(1)))
    return normalise(stages.prepared(compiled.capture.graph), stages.abilities(), 1)


def ran(graph: Graph) -> tuple[Any, list[Any]]:
    """The program of a graph, and all that it computes and writes."""
    program = stages.native(graph, 1, as_it_is=True, stored=False)
    rng = np.random.default_rng(0)
    arrays = [np.array(rng.normal(size=var.shape) + 1, var.dtype) for var in graph.inputs]
    return program, [*program(*arrays), *arrays]


def test_the_same_numbers_in_less_memory() -> None:
    graph = graph_of(nn.Sequential(*(Block() for _ in range(6))))
    light = without_cheap(graph, least=ONE)
    (plain, expected), (fewer, found) = ran(graph), ran(light)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-7)  # sums are fused with other loops
    # Of each layer the result of its convolution, instead of two or three arrays.
    assert plain.stats.peak_bytes - fewer.stats.peak_bytes > 5 * ONE
    assert plain.stats.extra_flops == 0 < fewer.stats.extra_flops < 6 * 8 * ONE / 4


def test_a_rectified_convolution_keeps_what_it_kept() -> None:
    """Its result alone is read by the backward pass: dropping it would keep the convolution's in its place."""
    graph = graph_of(nn.Sequential(nn.Conv2d(CHANNELS, CHANNELS, 3, padding=1), nn.ReLU(), nn.Conv2d(CHANNELS, 4, 3)))
    assert without_cheap(graph, least=ONE) is graph


def test_sums_of_two_arrays_are_kept() -> None:
    """A residual stream is made of itself: computed again from its beginning, it would be there twice."""
    blocks = nn.ModuleList(Block() for _ in range(4))

    def forward(x: Any) -> Any:
        for block in blocks:
            x = x + block(x)
        return x

    light = without_cheap(graph_of(blocks, forward), least=ONE)
    # Mean, deviation, scale and bias of four batch norms, and nothing else: activations are read by sums alone.
    again = [instr.op for instr in light.instrs if getattr(instr.where, "role", "") == "again"]
    assert {"add", "multiply", "subtract"} <= {*again} <= {"add", "multiply", "subtract", "reshape"}
    assert extra_flops(light) == 4 * 4 * ONE / 4


def test_what_is_small_or_marked_by_the_user_is_left_alone() -> None:
    layers = nn.Sequential(*(Block() for _ in range(3)))
    graph = graph_of(layers)
    assert without_cheap(graph) is graph
    assert without_cheap(graph, least=32 * ONE) is graph  # arrays are large enough, but too few
    checkpointed = graph_of(layers, lambda x: checkpoint(layers, x))
    assert without_cheap(checkpointed, least=ONE) is checkpointed


def test_a_step_with_weights_as_large_as_its_activations_is_left_alone() -> None:
    blocks = [Block(), Block(), nn.Flatten()]
    small, large = graph_of(nn.Sequential(*blocks)), graph_of(nn.Sequential(*blocks, nn.Linear(ONE // 16, 64)))
    assert without_cheap(small, least=ONE) is not small
    assert without_cheap(large, least=ONE) is large
