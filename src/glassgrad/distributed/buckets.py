"""Gradients in buckets: many small arrays travel as one, and the first are on their way while others are computed.

Li et al. 2020, "PyTorch Distributed: Experiences on Accelerating Data Parallel Training", section 3.2. Parameters are
taken in reverse order, as that is about the order in which a backward pass completes their gradients.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from glassgrad.distributed.reductions import ReduceOp, reduction
from glassgrad.distributed.waiting import wait_until
from glassgrad.distributed.world import ProcessGroup

FIRST_BYTES = 1 << 20  # so that the first reduction begins soon
DEFAULT_MEGABYTES = 25.0  # PyTorch's
_OWN = 1 << 16  # bytes from which a gradient travels from where it is, in place of being copied into the bucket


class Bucket:
    """Gradients that are averaged over the ranks together, all of one dtype.

    Attributes:
        members: positions of the parameters.
        shapes: of their gradients.
    """

    def __init__(self, members: Sequence[int], shapes: Sequence[tuple[int, ...]], dtype: Any) -> None:
        self.members = tuple(members)
        self.shapes = tuple(shapes)
        self.dtype = np.dtype(dtype)
        self.how = reduction("DistributedDataParallel", ReduceOp.AVG, self.dtype)
        self.requests: list[Any] = []
        self._sent: list[Any] = []
        self._flat: np.ndarray[Any, Any] | None = None
        self._places: dict[int, slice] = {}

    def start(self, comm: Any, arrays: Sequence[np.ndarray[Any, Any]], *, in_place: bool) -> None:
        """Begin to average arrays over the ranks.

        With `in_place` large ones travel from their own memory, which has to stay as it is until `finish`.
        """
        ranks = comm.Get_size()
        apart = [at for at, array in enumerate(arrays) if in_place and self._travels(array)]
        packed = self._pack([array for at, array in enumerate(arrays) if at not in apart], ranks, apart)
        self._sent = [packed] if packed.size else []
        for at in apart:
            elements = arrays[at].reshape(-1)
            elements /= ranks
            self._sent.append(elements)
        mpi = importlib.import_module("mpi4py.MPI")
        self.requests = [comm.Iallreduce(mpi.IN_PLACE, elements, mpi.SUM) for elements in self._sent]

    def _travels(self, array: np.ndarray[Any, Any]) -> bool:
        fits = array.flags.c_contiguous and array.flags.writeable and self.how.dtype == array.dtype
        return fits and array.nbytes >= _OWN

    def _pack(self, arrays: Sequence[Any], ranks: int, apart: Sequence[int]) -> np.ndarray[Any, Any]:
        """Copy small arrays one after the other, divided by the number of ranks."""
        size = sum(array.size for array in arrays)
        if self._flat is None or self._flat.size != size:
            self._flat = np.empty(size, self.how.dtype)
        places = [at for at in range(len(self.shapes)) if at not in apart]
        self._places.clear()
        begin = 0
        for at, array in zip(places, arrays, strict=True):
            place = self._places[at] = slice(begin, begin + array.size)
            np.divide(array, ranks, out=self._flat[place].reshape(array.shape), casting="same_kind")
            begin = place.stop
        return self._flat

    def progress(self) -> None:
        """Let MPI work on what is under way: it does so only when it is asked."""
        for request in self.requests:
            request.Test()

    def finish(self, group: ProcessGroup) -> dict[int, np.ndarray[Any, Any]]:
        """Wait until the averages are there; return those of the packed arrays, by their positions in the bucket.

        They lie in memory that the next `start` overwrites. The others are in the arrays themselves.
        """
        requests = self.requests
        if requests:
            wait_until(lambda: type(requests[0]).Testall(requests), group, "backward")
        self.requests, self._sent = [], []
        assert self._flat is not None
        return {at: self._flat[place].reshape(self.shapes[at]) for at, place in self._places.items()}


def make_buckets(shapes: Sequence[tuple[int, ...]], dtypes: Sequence[Any], megabytes: float | None) -> list[Bucket]:
    """Return the buckets of parameters with these shapes and dtypes, in the order in which they travel.

    With `megabytes` no bucket holds more, but for a gradient that is larger by itself; by default 25, the first 1.
    """
    limit = (DEFAULT_MEGABYTES if megabytes is None else megabytes) * (1 << 20)
    first = min(FIRST_BYTES, limit) if megabytes is None else limit
    open_now: dict[Any, tuple[list[int], int]] = {}
    done: list[list[int]] = []
    for at in reversed(range(len(shapes))):
        dtype = np.dtype(dtypes[at])
        members, size = open_now.setdefault(dtype, ([], 0))
        members.append(at)
        size += int(np.prod(shapes[at], dtype=np.int64)) * dtype.itemsize
        if size >= (first if not done else limit):
            done.append(members)
            del open_now[dtype]
        else:
            open_now[dtype] = (members, size)
    done += [members for members, _ in open_now.values()]
    done.sort(key=lambda members: -members[0])
    return [Bucket(members, [shapes[at] for at in members], dtypes[members[0]]) for members in done]
