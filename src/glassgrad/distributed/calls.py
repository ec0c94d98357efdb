"""One call of a collective on one rank: its memory, and the comparison with the calls of other ranks."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from glassgrad import errors
from glassgrad.base import provenance
from glassgrad.distributed import world
from glassgrad.distributed.reductions import ReduceOp, Reduction, reduction
from glassgrad.distributed.waiting import Stage, Work, wait_until
from glassgrad.distributed.world import ProcessGroup
from glassgrad.engine.tensor import Tensor
from glassgrad.engine.writes import MUTATIONS
from glassgrad.ops.core import Array

_TEXT = 128  # bytes of the description of a call that the ranks compare


class Call:
    """One collective on this rank.

    Attributes:
        name: the name of the function that the user has called.
        group: the processes that take part.
        outside: whether this process is not a member; then the call does nothing.
        alone: whether there is no other process; then nothing is sent.
    """

    def __init__(self, name: str, group: ProcessGroup | None, async_op: bool) -> None:
        self.name = name
        self.group = world.resolve(group, name)
        self.outside = self.group.me < 0
        self.alone = self.group.size() == 1
        self.later = async_op
        self.stages: list[Stage] = []
        self.written: list[Tensor] = []

    @property
    def comm(self) -> Any:
        """The communicator."""
        return self.group.comm

    @property
    def mpi(self) -> Any:
        """mpi4py's module."""
        return importlib.import_module("mpi4py.MPI")

    # --- what is given ------------------------------------------------------------------------------

    def array(self, tensor: Array, option: str, *, writes: bool) -> np.ndarray:
        """Return the array of a tensor; raise if it has no memory, or if it is read-only and `writes` is set."""
        if not isinstance(tensor, Tensor):
            kind = type(tensor).__name__
            raise errors.NOT_A_TENSOR(call=self.name, option=option, kind=kind, where=provenance.here())
        array = tensor.lifted()
        if type(array) is not np.ndarray:
            raise errors.COLLECTIVE_TRACED(call=self.name, where=provenance.here())
        if writes:
            if not array.flags.writeable:
                raise errors.INPLACE_READ_ONLY(op=self.name, reason="it is read-only", where=provenance.here())
            MUTATIONS.record(array)
            self.written.append(tensor)
        return array

    def traced(self, tensor: Array, function: Callable[[Tensor], object]) -> None:
        """During tracing, replace the value of a tensor by the result of a primitive."""
        if not isinstance(tensor, Tensor):
            kind = type(tensor).__name__
            raise errors.NOT_A_TENSOR(call=self.name, option="tensor", kind=kind, where=provenance.here())
        array = tensor.lifted()
        result = function(array)
        if isinstance(array, np.ndarray):  # a constant of the step
            tensor.array = result
        else:
            array.write(result)  # a Symbol is memory too
        self.written.append(tensor)

    def arrays(self, tensors: Sequence[Array] | None, option: str, like: Any, *, writes: bool) -> list[np.ndarray]:
        """Return the arrays of a list with one tensor for each rank, all of one shape and dtype."""
        given = list(tensors or ())
        self.one_for_each_rank(given, option)
        found = [self.array(one, f"{option}[{at}]", writes=writes) for at, one in enumerate(given)]
        for at, one in enumerate(found):
            if one.shape != like.shape or one.dtype != like.dtype:
                self.refuse(f"{option}[{at}]", shown(one), shown(like))
        return found

    def one_for_each_rank(self, given: Sequence[Any] | None, option: str) -> None:
        """Raise unless a list has an entry for each rank of the group."""
        count, expected = len(given or ()), self.group.size()
        if given is None or count != expected:
            rank, where = self.global_rank, provenance.here()
            raise errors.COLLECTIVE_LENGTH(
                call=self.name, rank=rank, option=option, given=count, expected=expected, where=where
            )

    def refuse(self, option: str, given: str, expected: str) -> None:
        """Raise: a tensor has the wrong shape or dtype."""
        rank, where = self.global_rank, provenance.here()
        raise errors.COLLECTIVE_SHAPE(
            call=self.name, rank=rank, option=option, given=given, expected=expected, where=where
        )

    def reduction(self, op: ReduceOp, array: np.ndarray) -> Reduction:
        """Return how the values of an array are reduced."""
        return reduction(self.name, op, array.dtype)

    def root(self, rank: int, option: str) -> int:
        """Return the rank within the group of a rank in the world."""
        return self.group.place_of(rank, self.name, option)

    @property
    def global_rank(self) -> int:
        """The rank of this process in the world."""
        return self.group.ranks[self.group.me]

    # --- what is done -------------------------------------------------------------------------------

    def agree(self, details: str) -> None:
        """Compare this call with those of the other ranks, before any data is sent, or later with `async_op`.

        Raises:
            DistributedError: on every rank, with the calls of all of them, when they differ.
        """
        if self.alone:
            return
        own = f"{self.name}({details})".encode()[:_TEXT].ljust(_TEXT)
        mine = np.frombuffer(own, np.uint8)
        all_of_them = np.empty((self.group.size(), _TEXT), np.uint8)
        request = self.group.checks.Iallgather(mine, all_of_them)

        def compare() -> None:
            if (all_of_them != mine).any():
                texts = [bytes(row).decode(errors="replace").rstrip() for row in all_of_them]
                calls = [f"rank {rank}: {text}" for rank, text in zip(self.group.ranks, texts, strict=True)]
                raise errors.CALLS_DIFFER(
                    call=self.name, rank=self.global_rank, calls="\n".join(calls), where=provenance.here()
                )

        if self.later:
            self.stages.append((request.Test, compare))
        else:
            wait_until(request.Test, self.group, self.name)
            compare()

    def move(self, kind: str, sent: Array, received: Array, finish: Callable[[], None]) -> Work | None:
        """Let a method of the communicator move elements between arrays, then call `finish`; one process copies.

        Args:
            kind: the name of the method.
            sent, received: contiguous, of any dtype.
            finish: called when all have come.
        """
        if self.alone:
            received[...] = sent
            return self.run(follow=finish)

        request = getattr(self.comm, kind)(as_bytes(sent), as_bytes(received))
        return self.run(request, functools.partial(follow_up, sent, finish))

    def run(self, request: Any = None, follow: Callable[[], Any] | None = None) -> Work | None:
        """Wait for a request of MPI, then call `follow`; with `async_op` return the work instead."""
        if request is not None:
            self.stages.append((request.Test, follow))
        elif follow is not None:
            follow()
        work = Work(self.group, self.name, self.stages, self.written)
        if self.later:
            return work
        work.wait()
        return None


def follow_up(_kept: object, follow: Callable[[], object]) -> None:
    """Call a function; the partial object with `_kept` keeps MPI's buffers alive until then."""
    follow()


def shown(array: np.ndarray) -> str:
    """Describe dtype and shape for messages."""
    return f"{array.dtype} of shape {tuple(array.shape)}"


def flat(array: np.ndarray) -> np.ndarray:
    """Return the elements in C order: the same memory if it is contiguous, a copy otherwise."""
    return array.reshape(-1) if array.flags.c_contiguous else np.ascontiguousarray(array).reshape(-1)


def as_bytes(elements: np.ndarray) -> np.ndarray:
    """Return contiguous elements of any dtype as bytes, which MPI moves unchanged."""
    return elements.view(np.uint8)


def put_back(array: np.ndarray, elements: np.ndarray) -> None:
    """Store elements in C order in an array, unless they are its own memory."""
    if not np.may_share_memory(array, elements):
        array[...] = elements.reshape(array.shape)


def rows(arrays: Sequence[np.ndarray]) -> np.ndarray:
    """Return the elements of arrays of one shape as the rows of one array."""
    return np.stack([flat(one) for one in arrays])
