"""Gradients in buckets: small arrays are sent together, and the first buckets while later gradients are still computed.

Li et al. 2020, "PyTorch Distributed: Experiences on Accelerating Data Parallel Training", section 3.2. Buckets are
filled with parameters in reverse order, roughly the order in which a backward pass completes their gradients.
"""

from __future__ import annotations

import importlib
import math
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from glassgrad.distributed.reductions import ReduceOp, reduction
from glassgrad.distributed.waiting import wait_until
from glassgrad.distributed.world import ProcessGroup

FIRST_BYTES = 1 << 20  # small, so that the first reduction begins soon
DEFAULT_MEGABYTES = 25.0  # PyTorch's
SHARED_RANKS = 4  # the most ranks of one machine that average through shared memory
_SHARED = Path("/dev", "shm")  # where MPI libraries put it on Linux
_LINE = 64  # bytes of a cache line
_CHUNK = 1 << 15  # elements that are summed and divided while they are in the cache
_OWN = 1 << 16  # bytes; gradients of at least this size are sent from their own memory, not copied into the bucket


class Place(NamedTuple):
    """An array in shared memory, and its address."""

    address: int
    array: np.ndarray


class Bucket:
    """Gradients that are averaged over the ranks together, all of one dtype.

    They are sent through MPI or, if `memory` is given, through memory shared by the ranks of one machine: each rank
    writes its gradients there, then sums those of all ranks. Native code computes gradients directly in this memory,
    and sums them in the kernels that read the averages (`direct`).

    Attributes:
        members: positions of the parameters.
        shapes: of their gradients.
        ranks: the number of ranks that share the memory.
        memory: for each of two alternating turns and each rank, the places of the members.
    """

    def __init__(self, members: Sequence[int], shapes: Sequence[tuple[int, ...]], dtype: np.dtype) -> None:
        self.members = tuple(members)
        self.shapes = tuple(shapes)
        self.dtype = np.dtype(dtype)
        self.how = reduction("DistributedDataParallel", ReduceOp.AVG, self.dtype)
        self.size = sum(math.prod(shape) for shape in self.shapes)
        self.ranks = 1
        self.memory: list[list[list[Place]]] | None = None
        self.requests: list[Any] = []
        self._rank = 0
        self._turn = 0  # the turn that is written next; the other one is read
        self._writers: list[list[Any]] = []
        self._sent: list[Any] = []
        self._flat = np.empty(0, self.how.dtype)
        self._places: dict[int, slice] = {}

    @property
    def nbytes(self) -> int:
        """The number of elements sent."""
        return self.size * int(self.how.dtype.itemsize)

    @property
    def room(self) -> int:
        """Bytes of shared memory for each turn: every member begins at a cache line."""
        return sum(-(-math.prod(shape) * self.how.dtype.itemsize // _LINE) * _LINE for shape in self.shapes)

    @property
    def direct(self) -> bool:
        """Whether native code may write gradients to shared memory and read them there."""
        return self.memory is not None and bool(self.how.dtype == self.dtype)

    def share(self, turns: Sequence[Sequence[np.ndarray]], rank: int) -> None:
        """Use shared memory; `turns` holds the bytes of every rank for each turn."""
        self.memory = [[list(self._laid_out(part)) for part in parts] for parts in turns]
        self.ranks, self._rank = len(turns[0]), rank

    def _laid_out(self, part: np.ndarray) -> Iterator[Place]:
        begin = 0
        for shape in self.shapes:
            size = math.prod(shape) * self.how.dtype.itemsize
            array = part[begin : begin + size].view(self.how.dtype).reshape(shape)
            yield Place(int(array.ctypes.data), array)
            begin += -(-size // _LINE) * _LINE

    def write_through(self, moves: Sequence[Any]) -> None:
        """Let a program write the members to shared memory; each of `moves` sets a member's address, or is None."""
        self._writers.append(list(moves))
        self._lead()

    def _lead(self) -> None:
        """Set the addresses that all programs write to in the next turn."""
        assert self.memory is not None
        places = self.memory[self._turn][self._rank]
        for moves in list(self._writers):
            answers = [move(*place) for move, place in zip(moves, places, strict=True) if move is not None]
            if not all(answers):  # the program no longer exists
                self._writers.remove(moves)

    def parts(self) -> list[Place]:
        """Return the places of the members that have arrived, of every rank."""
        assert self.memory is not None
        read = self.memory[1 - self._turn]
        return [places[at] for at in range(len(self.shapes)) for places in read]

    def start(self, comm: Any, arrays: Sequence[np.ndarray], *, in_place: bool) -> None:
        """Begin to average arrays over the ranks.

        With `in_place`, large arrays are sent from their own memory, which `finish` gets as well.
        """
        ranks = comm.Get_size()
        if self.memory is not None:
            for (_, kept), array in zip(self.memory[self._turn][self._rank], arrays, strict=True):
                if array is not kept:  # a program has not written it there
                    kept[...] = array
            # All ranks have read the memory that the next turn overwrites, because each has started this turn by then.
            self._turn = 1 - self._turn
            self._lead()
            self.requests = [comm.Ibarrier()]
            return
        apart = [at for at, array in enumerate(arrays) if in_place and self._travels(array)]
        size = sum(array.size for at, array in enumerate(arrays) if at not in apart)
        if self._flat.size != size:
            self._flat = np.empty(size, self.how.dtype)
        self._pack([array for at, array in enumerate(arrays) if at not in apart], ranks, apart, self._flat)
        self._sent = [self._flat] if size else []
        for at in apart:
            elements = arrays[at].reshape(-1)
            _share(elements, ranks, elements)
            self._sent.append(elements)
        mpi = importlib.import_module("mpi4py.MPI")
        self.requests = [comm.Iallreduce(mpi.IN_PLACE, elements, mpi.SUM) for elements in self._sent]

    def _travels(self, array: np.ndarray) -> bool:
        fits = array.flags.c_contiguous and array.flags.writeable and self.how.dtype == array.dtype
        return fits and array.nbytes >= _OWN

    def _pack(self, arrays: Sequence[Any], ranks: int, apart: Sequence[int], into: np.ndarray) -> None:
        """Copy arrays one after the other, divided by the number of ranks."""
        places = [at for at in range(len(self.shapes)) if at not in apart]
        self._places.clear()
        begin = 0
        for at, array in zip(places, arrays, strict=True):
            place = self._places[at] = slice(begin, begin + array.size)
            _share(array, ranks, into[place].reshape(array.shape))
            begin = place.stop

    def progress(self) -> None:
        """Let MPI make progress, which happens only inside its calls."""
        for request in self.requests:
            request.Test()

    def arrive(self, group: ProcessGroup) -> None:
        """Wait until all started transfers have arrived."""
        requests = self.requests
        if requests:
            wait_until(lambda: type(requests[0]).Testall(requests), group, "backward")
        self.requests, self._sent = [], []

    def finish(self, group: ProcessGroup, outputs: Sequence[np.ndarray]) -> None:
        """Wait for the averages and write them into arrays, which may be the ones passed to `start`."""
        self.arrive(group)
        if self.memory is not None:
            parts = [place.array for place in self.parts()]
            for at, output in enumerate(outputs):
                _average(parts[at * self.ranks : (at + 1) * self.ranks], output)
            return
        for at, place in self._places.items():
            outputs[at][...] = self._flat[place].reshape(self.shapes[at])


def _average(parts: Sequence[np.ndarray], output: np.ndarray) -> None:
    """Write the mean of arrays, summed in the order of the ranks as compiled steps do."""
    fits = output.dtype == parts[0].dtype and output.flags.c_contiguous
    total = (output if fits else np.empty(parts[0].shape, parts[0].dtype)).reshape(-1)
    rows = [part.reshape(-1) for part in parts]
    for begin in range(0, total.size, _CHUNK):
        out = total[begin : begin + _CHUNK]
        first, second, *others = (row[begin : begin + _CHUNK] for row in rows)
        np.add(first, second, out=out)
        for other in others:
            out += other
        _share(out, len(parts), out)
    if not fits:
        output[...] = total.reshape(output.shape)


def _share(array: np.ndarray, ranks: int, out: np.ndarray) -> None:
    """Divide by the number of ranks; for a power of 2, multiply, which is exact and faster."""
    if ranks & (ranks - 1):
        np.divide(array, ranks, out=out, casting="same_kind")
    else:
        np.multiply(array, out.dtype.type(1 / ranks), out=out, casting="same_kind")


def share_memory(buckets: Sequence[Bucket], comm: Any) -> Any:
    """Give the buckets shared memory if the ranks are few and on one machine; return the object that keeps it alive.

    Each rank reads the gradients of all ranks, which is slower than MPI's algorithms when there are many.
    """
    mpi = importlib.import_module("mpi4py.MPI")
    near = comm.Split_type(mpi.COMM_TYPE_SHARED)
    ranks, count = comm.Get_size(), near.Get_size()
    near.Free()
    sizes = [bucket.room for bucket in buckets]
    fits = np.array([count == ranks <= SHARED_RANKS and has_room(2 * sum(sizes) * ranks)], np.int32)
    comm.Allreduce(mpi.IN_PLACE, fits, mpi.MIN)
    if not fits[0]:
        return None
    window = mpi.Win.Allocate_shared(2 * sum(sizes), 1, comm=comm)
    window.Lock_all(mpi.MODE_NOCHECK)
    parts = [np.frombuffer(window.Shared_query(rank)[0], np.uint8) for rank in range(ranks)]
    begin = 0
    for bucket, size in zip(buckets, sizes, strict=True):
        bucket.share([[part[turn : turn + size] for part in parts] for turn in (begin, begin + size)], comm.Get_rank())
        begin += 2 * size
    return window


def has_room(nbytes: int) -> bool:
    """Tell whether this many bytes fit into half of the free shared memory: containers often have 64 MB."""
    try:
        room = os.statvfs(_SHARED)
    except (OSError, AttributeError):  # not Linux
        return False
    return nbytes <= room.f_bavail * room.f_frsize // 2


def make_buckets(shapes: Sequence[tuple[int, ...]], dtypes: Sequence[Any], megabytes: float | None) -> list[Bucket]:
    """Return the buckets of parameters with these shapes and dtypes, in the order in which they are sent.

    With `megabytes`, no bucket holds more, except a single larger gradient; by default 25, and 1 for the first bucket.
    """
    limit = (DEFAULT_MEGABYTES if megabytes is None else megabytes) * (1 << 20)
    first = min(FIRST_BYTES, limit) if megabytes is None else limit
    open_now: dict[Any, tuple[list[int], int]] = {}
    done: list[list[int]] = []
    for at in reversed(range(len(shapes))):
        dtype = np.dtype(dtypes[at])
        members, size = open_now.setdefault(dtype, ([], 0))
        members.append(at)
        size += math.prod(shapes[at]) * dtype.itemsize
        if size >= (first if not done else limit):
            done.append(members)
            del open_now[dtype]
        else:
            open_now[dtype] = (members, size)
    done += [members for members, _ in open_now.values()]
    done.sort(key=lambda members: -members[0])
    return [Bucket(members, [shapes[at] for at in members], dtypes[members[0]]) for members in done]
