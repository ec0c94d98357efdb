"""Steps that the garbage collector removes while others run."""

from __future__ import annotations

import gc
import threading

import numpy as np

from glassgrad.compile.native import runtime
from glassgrad.ops.core import PRIMITIVES, Primitive
from tests.compile.graphs import Array, Builder, lower


def test_a_step_that_is_collected_while_another_runs_does_not_wait_for_it(monkeypatch):
    """The collector may run in the middle of a step, in the thread that holds the workers."""
    dropped, collected, results = [], [], []

    def collecting(xp, x):
        if threading.current_thread() is not threading.main_thread():
            dropped.clear()
            collected.append(gc.collect())
        return x.copy()

    monkeypatch.setitem(PRIMITIVES, "collecting", Primitive("collecting", collecting, register=False))

    def graph(shift):
        b = Builder()
        x = b.input(64, 64)
        return b.build((x * 3 + shift).sin(), Array(b, b.graph.apply("collecting", [x.var], x.shape, x.dtype)))

    array = np.random.default_rng(0).normal(size=(64, 64)).astype(np.float32)
    dropped += [lower(graph(number), threads=2) for number in range(3)]
    for step in dropped:
        step(array)
    del step
    last = lower(graph(7), threads=2)
    assert "host" in [row.kind for row in last.explain()]
    thread = threading.Thread(target=lambda: results.append(last(array)), daemon=True)
    thread.start()
    thread.join(30)
    assert not thread.is_alive()
    assert collected
    np.testing.assert_array_equal(results[0][1], array)
    assert not runtime.pool().left
