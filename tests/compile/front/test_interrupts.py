"""Ctrl-C during a trace comes to the user, and leaves the state as it was."""

from __future__ import annotations

import gc
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


class _Dropped:
    def __init__(self, action):
        self.action = action

    def __del__(self):
        self.action()


@pytest.mark.parametrize("where", ["weak reference", "collection", "deletion"])
def test_ctrl_c_where_python_drops_what_is_raised_comes_after_it(where, tmp_path):
    """What is raised in a callback of a weak reference or of a collection, or in `__del__`, only becomes a warning."""
    lines = "def inner(): signal.raise_signal(signal.SIGINT)\ninner(); over.touch()"
    file = "_weakrefset.py" if where == "weak reference" else "callback.py"
    callback = types.FunctionType(compile(lines, file, "exec"), {"signal": signal, "over": tmp_path / "over"})

    def collected(phase, _facts):
        if phase == "stop" and not (tmp_path / "over").exists():
            callback()

    def run(x):
        if where == "collection":
            gc.callbacks.append(collected)
            gc.collect()
        elif where == "deletion":
            _Dropped(callback)
        else:
            callback()
        for _ in range(100000):
            x = x + 1
        return x.sum()

    try:
        with pytest.raises(KeyboardInterrupt):
            compiled(run)(X)
    finally:
        gc.callbacks[:] = [one for one in gc.callbacks if one is not collected]
    assert (tmp_path / "over").exists()
