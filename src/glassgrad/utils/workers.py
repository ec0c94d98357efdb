"""Loading batches in other processes, in order and ahead of time."""

from __future__ import annotations

import multiprocessing
import random
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

from glassgrad.engine.random import manual_seed
from glassgrad.utils.parcels import Receiver, Sender


@dataclass(frozen=True)
class WorkerInfo:
    """Information about the worker process that reads a data set: `get_worker_info()`.

    Attributes:
        id: number of the process, from 0.
        num_workers: the number of processes.
        seed: the seed of the batch being loaded.
        dataset: the data set.

    Example:
        >>> from glassgrad.utils.data import get_worker_info
        >>> get_worker_info() is None  # in the process that trains
        True
    """

    id: int
    num_workers: int
    seed: int
    dataset: Any


class _Process:
    """State of a worker process, set once when it starts."""

    fetch: Callable[[Any], Any]
    sender: Sender
    info: WorkerInfo | None = None


def get_worker_info() -> WorkerInfo | None:
    """Return information about this worker process; None in the main process.

    Example:
        >>> from glassgrad.utils.data import get_worker_info
        >>> print(get_worker_info())  # in the main process
        None
    """
    return _Process.info


def _start(fetch: Any, dataset: Any, workers: int, numbers: Any, prepare: Callable[[int], Any] | None) -> None:
    number = numbers.get()
    _Process.fetch = fetch
    _Process.sender = Sender()
    _Process.info = WorkerInfo(number, workers, 0, dataset)
    if prepare is not None:
        prepare(number)


def _load(seed: int, indices: Any) -> Any:
    """Load one batch. Random numbers depend on the batch, not on the process."""
    info = _Process.info
    assert info is not None
    random.seed(seed)
    np.random.seed(seed % (1 << 32))  # noqa: NPY002 - data sets may use the legacy generator
    manual_seed(seed)
    _Process.info = WorkerInfo(info.id, info.num_workers, seed, info.dataset)
    return _Process.sender.packed(_Process.fetch(indices))


class Workers:
    """A pool of processes that load batches.

    Args:
        fetch: indices -> batch; runs in the processes.
        dataset: the data set that `get_worker_info` returns.
        count: number of processes.
        context: their start method ("fork", "spawn", "forkserver"), or a context of `multiprocessing`.
        prepare: called with the number of each process when it starts.
    """

    def __init__(
        self,
        fetch: Callable[[Any], Any],
        dataset: Any,
        count: int,
        context: Any = None,
        prepare: Callable[[int], Any] | None = None,
    ) -> None:
        chosen = multiprocessing.get_context(context) if context is None or isinstance(context, str) else context
        numbers = chosen.Queue()
        for number in range(count):
            numbers.put(number)
        self.count = count
        self._receiver = Receiver()
        self._pool = ProcessPoolExecutor(
            count, mp_context=chosen, initializer=_start, initargs=(fetch, dataset, count, numbers, prepare)
        )

    def run(self, seed: int, batches: Iterator[Any], ahead: int) -> Iterator[Any]:
        """Yield the batches in order, loading up to `ahead` of them in advance."""
        waiting: deque[Future[Any]] = deque()
        number = 0
        try:
            for number, indices in enumerate(batches):
                waiting.append(self._pool.submit(_load, seed + number, indices))
                if len(waiting) >= ahead:
                    yield self._receiver.opened(waiting.popleft().result())
            while waiting:
                yield self._receiver.opened(waiting.popleft().result())
        finally:
            for future in waiting:
                future.cancel()

    def close(self) -> None:
        """End the processes."""
        self._pool.shutdown(wait=False, cancel_futures=True)


__all__ = ["WorkerInfo", "Workers", "get_worker_info"]
