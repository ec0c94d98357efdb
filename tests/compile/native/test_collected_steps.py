"""Steps that the garbage collector takes away while others run."""

from __future__ import annotations

import gc
import threading

import numpy as np

from glassgrad.compile.native import runtime
from glassgrad.compile.native.executable import NativeStep
from tests.compile.graphs import Builder, lower


def test_a_step_that_is_collected_while_another_runs_does_not_wait_for_it(monkeypatch):
    """The collector may run in the middle of a step, in the thread that holds the workers."""

    def graph(shift):
        b = Builder()
        x = b.input(64, 64)
        return b.build((x * 3 + shift).sin(), b("cumsum", x, axis=1, reverse=False))

    array = np.random.default_rng(0).normal(size=(64, 64)).astype(np.float32)
    dropped = [lower(graph(number), threads=2) for number in range(3)]
    for step in dropped:
        step(array)
    del step
    last = lower(graph(7), threads=2)
    original, collected = NativeStep._on_host, []

    def collecting(self, *args):
        dropped.clear()
        collected.append(gc.collect())
        original(self, *args)

    monkeypatch.setattr(NativeStep, "_on_host", collecting)
    thread = threading.Thread(target=lambda: collected.append(last(array)), daemon=True)
    thread.start()
    thread.join(30)
    assert not thread.is_alive()
    np.testing.assert_allclose(collected[-1][1], np.cumsum(array, 1), rtol=1e-5, atol=1e-5)
    assert not runtime.pool().left
