"""The process of a peer: it builds the step, then answers requests, one line of JSON each.

A peer builds a step, ``run(count) -> loss``, or an object with its own ``answer(request) -> reply``. A separate process
for each peer isolates the thread pools, allocators and imports of the libraries from each other.
"""

from __future__ import annotations

import importlib
import json
import os
import re
import resource
import sys
import time
import traceback
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import isa

Run = Callable[[int], float]
THIRD_PARTY = ("torch", "jax", "jaxlib", "autograd", "micrograd", "mkl")


def peak_megabytes() -> float:
    """Return the peak memory of this process in MB."""
    # On Linux, a child inherits the getrusage value of its parent, which may be the larger one.
    status = Path("/proc/self/status")
    if status.exists() and (found := re.search(r"^VmHWM:\s+(\d+) kB", status.read_text(), re.MULTILINE)):
        return int(found[1]) / 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1024 * 1024 if sys.platform == "darwin" else 1024)


def work_of(run: Run) -> dict[str, float] | None:
    """Return floating-point operations and bytes of a step if the peer knows them (our compiled steps do)."""
    stats = getattr(run, "stats", None)
    return None if stats is None else {"flops": float(stats().flops), "bytes": float(stats().bytes)}


def calibrate(run: Run, seconds: float) -> int:
    """Return the number of steps that take about `seconds`; running them also warms the peer up."""
    chunk = getattr(run, "chunk", 1)
    count = chunk
    while True:
        start = time.perf_counter()
        run(count)
        elapsed = time.perf_counter() - start
        if elapsed >= seconds / 4:
            return max(chunk, round(count * seconds / elapsed / chunk) * chunk)
        count *= 2 if elapsed > seconds / 64 else 8


def timed(run: Run, count: int) -> dict[str, float]:
    """Return the seconds per step over `count` steps."""
    start = time.perf_counter()
    loss = run(count)
    return {"seconds": (time.perf_counter() - start) / count, "loss": loss}


def answer(run: Run, request: dict[str, Any]) -> dict[str, Any]:
    """Do the harness's request."""
    match request["do"]:
        case "losses":
            start, stores = time.perf_counter(), getattr(run, "stores", False)
            losses = [run(1)]
            first = time.perf_counter() - start
            if check := getattr(run, "check", None):  # another training: none of its losses has been taken yet
                run, losses = check, []
            losses += [run(1) for _ in range(request["count"] - len(losses))]
            return {"losses": losses, "first": first, "stores": stores}
        case "calibrate":
            return {"count": calibrate(run, request["seconds"])}
        case "time":
            return timed(run, request["count"])
        case "excess":
            return {"excess": isa.excess()}
        case "peak":
            return {"megabytes": peak_megabytes(), "work": work_of(run)}
    raise ValueError(f"unknown request {request['do']!r}")


def missing(error: Exception) -> str:
    """Return what a peer lacks (a library, or a missing part of ours), or '' if the error is a real one."""
    if isinstance(error, ModuleNotFoundError) and (error.name or "").split(".")[0] in THIRD_PARTY:
        return f"{error.name} is not installed"
    if isinstance(error, AttributeError) and str(error).startswith("glassgrad has no "):
        return f"{str(error).splitlines()[0].rstrip('.')} in this version"
    return ""


def build(module: str, mode: str) -> tuple[Run | None, dict[str, Any]]:
    """Return the peer's step and the greeting with the outcome of building it."""
    start = time.perf_counter()
    try:
        run = importlib.import_module(module).build(mode)
    except (ModuleNotFoundError, AttributeError) as error:
        if what := missing(error):
            return None, {"missing": what}
        return None, {"failed": traceback.format_exc()}
    except Exception:  # noqa: BLE001 -- any failure of a peer is a line of the report, not the end of it
        return None, {"failed": traceback.format_exc()}
    return run, {"ready": time.perf_counter() - start}


def main() -> None:
    """Serve requests from stdin until it closes; the peer's output goes to stderr."""
    module, mode = sys.argv[1], sys.argv[2]
    channel = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    np.seterr(all="ignore")
    run, greeting = build(module, mode)
    channel.write(json.dumps(greeting) + "\n")
    if run is None:
        return
    handle = getattr(run, "answer", partial(answer, run))
    for line in sys.stdin:
        try:
            reply = handle(json.loads(line))
        except Exception:  # noqa: BLE001 -- as above
            reply = {"failed": traceback.format_exc()}
        channel.write(json.dumps(reply) + "\n")


if __name__ == "__main__":
    main()
