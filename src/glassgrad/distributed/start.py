"""The first call of every process: it connects to the others and starts the guard."""

from __future__ import annotations

import os
from datetime import timedelta
from typing import Any

import numpy as np

from glassgrad import errors
from glassgrad.base import provenance
from glassgrad.distributed import guard, world
from glassgrad.engine.tensors import devices

_MOST_CORES = 4096  # of one machine


def init_process_group(
    backend: str | None = None,
    init_method: str | None = None,
    timeout: timedelta | float | None = None,
    world_size: int = -1,
    rank: int = -1,
    store: object = None,
    group_name: str = "",
    pg_options: object = None,
    device_id: object = None,
) -> None:
    """Connect the processes that the MPI launcher has started; every process calls this once.

    A process that was started alone is rank 0 of 1, with or without MPI.

    Args:
        backend: "mpi", or None for the same. PyTorch's "gloo", "nccl" and "ucc" also mean MPI, with a warning.
        init_method: accepted; the launcher connects the processes.
        timeout: how long a call waits for the others, in seconds or as a timedelta; half an hour by default.
        world_size: checked against the actual number of processes.
        rank: checked against the rank of this process.
        store: accepted, like `init_method`.
        group_name: accepted.
        pg_options: accepted.
        device_id: accepted; tensors are on the CPU.

    Raises:
        ArgumentError: another backend, or a size or rank that differs from the launcher's.
        DistributedError: a second call, or several processes that MPI did not start.

    Example:
        >>> import glassgrad.distributed as dist
        >>> dist.init_process_group()
        >>> dist.get_rank(), dist.get_world_size()
        (0, 1)
        >>> dist.destroy_process_group()
    """
    world.check_backend(backend)
    if world.STATE.world is not None:
        raise errors.GROUP_TWICE(where=provenance.here())
    module = world.mpi()
    comm = None if module is None else module.COMM_WORLD
    count, me = (1, 0) if comm is None else (comm.Get_size(), comm.Get_rank())
    started = os.environ.get("WORLD_SIZE", "")
    if count == 1 and "LOCAL_RANK" in os.environ and started.isdigit() and int(started) > 1:
        # Otherwise each of them would train by itself.
        raise errors.NOT_MPI(count=int(started), where=provenance.here())
    for option, given, actual in (("world_size", world_size, count), ("rank", rank, me)):
        if given not in (-1, actual):
            shown = f"rank {me} of {count}"
            wanted = max(world_size, rank + 1)
            raise errors.WORLD_DIFFERS(option=option, given=given, actual=shown, count=wanted, where=provenance.here())
    if comm is not None and count > 1:
        comm = comm.Dup()
    crowded, devices.sharers = (False, 1) if comm is None or count == 1 else _neighbours(module, comm)
    world.STATE.world = world.ProcessGroup(comm, range(count), me, world.seconds_of(timeout), crowded)
    guard.install(world.STATE.world)


def _neighbours(module: Any, comm: Any) -> tuple[bool, int]:
    """Return whether this machine has more processes than cores, and how many of them share this process's cores."""
    near = comm.Split_type(module.COMM_TYPE_SHARED)
    affinity = getattr(os, "sched_getaffinity", None)
    mine = set(affinity(0)) if affinity is not None else set(range(os.cpu_count() or 1))
    mask = np.zeros(_MOST_CORES, np.int32)
    mask[[core % _MOST_CORES for core in mine]] = 1
    users = np.zeros_like(mask)
    near.Allreduce(mask, users, op=module.SUM)
    near.Free()
    sharers = int(users[mask > 0].max())  # 1 for a process that is bound to its own cores
    return sharers > len(mine), sharers


__all__ = ["init_process_group"]
