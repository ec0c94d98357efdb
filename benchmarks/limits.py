"""What the machine can do at most: its rate for matrix products and its memory bandwidth, measured, not looked up."""

from __future__ import annotations

import functools
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

SIDE = 1536
MEGABYTES = 256
ROUNDS = 5


@dataclass(frozen=True)
class Limits:
    """Operations and bytes a second."""

    flops: float
    bandwidth: float

    def seconds(self, flops: float, moved: float) -> float:
        """The least time for a step that does `flops` and moves `moved` bytes, if neither could hide the other."""
        return flops / self.flops + moved / self.bandwidth

    def __str__(self) -> str:
        return f"{self.flops / 1e9:.0f} GFLOP/s in float32 matrix products, {self.bandwidth / 1e9:.1f} GB/s copying"


def seconds_of(work: Callable[[], object]) -> float:
    """The median of a few timings, after a first that is not counted."""
    work()
    timings = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        work()
        timings.append(time.perf_counter() - start)
    return statistics.median(timings)


@functools.cache
def measured() -> Limits:
    """The limits of this machine, measured once a process."""
    left = np.random.default_rng(0).standard_normal((SIDE, SIDE), dtype=np.float32)
    product = np.empty_like(left)
    source = np.ones((MEGABYTES << 20) // 8, np.float64)
    target = np.empty_like(source)
    flops = 2 * SIDE**3 / seconds_of(lambda: np.matmul(left, left, out=product))
    bandwidth = 2 * source.nbytes / seconds_of(lambda: np.copyto(target, source))
    return Limits(flops, bandwidth)
