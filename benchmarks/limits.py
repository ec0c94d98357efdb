"""The measured limits of the machine: its rate of matrix products and its bandwidth.

A step takes at least the time of its operations at the rate of matrix products, and at least the time for copying its
bytes. A good step does both at once, so the larger time is the limit. A step that moves few bytes works in the caches,
which are several times as fast as memory; the bandwidth is therefore measured by repeatedly copying the same number of
bytes on all cores.
"""

from __future__ import annotations

import functools
import os
import statistics
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

SIDE = 1536
ROUNDS = 5
# Bytes read and written in a round of copying: first-level and second-level cache, shared cache, memory.
SIZES = (1 << 15, 1 << 20, 1 << 24, 1 << 29)
PRIVATE = 1 << 21  # up to so many bytes, cores copy in caches of their own


@dataclass(frozen=True)
class Limits:
    """Operations per second, and bytes per second by the number of bytes moved, the fewest first."""

    flops: float
    bandwidths: tuple[tuple[int, float], ...]

    def bandwidth(self, moved: float) -> float:
        """Return the bytes per second for a step that moves `moved` bytes."""
        return next((rate for size, rate in self.bandwidths if size >= moved), self.bandwidths[-1][1])

    def seconds(self, flops: float, moved: float) -> float:
        """The least time for a step that does `flops` and moves `moved` bytes, if each hides behind the other."""
        return max(flops / self.flops, moved / self.bandwidth(moved))

    def text(self, moved: float) -> str:
        """Return the assumptions for a step that moves this many bytes."""
        copying = f"{self.bandwidth(moved) / 1e9:.0f} GB/s copying so much"
        return f"{self.flops / 1e9:.0f} GFLOP/s in float32 matrix products or {copying}"


def seconds_of(work: Callable[[], object]) -> float:
    """Return the median of a few timings, without the first one."""
    work()
    timings = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        work()
        timings.append(time.perf_counter() - start)
    return statistics.median(timings)


def product_rate() -> float:
    """Measure the operations per second of a large product: NumPy's, or ours if it is faster."""
    left = np.random.default_rng(0).standard_normal((SIDE, SIDE), dtype=np.float32)
    product = np.empty_like(left)
    times = [seconds_of(lambda: np.matmul(left, left, out=product))]
    try:
        import glassgrad as gg

        compiled, operand = gg.compile(lambda x: x @ x), gg.tensor(left)
        times.append(seconds_of(lambda: compiled(operand)))
    except (ImportError, OSError):
        pass  # native code cannot be made here; NumPy's rate is the better one then
    return 2 * SIDE**3 / min(times)


def copying_rate(size: int) -> float:
    """Measure the bytes per second, read and written, of copying on all cores; `size` counts reads and writes."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if size <= PRIVATE:
        source, target = np.ones((2, size // 16))
        repeats = max(1, (1 << 24) // size)
        return cores * repeats * size / seconds_of(lambda: [np.copyto(target, source) for _ in range(repeats)])
    pairs = [np.ones((2, size // 16 // cores)) for _ in range(cores)]
    repeats = max(1, (1 << 28) // size)

    def work() -> None:
        threads = [threading.Thread(target=_copy, args=(pair, repeats)) for pair in pairs]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    return repeats * size / seconds_of(work)


def _copy(pair: np.ndarray, repeats: int) -> None:
    for _ in range(repeats):
        np.copyto(pair[1], pair[0])


@functools.cache
def measured() -> Limits:
    """Return the limits of this machine, measured once per process."""
    return Limits(product_rate(), tuple((size, copying_rate(size)) for size in SIZES))
