"""Ctrl-C during a trace comes to the user, and leaves the state as it was."""

from __future__ import annotations

import signal
import threading
import types

import pytest

from glassgrad import nn
from tests.compile.front.test_failing_well import X, compiled


def test_ctrl_c_while_tracing():
    layer = nn.Linear(2, 2)

    def run(x):
        for _ in range(100000):
            x = layer(x)
        return x.sum().detach()

    array = layer.weight.array
    timer = threading.Timer(0.3, lambda: signal.raise_signal(signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        compiled(run)(X)
    timer.join()
    assert layer.weight.array is array
    assert layer(X).shape == (2, 2)


def test_ctrl_c_in_the_callback_of_a_weak_reference_comes_after_it(tmp_path):
    """Python drops what is raised in such a callback, so the interrupt waits until it is over."""
    lines = "signal.raise_signal(signal.SIGINT); over.touch()"
    callback = types.FunctionType(
        compile(lines, "_weakrefset.py", "exec"), {"signal": signal, "over": tmp_path / "over"}
    )

    def run(x):
        callback()
        for _ in range(100000):
            x = x + 1
        return x.sum()

    with pytest.raises(KeyboardInterrupt):
        compiled(run)(X)
    assert (tmp_path / "over").exists()
