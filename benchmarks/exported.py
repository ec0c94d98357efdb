"""Training steps as C beside our native ones: gcc, clang, and products by OpenBLAS, with one thread and with two.

The C is what `export_c` writes. The options of the compilers are those of the written Makefile.
"""

from __future__ import annotations

import dataclasses
import importlib
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import glassgrad as gg
from benchmarks import harness, quiet, results
from benchmarks.workload import Bar, Workload
from benchmarks.workloads import WORKLOADS
from benchmarks.workloads._c import FLAGS, training_step
from benchmarks.workloads._glassgrad import prepared

TITLE = "Training steps as C, beside our native ones"
NATIVE, OPENBLAS = "glassgrad compiled", "C by gcc, OpenBLAS"
PEERS = {
    NATIVE: "glassgrad_peer:llvm",
    "C by gcc": "c_peer:gcc",
    "C by clang": "c_peer:clang",
    OPENBLAS: "c_peer:gcc+blas",
}
# The least share of the native step's speed that is wanted, by workload.
WANTED = {"w1": {"C by gcc": 0.7}, "w3": {"C by gcc": 0.5, OPENBLAS: 0.9}, "w5": {"C by gcc": 0.7}}
THREADS = (1, 2)
SECONDS = 0.4  # of a turn


def workload_of(key: str) -> Workload:
    """The workload with the peers of this table, and the speeds that are wanted."""
    bars = tuple(Bar(name, (NATIVE,), round(1 / share, 2)) for name, share in WANTED[key].items())
    return dataclasses.replace(WORKLOADS[key], peers=PEERS, reference=NATIVE, bars=bars)


def measure(threads: int | None, rounds: int) -> tuple[str, str, dict[str, Any]]:
    """Title, text and raw numbers."""
    rows, verdicts, data, busy = [], [], {}, 0.0
    for key in WANTED:
        workload = workload_of(key)
        for count in THREADS if threads is None else (threads,):
            outcomes = harness.run(workload, rounds=rounds, threads=count, seconds=SECONDS)
            native = next(one for one in outcomes if one.name == NATIVE)
            rows += [row(key, count, one, native) for one in outcomes if one.rounds]
            verdicts += [f"- {key}, {one.name}: {results.trouble_line(one)}" for one in outcomes if one.trouble]
            verdicts += [f"{results.judge(bar, outcomes)} ({key}, threads: {count})" for bar in workload.bars]
            data[f"{key}-{count}"] = [dataclasses.asdict(one) for one in outcomes]
            busy = max([busy, *(one.others for one in outcomes if one.rounds)])
    table = results.markdown_table(["step", "threads", "peer", "median step", "speed of native"], rows)
    sizes = results.markdown_table(
        ["step", "lines", "source", "object", "values", "state"], [size_row(key) for key in WANTED]
    )
    text = [*filter(None, [quiet.verdict(busy)]), table, "\n".join(verdicts), "Sizes, the object by gcc:", sizes]
    return TITLE, "\n\n".join(text), data


def row(key: str, threads: int, one: harness.Outcome, native: harness.Outcome) -> list[str]:
    """A line of the table."""
    return [key, str(threads), one.name, results.duration(one.median), f"{native.median / one.median:.2f}"]


def size_row(key: str) -> list[str]:
    """The lines of the source, and the bytes of source, object, values between kernels and state."""
    package = WORKLOADS[key].package
    peer, problem = (importlib.import_module(f"{package}.{name}") for name in ("glassgrad_peer", "problem"))
    step = gg.compile(training_step(peer.parts()), backend="numpy", strict=True)
    step(*prepared(problem.batches())[0])
    with tempfile.TemporaryDirectory(prefix="glassgrad-bench-") as name:
        folder = Path(name)
        step.export_c(folder)
        source, header = ((folder / file).read_text() for file in ("step.c", "step.h"))
        made = "–"
        if shutil.which("gcc"):
            subprocess.run(["gcc", *FLAGS, "-c", "step.c"], cwd=folder, check=True, capture_output=True)
            made = f"{(folder / 'step.o').stat().st_size:,}"
        arena = int(header.split("STEP_ARENA_BYTES = ")[1].split(",")[0])
        state = (folder / "step.weights").stat().st_size
    return [key, f"{source.count(chr(10)):,}", f"{len(source):,}", made, f"{arena:,}", f"{state:,}"]
