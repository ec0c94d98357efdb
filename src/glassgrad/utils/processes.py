"""Processes that train together: `torch.multiprocessing`.

`Process`, `Queue`, `Pool`, `get_context` and the rest are those of Python's `multiprocessing`; what is here teaches
them to send tensors as shared memory (`engine/memory/shared.py`), and calls a function in several processes.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
import traceback
from collections.abc import Callable
from multiprocessing import connection
from typing import Any

from glassgrad import errors
from glassgrad.engine.memory import shared
from glassgrad.engine.tensor import Tensor
from glassgrad.nn.parameter import Buffer, Parameter
from glassgrad.ops.core import bad_option

for _kind in (Tensor, Parameter, Buffer):
    shared.register(_kind)

_GRACE = 30.0  # seconds that a process has to end after SIGTERM
_LONGEST = 1 << 15  # characters of a traceback: what a pipe takes that nobody reads yet


def get_all_sharing_strategies() -> set[str]:
    """Return the ways to share memory: by descriptor.

    Example:
        >>> import glassgrad as gg
        >>> gg.multiprocessing.get_all_sharing_strategies()
        {'file_descriptor'}
    """
    return {"file_descriptor"}


def get_sharing_strategy() -> str:
    """Return the way to share memory.

    Example:
        >>> import glassgrad as gg
        >>> gg.multiprocessing.get_sharing_strategy()
        'file_descriptor'
    """
    return "file_descriptor"


def set_sharing_strategy(new_strategy: str) -> None:
    """Accept PyTorch's strategies; memory is shared by descriptor with each of them.

    Args:
        new_strategy: "file_descriptor" or "file_system".

    Raises:
        ArgumentError: another strategy.

    Example:
        >>> import glassgrad as gg
        >>> gg.multiprocessing.set_sharing_strategy("file_system")
    """
    if new_strategy not in {"file_descriptor", "file_system"}:
        expected = "file_descriptor or file_system"
        raise bad_option("set_sharing_strategy", "new_strategy", new_strategy, expected)


def _end_with_the_parent() -> None:
    """Interrupt this process when the one that started it is gone."""
    parent = multiprocessing.parent_process()
    if parent is None:
        return

    def watch() -> None:
        connection.wait([parent.sentinel])
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=watch, daemon=True).start()


def _call(fn: Callable[..., Any], rank: int, args: tuple[Any, ...], failed: connection.Connection) -> None:
    """Call the function in the new process, and send the traceback of what it raises."""
    _end_with_the_parent()
    try:
        fn(rank, *args)
    except KeyboardInterrupt:  # the parent is being interrupted as well, and says so
        pass
    except Exception as error:
        failed.send(traceback.format_exc()[-_LONGEST:])
        raise SystemExit(1) from error


class ProcessContext:
    """The processes of `start_processes` and `spawn`.

    Attributes:
        processes: the processes, by rank.
    """

    def __init__(self, processes: list[Any], failed: list[connection.Connection]) -> None:
        self.processes = processes
        self._failed = failed
        self._running = {process.sentinel: rank for rank, process in enumerate(processes)}

    def pids(self) -> list[int]:
        """Return the numbers of the processes, as the system knows them."""
        return [process.pid for process in self.processes]

    def join(self, timeout: float | None = None, grace_period: float | None = None) -> bool:
        """Wait for processes to end; return whether all of them have.

        The first one that fails ends the others, and its error is raised here.

        Args:
            timeout: seconds to wait at most, once; None waits for the first process that ends.
            grace_period: seconds that the others have to end, after a failure, before they are told to.

        Raises:
            ProcessRaisedError: a process raised an exception; the message has its traceback.
            ProcessExitedError: a process ended by itself with another exit code than 0, or by a signal.
        """
        ended = connection.wait(list(self._running), timeout)
        ranks = [self._running.pop(sentinel) for sentinel in ended]
        for rank in ranks:
            self.processes[rank].join()
        bad = [rank for rank in ranks if self.processes[rank].exitcode]
        if not bad:
            return not self._running
        self._stop(grace_period)
        raise self._error(bad[0])

    def _stop(self, grace_period: float | None) -> None:
        """End all processes."""
        last = time.monotonic() + (grace_period or 0)
        for process in self.processes if grace_period else ():
            process.join(max(0.0, last - time.monotonic()))
        for process in self.processes:
            if process.is_alive():
                process.terminate()
        last = time.monotonic() + _GRACE
        for process in self.processes:
            process.join(max(0.0, last - time.monotonic()))
            if process.is_alive():
                process.kill()
            process.join()

    def _error(self, rank: int) -> Exception:
        process, failed = self.processes[rank], self._failed[rank]
        code = process.exitcode
        facts: dict[str, Any] = {}
        try:
            text = failed.recv() if failed.poll() else None
        except EOFError:  # it ended without a word
            text = None
        if text is not None:
            error = errors.PROCESS_RAISED(rank=rank, text=text)
        elif code < 0:
            facts["signal_name"] = signal.Signals(-code).name
            error = errors.PROCESS_EXITED(rank=rank, how=f"signal {facts['signal_name']}")
        else:
            error = errors.PROCESS_EXITED(rank=rank, how=f"exit code {code}")
        vars(error).update(error_index=rank, error_pid=process.pid, exit_code=code, **facts)
        return error


def start_processes(
    fn: Callable[..., Any],
    args: tuple[Any, ...] = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
) -> ProcessContext | None:
    """Call ``fn(rank, *args)`` in `nprocs` new processes.

    Args:
        fn: the function; at the top of a module, so that a new process finds it.
        args: its arguments after the rank; tensors and models among them share their memory with the processes.
        nprocs: how many processes.
        join: wait until all have ended.
        daemon: whether the processes end with this one.
        start_method: "spawn", "fork" or "forkserver".

    Returns:
        None with `join`, otherwise a context with `join()`, `pids()` and `processes`.

    Raises:
        ProcessRaisedError: a process raised an exception; the others are ended.
        ProcessExitedError: a process ended with an exit code or by a signal; the others are ended.

    Example:
        >>> import glassgrad as gg
        >>> def double(rank, x):
        ...     x[rank] *= 2
        >>> x = gg.ones(3).share_memory_()
        >>> gg.multiprocessing.start_processes(double, (x,), nprocs=2, start_method="fork")
        >>> x
        tensor([2., 2., 1.])
    """
    method: Any = multiprocessing.get_context(start_method)
    processes, failed = [], []
    for rank in range(nprocs):
        receiver, sender = method.Pipe(duplex=False)
        process = method.Process(target=_call, args=(fn, rank, args, sender), daemon=daemon)
        process.start()
        sender.close()
        processes.append(process)
        failed.append(receiver)
    context = ProcessContext(processes, failed)
    if not join:
        return context
    while not context.join():
        pass
    return None


def spawn(
    fn: Callable[..., Any],
    args: tuple[Any, ...] = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
) -> ProcessContext | None:
    """Call ``fn(rank, *args)`` in `nprocs` new processes: `start_processes` by PyTorch's older name.

    Args:
        fn: the function; at the top of a module, so that a new process finds it.
        args: its arguments after the rank; tensors and models among them share their memory with the processes.
        nprocs: how many processes.
        join: wait until all have ended.
        daemon: whether the processes end with this one.
        start_method: "spawn", "fork" or "forkserver".

    Returns:
        None with `join`, otherwise a context with `join()`, `pids()` and `processes`.

    Example:
        >>> import glassgrad as gg
        >>> def double(rank, x):
        ...     x[rank] *= 2
        >>> x = gg.ones(3).share_memory_()
        >>> gg.multiprocessing.spawn(double, (x,), nprocs=2, start_method="fork")
        >>> x
        tensor([2., 2., 1.])
    """
    return start_processes(fn, args, nprocs, join, daemon, start_method)


SpawnContext = ProcessContext

NAMES: dict[str, Any] = {
    "ProcessContext": ProcessContext,
    "ProcessException": errors.ProcessError,
    "ProcessExitedException": errors.ProcessExitedError,
    "ProcessRaisedException": errors.ProcessRaisedError,
    "SpawnContext": SpawnContext,
    "get_all_sharing_strategies": get_all_sharing_strategies,
    "get_sharing_strategy": get_sharing_strategy,
    "set_sharing_strategy": set_sharing_strategy,
    "spawn": spawn,
    "start_processes": start_processes,
}

__all__ = ["NAMES", "ProcessContext", "SpawnContext", "spawn", "start_processes"]
