"""The work of the processes in test_processes.py: a newly started process finds it by this module's name."""

from __future__ import annotations

import os
import signal
import time
from typing import Any

import glassgrad as gg

assert gg.multiprocessing  # imported, it lets tensors travel as shared memory


def add_one(inbox: Any, outbox: Any, held: Any) -> None:
    held[0] += 10
    for _ in range(3):
        got = inbox.get()
        got.data.add_(1)
        outbox.put((got.is_shared(), got.requires_grad, type(got).__name__, os.getpid()))
    outbox.put(gg.arange(4.0).reshape(2, 2).T)
    inbox.get()  # what it has sent comes from this process: it has to live until it has arrived


def returned(number: int) -> gg.Tensor:
    return gg.full((3,), number)


def send_and_wait(queue: Any) -> None:
    mine = gg.ones(1000)
    queue.put(mine)
    time.sleep(600)


def fail(rank: int, how: str, seen: gg.Tensor) -> None:
    seen[rank] = 1
    if rank != 1:
        time.sleep(600)
    if how == "raise":
        raise ValueError("no such luck")
    if how == "exit":
        raise SystemExit(3)
    os.kill(os.getpid(), signal.SIGUSR1)


def wait(rank: int, seconds: float) -> None:
    time.sleep(seconds)
