"""Process groups and their MPI communicators."""

from __future__ import annotations

import importlib
import os
import warnings
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from glassgrad import errors
from glassgrad.base import provenance
from glassgrad.errors.packages import present

_DEFAULT_TIMEOUT = timedelta(minutes=30)  # PyTorch's, for gloo and MPI
# Variables in which launchers pass the number of processes: MPICH and Intel, Open MPI, MVAPICH, and Slurm.
_TORCHS = ("gloo", "nccl", "ucc")  # PyTorch's backends
_COUNTS = ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "MV2_COMM_WORLD_SIZE", "PMIX_SIZE", "SLURM_STEP_NUM_TASKS")


class ProcessGroup:
    """Processes that communicate with one another: `group.WORLD`, or what `new_group` returns.

    Attributes:
        comm: the mpi4py communicator; None for a single process without MPI.
        ranks: the ranks of its members in the world, in the order of the group.
        seconds: how long a call waits for the others.
        crowded: whether this machine has more processes than cores, so that waiting ones must leave the cores free.
    """

    def __init__(self, comm: Any, ranks: Sequence[int], me: int, seconds: float, crowded: bool) -> None:
        self.comm: Any = comm
        self.checks: Any = None if comm is None or len(ranks) == 1 else comm.Dup()
        self.ranks = tuple(ranks)
        self.me = me
        self.seconds = seconds
        self.crowded = crowded
        self.pending: set[Any] = set()  # calls under way: MPI writes to their memory

    def rank(self) -> int:
        """Return the rank of this process in the group; -1 if it is not a member."""
        return self.me

    def size(self) -> int:
        """Return the number of processes."""
        return len(self.ranks)

    def name(self) -> str:
        """Return the backend's name."""
        return "mpi"

    def place_of(self, rank: int, call: str, option: str) -> int:
        """Return the rank within the group of a rank in the world."""
        if rank not in self.ranks:
            raise errors.NO_SUCH_RANK(
                call=call, option=option, given=rank, ranks=_listed(self.ranks), where=provenance.here()
            )
        return self.ranks.index(rank)

    def free(self) -> None:
        """Free the communicators."""
        if self.comm is not None and self.checks is not None:
            self.checks.Free()
            self.comm.Free()
        self.comm = self.checks = None

    def __repr__(self) -> str:
        return f"<ProcessGroup of ranks {_listed(self.ranks)}, here {self.me}>"


class GroupMember:
    """Holds the value for a group that does not include this process."""

    NON_GROUP_MEMBER = ProcessGroup(None, (), -1, 0.0, crowded=False)


class _Default(type):
    @property
    def WORLD(cls) -> ProcessGroup | None:  # noqa: N802 - PyTorch's name
        """The group of all processes; None before `init_process_group`."""
        return STATE.world


class group(metaclass=_Default):  # noqa: N801 - PyTorch's name
    """Holds the group of all processes, as `group.WORLD`."""


class _State:
    world: ProcessGroup | None = None
    groups: list[ProcessGroup]


STATE = _State()
STATE.groups = []


def check_backend(backend: str | None) -> None:
    """Raise for an unknown backend; warn that PyTorch's backends mean MPI here."""
    if backend in (None, "mpi"):
        return
    named = {one.rpartition(":")[2] for one in str(backend).lower().split(",")}
    if not named <= {*_TORCHS, "mpi"}:
        raise errors.BACKEND(given=backend, where=provenance.here())
    text = errors.BACKEND_IS_MPI.text(given=backend, where=provenance.here())
    warnings.warn(text, errors.BackendWarning, stacklevel=provenance.stack_level())


def launched() -> int:
    """Return how many processes the launcher says it has started; 1 without a launcher."""
    counts = [int(os.environ[name]) for name in _COUNTS if os.environ.get(name, "").isdigit()]
    return max(counts, default=1)


def mpi() -> Any:
    """Return mpi4py's module `MPI`, initialised; None if it is not installed and there is one process.

    Raises:
        DistributedError: several processes were started, and mpi4py cannot be imported.
    """
    if present("mpi4py"):
        return importlib.import_module("mpi4py.MPI")
    if launched() > 1:
        raise errors.NO_MPI(count=launched(), where=provenance.here())
    return None


def is_available() -> bool:
    """Return True: even a single process is a group."""
    return True


def is_mpi_available() -> bool:
    """Tell whether mpi4py is installed."""
    return present("mpi4py")


def is_gloo_available() -> bool:
    """Return False: processes talk over MPI."""
    return False


def is_nccl_available() -> bool:
    """Return False: processes talk over MPI."""
    return False


def is_torchelastic_launched() -> bool:
    """Return False: an MPI launcher starts the processes."""
    return False


def is_initialized() -> bool:
    """Tell whether `init_process_group` was called."""
    return STATE.world is not None


def seconds_of(timeout: timedelta | float | None) -> float:
    timeout = _DEFAULT_TIMEOUT if timeout is None else timeout
    return timeout.total_seconds() if isinstance(timeout, timedelta) else float(timeout)


def destroy_process_group(group: ProcessGroup | None = None) -> None:
    """Free a group, or all groups without an argument; `init_process_group` may be called again."""
    if group is not None and group is not STATE.world:
        if group in STATE.groups:
            STATE.groups.remove(group)
        group.free()
        return
    resolve(None, "destroy_process_group")
    for one in [*STATE.groups, STATE.world]:
        assert one is not None
        one.free()
    STATE.groups.clear()
    STATE.world = None
    from glassgrad.engine.tensors import devices  # not at the top: hand-written layers run without the engine

    devices.sharers = 1


def resolve(group: ProcessGroup | None, call: str) -> ProcessGroup:
    """Return the given group, or by default that of all processes."""
    if isinstance(group, ProcessGroup):
        return group
    if STATE.world is None:
        raise errors.NO_GROUP(call=call, where=provenance.here())
    return STATE.world


def get_rank(group: ProcessGroup | None = None) -> int:
    """Return the rank of this process: 0 in the first, and before there is a group; -1 if it is not a member."""
    if group is None and STATE.world is None:
        return 0
    return resolve(group, "get_rank").me


def get_world_size(group: ProcessGroup | None = None) -> int:
    """Return the number of processes: 1 before there is a group; -1 when this process is no member."""
    if group is None and STATE.world is None:
        return 1
    found = resolve(group, "get_world_size")
    return found.size() if found.me >= 0 else -1


def get_backend(group: ProcessGroup | None = None) -> str:
    """Return "mpi"."""
    return resolve(group, "get_backend").name()


def new_group(
    ranks: Sequence[int] | None = None, timeout: timedelta | float | None = None, backend: str | None = None
) -> ProcessGroup:
    """Make a group of some of the processes; all processes of the world call it, in the same order.

    Args:
        ranks: the members by their ranks in the world; None for all.
        timeout: as in `init_process_group`; by default that of the world.
        backend: as in `init_process_group`.

    Raises:
        ArgumentError: a rank that does not exist, or a repeated rank.

    Example:
        >>> import glassgrad.distributed as dist
        >>> dist.init_process_group()
        >>> dist.new_group([0])
        <ProcessGroup of ranks 0, here 0>
        >>> dist.destroy_process_group()
    """
    world = resolve(None, "new_group")
    check_backend(backend)
    chosen = list(world.ranks) if ranks is None else sorted(ranks)
    if not chosen or len(set(chosen)) != len(chosen) or not set(chosen) <= set(world.ranks):
        raise errors.GROUP_RANKS(given=ranks, last=world.size() - 1, where=provenance.here())
    seconds = world.seconds if timeout is None else seconds_of(timeout)
    comm = world.comm
    if world.size() > 1:
        inside = comm.Get_group()
        comm = comm.Create(inside.Incl(chosen))
        if world.me not in chosen:
            return GroupMember.NON_GROUP_MEMBER
    made = ProcessGroup(comm, chosen, chosen.index(world.me), seconds, world.crowded)
    STATE.groups.append(made)
    return made


def get_process_group_ranks(group: ProcessGroup | None) -> list[int]:
    """Return the ranks of the members in the world."""
    return list(resolve(group, "get_process_group_ranks").ranks)


def get_global_rank(group: ProcessGroup, group_rank: int) -> int:
    """Return the rank in the world of a rank in a group."""
    if not 0 <= group_rank < group.size():
        ranks, where = _listed(range(group.size())), provenance.here()
        raise errors.NO_SUCH_RANK(
            call="get_global_rank", option="group_rank", given=group_rank, ranks=ranks, where=where
        )
    return group.ranks[group_rank]


def get_group_rank(group: ProcessGroup, global_rank: int) -> int:
    """Return the rank in a group of a rank in the world."""
    return group.place_of(global_rank, "get_group_rank", "global_rank")


def _listed(ranks: Sequence[int]) -> str:
    if len(ranks) > 8 and tuple(ranks) == tuple(range(ranks[0], ranks[0] + len(ranks))):
        return f"{ranks[0]} to {ranks[-1]}"
    return ", ".join(map(str, ranks)) or "none"


__all__ = ["GroupMember", "ProcessGroup", "destroy_process_group", "get_backend", "get_global_rank", "get_group_rank"]
__all__ += ["get_process_group_ranks", "get_rank", "get_world_size", "group", "is_available", "is_gloo_available"]
__all__ += ["is_initialized", "is_mpi_available", "is_nccl_available", "is_torchelastic_launched", "new_group"]
