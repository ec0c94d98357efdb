"""Compiled functions in children of a process that has threads."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import pytest


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("backend", ["llvm", "numpy"])
def test_a_child_that_is_forked_while_another_thread_runs_a_step(backend):
    code = f"""
    import os, signal, threading
    import glassgrad as gg
    weight = gg.ones(64, 64)
    step = gg.compile(lambda x: (x @ weight).tanh().sum(), backend={backend!r}, threads=2)
    x = gg.ones(64, 64)
    want = step(x).item()
    over = []
    def run():
        while not over:
            step(x)
    threads = [threading.Thread(target=run) for _ in range(3)]
    [thread.start() for thread in threads]
    good = 0
    for _ in range(10):
        child = os.fork()
        if not child:
            signal.alarm(10)
            os._exit(0 if step(x).item() == want else 1)
        good += os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    over.append(True)
    [thread.join() for thread in threads]
    print(good)
    """
    code = "import warnings; warnings.simplefilter('ignore')\n" + textwrap.dedent(code)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=100, check=False)
    assert done.stdout.strip() == "10", done.stderr
