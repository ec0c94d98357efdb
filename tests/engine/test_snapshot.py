"""Snapshots: all given objects are restored, and nothing else is written."""

from __future__ import annotations

import random

import numpy as np
import pytest

import glassgrad as gg
from glassgrad import nn, optim
from glassgrad.base.undo import stream as rewinder
from glassgrad.engine.snapshot import Snapshot


def test_a_training_step_leaves_nothing_behind() -> None:
    gg.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Dropout(0.5))
    optimizer = optim.Adam(model.parameters(), lr=0.1)

    def step() -> float:
        optimizer.zero_grad()
        loss = (model(gg.randn(5, 3)) ** 2).mean()
        loss.backward()
        optimizer.step()
        return float(loss)

    step()
    tensors = [*model.parameters(), *model.buffers()]
    arrays, grads = [one.array for one in tensors], [one.grad for one in model.parameters()]
    before = Snapshot(tensors=tensors, gradients=model.parameters(), states=[optimizer], randoms=True)
    told = []
    for _ in range(3):
        values = [one.array.copy() for one in tensors]
        told.append([step(), step()])
        before.restore()
        assert all(one.array is array for one, array in zip(tensors, arrays, strict=True))
        assert all(one.grad is g for one, g in zip(model.parameters(), grads, strict=True))
        for one, value in zip(tensors, values, strict=True):
            np.testing.assert_array_equal(one.array, value)
    assert told[0] == told[1] == told[2]
    assert told[0][0] != told[0][1]


@pytest.mark.parametrize("value", [np.nan, -0.0, 1.0])
def test_views_follow_and_every_bit_comes_back(value: float) -> None:
    x = gg.tensor([value, 2.0])
    view = x[:1]
    bits = x.array.tobytes()
    before = Snapshot(tensors=[x])
    x.zero_()
    x.array = np.ones(2, np.float32)
    before.restore()
    assert x.array.tobytes() == bits
    assert view.array.tobytes() == bits[:4]


def test_a_graph_that_is_alive_goes_backward_only_if_what_it_saved_is_what_it_was() -> None:
    x = gg.ones(2, requires_grad=True)
    early = (x * x).sum()
    before = Snapshot(tensors=[x])
    before.restore()
    early.backward()
    np.testing.assert_array_equal(x.grad.numpy(), [2.0, 2.0])
    with gg.no_grad():
        x.add_(1)
    within = (x * x).sum()
    before.restore()
    with pytest.raises(RuntimeError):
        within.backward()


@pytest.mark.parametrize(
    ("stream", "draw"),
    [
        (gg.Generator().manual_seed(3), lambda one: gg.rand(2, generator=one).tolist()),
        (np.random.default_rng(3), lambda one: one.normal()),
        (np.random.RandomState(3), lambda one: one.normal()),
        (random.Random(3), lambda one: one.random()),
    ],
)
def test_streams_are_rewound(stream, draw) -> None:
    rewind = rewinder(stream)
    first = draw(stream), draw(stream)
    rewind()
    assert (draw(stream), draw(stream)) == first
    assert draw(stream) != first[0]
