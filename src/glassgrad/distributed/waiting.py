"""Waiting for other processes in a way that keeps Ctrl-C and time limits working and leaves shared cores free.

An MPI library polls during a blocking call: it uses a whole core and receives no signals. Every call here is therefore
non-blocking, and this file polls it with pauses.
"""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from glassgrad import errors
from glassgrad.base import provenance
from glassgrad.distributed.world import ProcessGroup
from glassgrad.engine.reports.announced import announced

_EAGER = 64  # polls before the first pause: a small message on one machine takes about 10 us
_SPIN = 0.02  # seconds of yielding to other processes before the pauses become sleeps
# The current wait of this rank, for the guard: the number of waits so far, and the name of the call; None outside.
CURRENT: tuple[int, str] | None = None
passed = 0  # the number of collectives that this rank has reached
_NUMBERS = itertools.count(1)
_yield: Callable[[], None] = getattr(os, "sched_yield", lambda: time.sleep(0))


def wait_until(done: Callable[[], bool], group: ProcessGroup, call: str, seconds: float | None = None) -> None:
    """Return when `done()` is true.

    Raises:
        DistributedError: the group's time limit has passed.
    """
    global CURRENT, passed
    passed += 1
    for _ in range(_EAGER):
        if done():
            return
    before, CURRENT = CURRENT, (next(_NUMBERS), call)
    try:
        _wait(done, group, call, group.seconds if seconds is None else seconds)
    finally:
        CURRENT = before


def _wait(done: Callable[[], bool], group: ProcessGroup, call: str, limit: float) -> None:
    start = time.monotonic()
    while not done():
        waited = time.monotonic() - start
        if waited > limit:
            others = ", ".join(str(rank) for rank in group.ranks if rank != group.ranks[group.me])
            raise errors.NO_ANSWER(
                call=call, rank=group.ranks[group.me], others=others, seconds=limit, where=provenance.here()
            )
        if waited > _SPIN or group.crowded:
            time.sleep(min(1e-3, max(2e-5, waited / 50)))
        else:
            _yield()


@contextmanager
def busy(what: str) -> Iterator[None]:
    """Announce that this block takes long, so that other ranks do not think this one hangs.

    A rank that others wait for is ended if it does nothing for eight seconds, or stays in one call of one function.
    The compiler announces itself.

    Args:
        what: a few words about the work.

    Example:
        >>> import glassgrad.distributed as dist
        >>> with dist.busy("evaluation on rank 0"):
        ...     total = sum(range(1000))
    """
    with announced(what):
        yield


Stage = tuple[Callable[[], Any], Callable[[], Any] | None]  # a check whether it is done, and the function to call then


class Work:
    """A call in progress, which collectives return with ``async_op=True``.

    Its tensors may be neither read nor written before `wait` has returned.

    Example:
        >>> import glassgrad as gg, glassgrad.distributed as dist
        >>> dist.init_process_group()
        >>> x = gg.ones(2)
        >>> work = dist.all_reduce(x, async_op=True)
        >>> work.wait()
        True
        >>> dist.destroy_process_group()
    """

    def __init__(self, group: ProcessGroup, call: str, stages: list[Stage], tensors: list[Any] | None = None) -> None:
        self._group = group
        self._call = call
        self._stages = stages
        self._tensors = tensors or []
        if stages:
            group.pending.add(self)  # keeps the memory alive even if this object is dropped

    def _ask(self) -> bool:
        while self._stages:
            done, follow = self._stages[0]
            if not done():
                return False
            self._stages.pop(0)
            if follow is not None:
                follow()
        self._group.pending.discard(self)
        return True

    def is_completed(self) -> bool:
        """Tell whether the call is done, without waiting."""
        return self._ask()

    def is_success(self) -> bool:
        """Tell whether the call is done; a failed call raises in `wait`."""
        return self._ask()

    def wait(self, timeout: timedelta | float | None = None) -> bool:
        """Return True when the call is done.

        Raises:
            DistributedError: the others did not answer in time, or called something else.
        """
        seconds = timeout.total_seconds() if isinstance(timeout, timedelta) else timeout
        wait_until(self._ask, self._group, self._call, seconds)
        return True

    def result(self) -> list[Any]:
        """Return the tensors that the call has written."""
        self.wait()
        return self._tensors


__all__ = ["Work", "busy"]
