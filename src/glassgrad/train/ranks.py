"""Train on several ranks: each computes its part of every batch, and all make the same steps.

Every rank reads the whole batch and takes its rows. So order, epochs and checkpoints are the same as in one process,
and a run can be resumed with another number of ranks. Rank 0 decides everything that depends on clocks, signals or
files.
"""

from __future__ import annotations

import signal
import zlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

import numpy as np

from glassgrad import errors
from glassgrad.data.names import IGNORED
from glassgrad.distributed import world

if TYPE_CHECKING:
    from glassgrad.train.signals import StopSignals

Array = Any  # np.ndarray


class Ranks:
    """This process as one of several that train a model together.

    Args:
        group: the processes.
    """

    def __init__(self, group: world.ProcessGroup) -> None:
        self.group = group
        self.count = group.size()
        self.rank = group.me
        self.first = group.me == 0
        """Whether this is the rank that writes files and shows the run."""
        self.gather: Callable[[], object] | None = None
        """The function that all ranks call before rank 0 saves; it collects the distributed state there."""
        self.saving = False
        """Whether rank 0 saves after this step."""
        self.stopping = False
        """Whether all ranks stop after this step; a signal that arrives after this decision waits for the next one."""
        self._compared = False

    # --- the data -------------------------------------------------------------------------------------

    def part(self, batch: Sequence[Array], whole: float = 0) -> tuple[list[Array], float]:
        """Return this rank's rows of a batch, and its weight in the mean over the ranks.

        Each rank differentiates weight times the mean loss of its rows; the mean over the ranks is then the gradient of
        the batch's mean loss. A rank without rows computes the first row, with weight 0.

        Args:
            batch: (inputs..., targets); the first axis is that of the examples.
            whole: the reference of the weights if a step has several batches: `counted` of all of them together.
        """
        if not self._compared:
            self._compare(batch)
        size = size_of(batch)
        low, high = self.rank * size // self.count, (self.rank + 1) * size // self.count
        empty = low == high
        rows = [_cut(one, size, *((0, 1) if empty else (low, high))) for one in batch]
        return rows, 0.0 if empty else counted(rows) * self.count / (whole or counted(batch))

    def _compare(self, batch: Sequence[Array]) -> None:
        """Raise on every rank if their first batches differ, because of different shuffling or files."""
        self._compared = True
        digest = 0
        for array in _arrays(batch):
            digest = zlib.crc32(np.ascontiguousarray(array).tobytes(), digest)
        found = np.empty(self.count, np.int64)
        self._wait(self.group.comm.Iallgather(np.array([digest], np.int64), found))
        others = np.flatnonzero(found != found[0])
        if others.size:
            raise errors.RANKS_DATA_DIFFER(ranks=", ".join(map(str, others)))

    # --- agreement ------------------------------------------------------------------------------------

    def agree(self, loss: float, stop: StopSignals, saving: bool) -> float:
        """Return the mean loss over the ranks; share any rank's wish to stop or to save."""
        asked = stop.requested
        wishes = [asked == signal.SIGINT, asked not in (0, signal.SIGINT), stop.by_file, saving]
        sums = np.array([loss, *wishes], np.float64)
        total = np.empty_like(sums)
        self._wait(self.group.comm.Iallreduce(sums, total))
        self.saving = bool(total[4])
        self.stopping = bool(total[1:4].any())
        if not asked and self.stopping:
            stop.by_file = bool(total[3])
            stop.join(signal.SIGINT if total[1] else signal.SIGTERM)
        return float(total[0]) / self.count

    def add(self, arrays: Sequence[Array]) -> None:
        """Replace arrays by their sums over the ranks."""
        requests = []
        for array in arrays:
            mine = array.copy()
            requests.append((self.group.comm.Iallreduce(mine, array), mine))
        for request, _mine in requests:  # until then MPI reads the memory
            self._wait(request)

    def shared(self, value: Any) -> Any:
        """Return the value of rank 0: numbers, strings, arrays, lists and dictionaries of them."""
        from glassgrad.distributed.objects import broadcast_object_list

        found = [value]
        broadcast_object_list(found, 0)
        return found[0]

    def once(self, function: Callable[[], Any]) -> Any:
        """Run a function only on rank 0 and return its result there, None elsewhere; all ranks wait for it.

        Raises:
            OtherRankError: on the other ranks, if the function raised on rank 0.
        """
        result = None
        if self.first:
            try:
                with self.alone():
                    result = function()
            except Exception as error:
                self.shared(str(error) or type(error).__name__)
                raise
        if reason := self.shared(""):
            raise errors.OTHER_RANK(rank=self.rank, reason=reason)
        return result

    def alone(self) -> AbstractContextManager[None]:
        """Announce that rank 0 may take long in this block, such as for a large checkpoint; the others wait for it."""
        from glassgrad.engine.reports.announced import announced  # not on import: layers by hand need no engine

        return announced("what rank 0 does alone")

    def _wait(self, request: Any) -> None:
        from glassgrad.distributed.waiting import wait_until

        wait_until(request.Test, self.group, "a training step")


def joined() -> Ranks | None:
    """Join the ranks with which a launcher started this process, and return them; None if it is alone."""
    if world.launched() == 1 and not world.is_initialized():
        return None
    if not world.is_initialized():
        from glassgrad.distributed.start import init_process_group

        init_process_group()
    group = world.resolve(None, "Trainer")
    return Ranks(group) if group.size() > 1 else None


def once(ranks: Ranks | None, function: Callable[[], Any]) -> Any:
    """Run a function here, or with several ranks only on the first."""
    return function() if ranks is None else ranks.once(function)


def counted(batch: Sequence[Array]) -> float:
    """Return the number of targets in a batch's mean loss: labels that are not `IGNORED`, or all examples."""
    size = size_of(batch)
    target = getattr(batch[-1], "array", batch[-1])
    if len(batch) > 1 and isinstance(target, np.ndarray) and target.dtype.kind == "i" and target.shape[:1] == (size,):
        return float((target != IGNORED).sum() / max(1, target[0].size))
    return float(size)


def size_of(batch: Sequence[Array]) -> int:
    """Return the number of examples: the length of the first part."""
    first = batch[0]
    return len(next(iter(first.values())) if isinstance(first, Mapping) else first)


def _cut(part: Array, size: int, low: int, high: int) -> Array:
    """Return rows of a part with one row per example; return any other part unchanged."""
    if isinstance(part, Mapping):
        return {name: _cut(one, size, low, high) for name, one in part.items()}
    if not getattr(part, "shape", None) or len(part) != size:
        return part
    return part.detach()[low:high] if hasattr(part, "detach") else part[low:high]


def _arrays(batch: Sequence[Array]) -> list[Array]:
    found = []
    for part in batch:
        for one in part.values() if isinstance(part, Mapping) else [part]:
            array = getattr(one, "array", one)
            if isinstance(array, np.ndarray):
                found.append(array)
    return found
