"""`python -m benchmarks.phases w1 [--threads N]`: show the time of each phase of a compiled step, measured in place.

A phase is the work between two barriers; one thread has no barriers, so every kernel is shown as a phase. The phases
run in order, as in a call, each started from Python: the caches therefore have the same content as in a step, and a
phase takes the same time. The cost of starting, measured with an empty phase, is subtracted. The rows below a phase are
its kernels. Then come the parts of a call: only native code, native code with the checks of its arguments, and the
whole call from Python.
"""

from __future__ import annotations

import argparse
import importlib
import statistics
import time
from functools import partial
from typing import Any

import numpy as np

import glassgrad as gg
from benchmarks.workloads import WORKLOADS
from glassgrad.compile.stages import native


def compiled_step(key: str) -> tuple[Any, Any]:
    """Return the `run` of our native peer, and the compiled function in it, which `run` has called."""
    workload = WORKLOADS[key]
    module = workload.peers["glassgrad compiled"].partition(":")[0]
    made: list[Any] = []
    plain = gg.compile

    def remember(function, **options):
        made.append(plain(function, **options))
        return made[-1]

    gg.compile = remember
    try:
        run = importlib.import_module(f"{workload.package}.{module}").build("llvm")
    finally:
        gg.compile = plain
    run(3)
    return run, made[0]


def seconds_of(work: Any, turns: int) -> float:
    """Return the median time of single calls."""
    timings = []
    for _ in range(turns):
        start = time.perf_counter()
        work()
        timings.append(time.perf_counter() - start)
    return statistics.median(timings)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.phases")
    ours = [key for key, workload in WORKLOADS.items() if "glassgrad compiled" in workload.peers]
    parser.add_argument("workload", choices=ours)
    parser.add_argument("--threads", type=int, help="shares of the step (default: the compiler's choice)")
    options = parser.parse_args()
    run, compiled = compiled_step(options.workload)
    program = compiled.program
    threads = options.threads or program.stats.threads
    executable = native(program.graph, threads, as_it_is=True, stored=False, separate=threads == 1)
    step = executable.step
    arrays = [np.zeros(var.shape, var.dtype) for var in (*step.inputs, *step.outputs)]
    arguments = tuple(arrays)
    assert step.run(arguments) == 0
    assert step.is_plain, "a step with parts on the host has no phases of its own"
    alone = int(step.shares == 1)
    turns = int(np.clip(1.0 / seconds_of(lambda: step.run(arguments), 5), 10, 3000))
    names = range(step.layout.phases)
    start = seconds_of(lambda: step.resume(step.address, alone, 0), 100)
    one_phase = partial(step.resume, step.address, alone, 1)
    times = np.array([[seconds_of(one_phase, 1) for _ in names] for _ in range(turns)]) - start
    rows = iter(executable.explain())
    for number, tasks in enumerate(executable.emitted.schedule.phases):
        kernels, seconds = [next(rows) for _ in tasks], float(np.median(times[:, number]))
        rate = sum(kernel.flops for kernel in kernels) / seconds / 1e9
        print(f"{seconds * 1e6:9.2f} µs {rate:6.1f} GF/s", *kernels, sep="\n        ")
    print(f"{np.median(times.sum(axis=1)) * 1e6:9.2f} µs in all, on {step.shares} threads")
    print(f"{seconds_of(lambda: step.run(arguments), turns) * 1e6:9.2f} µs in one call of native code")
    print(f"{seconds_of(lambda: run(10), max(turns // 10, 3)) * 1e5:9.2f} µs in one call of the compiled function")


if __name__ == "__main__":
    main()
