"""Measure how much of the machine other processes used during a measurement; without this number no ratio is credible.

A library whose threads wait for each other at barriers loses far more than its share if a core is busy. A comparison
on a busy machine is therefore not only noisy but wrong.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Iterable
from pathlib import Path

BUSY = 0.15  # of one core; the system itself always does a little
MARK = "**The machine was busy"
STAT = Path("/proc/stat")


def machine_seconds() -> float:
    """Return the busy seconds of all cores together since boot; NaN if the system does not report them."""
    if not STAT.exists():
        return math.nan
    user, nice, system, _idle, _wait, irq, soft, steal = (int(word) for word in STAT.read_text().split()[1:9])
    return (user + nice + system + irq + soft + steal) / os.sysconf("SC_CLK_TCK")


def process_seconds(pid: int) -> float:
    """Return the processor time of a process with all its threads and finished children."""
    path = Path(f"/proc/{pid}/stat")
    if not path.exists():
        return 0.0
    fields = path.read_text().rpartition(")")[2].split()
    return sum(int(word) for word in fields[11:15]) / os.sysconf("SC_CLK_TCK")


class Watch:
    """Measures, from its creation on, how many cores other processes kept busy."""

    def __init__(self, pids: Iterable[int]) -> None:
        self.pids = [os.getpid(), *pids]
        self.start = time.perf_counter()
        self.machine = machine_seconds()
        self.ours = sum(process_seconds(pid) for pid in self.pids)

    def others(self) -> float:
        """Return the average number of cores that others used; NaN if the system does not report it."""
        elapsed = max(time.perf_counter() - self.start, 1e-9)
        ours = sum(process_seconds(pid) for pid in self.pids) - self.ours
        return max(0.0, machine_seconds() - self.machine - ours) / elapsed if not math.isnan(self.machine) else math.nan


def verdict(others: float) -> str:
    """Return a sentence for the report, or '' if no other process used the machine."""
    if math.isnan(others) or others <= BUSY:
        return ""
    return (
        f"{MARK}: other processes used {others:.2f} cores while this was measured. "
        "Do not trust these ratios; run it again on a quiet machine.**"
    )


def wait_for_quiet(limit: float) -> None:
    """Return when nobody else has used the machine for two seconds, or after `limit` seconds."""
    end = time.perf_counter() + limit
    while time.perf_counter() < end:
        watch = Watch([])
        time.sleep(2.0)
        if not watch.others() > BUSY:
            return
