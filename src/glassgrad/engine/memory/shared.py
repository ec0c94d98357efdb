"""Memory that several processes write to and read: segments without a name.

A segment is an anonymous file of the system's (`memfd_create`; an unlinked temporary file where there is none), mapped
into each process that has its descriptor. The system frees it with the last process that has it, however that process
ends, so nothing is left behind and there is nothing to clean up. A descriptor travels with `multiprocessing`: a started
process inherits it, a queue sends it through a socket, for which the sender must still run.

Where a descriptor cannot be sent (Windows), `move` refuses, and tensors travel as copies.
"""

from __future__ import annotations

import mmap
import os
import tempfile
import weakref
from collections.abc import Callable, Iterable, Sequence
from multiprocessing import reduction
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from glassgrad import errors
from glassgrad.base import provenance
from glassgrad.engine.node import describe
from glassgrad.engine.tensor import Tensor

if TYPE_CHECKING:
    from multiprocessing.resource_sharer import DupFd  # Windows has none

_ALIGNED = 64  # bytes: a cache line, and what native code asks of an array

# Segments of this process by (device, inode): memory that arrives twice is mapped once.
_segments: weakref.WeakValueDictionary[tuple[int, int], Segment] = weakref.WeakValueDictionary()


def is_possible() -> bool:
    """Tell whether processes can share memory here: whether they can send each other descriptors."""
    return os.name == "posix" and reduction.HAVE_SEND_HANDLE


class Segment(mmap.mmap):
    """A mapped file without a name.

    Attributes:
        descriptor: the file's; closed with the segment.
        parts: the arrays that own parts of it, by (start, bytes): tensors of the same memory have the same owner.
    """

    descriptor: int
    parts: weakref.WeakValueDictionary[tuple[int, int], np.ndarray]

    def __new__(cls, descriptor: int, size: int) -> Self:
        segment = super().__new__(cls, descriptor, size)
        segment.descriptor = descriptor
        segment.parts = weakref.WeakValueDictionary()
        return segment

    def __del__(self, close: Callable[[int], None] = os.close) -> None:
        if "descriptor" in self.__dict__:
            close(self.descriptor)

    def part(self, start: int, count: int) -> np.ndarray:
        """Return the array of bytes that owns a part of the memory."""
        owner = self.parts.get((start, count))
        if owner is None:
            self.parts[start, count] = owner = np.frombuffer(self, np.uint8, count, start)
        return owner


def new_segment(size: int) -> Segment:
    """Return a segment of zeros."""
    size = max(size, 1)  # no empty file can be mapped
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("glassgrad")
    else:
        with tempfile.TemporaryFile() as file:  # it has no name by now
            descriptor = os.dup(file.fileno())
    os.ftruncate(descriptor, size)
    return _known(Segment(descriptor, size))


def _known(segment: Segment) -> Segment:
    state = os.fstat(segment.descriptor)
    return _segments.setdefault((state.st_dev, state.st_ino), segment)


def _arrived(handle: DupFd, size: int) -> Segment:
    """Return the segment that another process has sent."""
    descriptor = handle.detach()
    state = os.fstat(descriptor)
    known = _segments.get((state.st_dev, state.st_ino))
    if known is None:
        return _known(Segment(descriptor, size))
    os.close(descriptor)
    return known


def _sent(segment: Segment) -> tuple[Any, ...]:
    return _arrived, (reduction.DupFd(segment.descriptor), len(segment))


def owner_of(array: object) -> tuple[Segment, np.ndarray] | None:
    """Return the segment in which an array lies and the array that owns its part of it; None for other memory."""
    while isinstance(array, np.ndarray):
        base = array.base
        held = getattr(base, "obj", base)
        if isinstance(held, Segment):
            return held, array
        array = base
    return None


# --- tensors --------------------------------------------------------------------------------------


def move(tensors: Iterable[Tensor]) -> None:
    """Move the memory of tensors into one segment; those that are in one stay there.

    Tensors of the same memory go together, if all of them are given: a tied weight and its transpose stay tied.

    Raises:
        AutogradError: where processes cannot share memory.
        KindError: a tensor whose values are not known, inside of a transformation.
    """
    if not is_possible():
        raise errors.NO_SHARED_MEMORY(where=provenance.here())
    found: list[tuple[Tensor, np.ndarray]] = []
    roots: dict[int, np.ndarray] = {}
    for tensor in tensors:
        register(type(tensor))
        if type(tensor.array) is not np.ndarray:
            raise errors.SHARE_NO_VALUES(where=provenance.here())
        if owner_of(tensor.array) is None:
            root = _root(tensor.array)
            found.append((tensor, root))
            roots[id(root)] = root
    starts: dict[int, int] = {}
    end = 0
    for key, root in roots.items():
        starts[key] = end
        end += -(-root.nbytes // _ALIGNED) * _ALIGNED
    if not found:
        return
    segment = new_segment(end)
    for tensor, root in found:
        part = segment.part(starts[id(root)], root.nbytes)
        twin = np.ndarray(root.shape, root.dtype, part, strides=root.strides)
        twin[...] = root
        tensor.array = twin if tensor.array is root else _in(part, tensor.array, root)


def _root(array: np.ndarray) -> np.ndarray:
    """Return the array whose memory moves: the owner if it is one run of memory, else a copy of the elements."""
    owner = array
    while isinstance(owner.base, np.ndarray):
        owner = owner.base
    return owner if owner.flags.forc else array.copy()


def _in(part: np.ndarray, array: np.ndarray, root: np.ndarray) -> np.ndarray:
    """Return the view of a moved memory that `array` is of the memory before."""
    offset = array.ctypes.data - root.ctypes.data
    if not 0 <= offset <= root.nbytes - array.itemsize * min(1, array.size):  # the root is a copy of this array
        return np.ndarray(array.shape, array.dtype, part)
    return np.ndarray(array.shape, array.dtype, part, offset, array.strides)


class _Part:
    """An array of a segment, on its way to another process, where it is the array over the same memory."""

    def __init__(self, array: np.ndarray) -> None:
        found = owner_of(array)
        assert found is not None  # `move` has put it there
        segment, owner = found
        start = owner.ctypes.data - np.frombuffer(segment, np.uint8, 1).ctypes.data
        offset = array.ctypes.data - owner.ctypes.data
        self.where = segment, start, owner.nbytes, offset, array.shape, array.dtype, array.strides

    def __reduce__(self) -> tuple[Any, ...]:
        return _array, self.where


def _array(
    segment: Segment,
    start: int,
    count: int,
    offset: int,
    shape: tuple[int, ...],
    dtype: np.dtype[Any],
    strides: Sequence[int],
) -> np.ndarray:
    return np.ndarray(shape, dtype, segment.part(start, count), offset, strides)


def _tensor(kind: type[Tensor], build: Callable[..., Tensor], arguments: Iterable[object]) -> Tensor:
    register(kind)
    return build(*arguments)


def _reduced(tensor: Tensor) -> tuple[Any, ...]:
    """Return how `multiprocessing` sends a tensor: as its place in a segment, into which it moves first."""
    if tensor.node is not None:
        raise errors.SEND_NON_LEAF(what=describe(tensor))
    build, arguments = tensor.__reduce_ex__(2)
    if type(tensor.array) is not np.ndarray or not is_possible():
        return build, arguments
    move([tensor])
    parts = tuple(_Part(tensor.array) if isinstance(one, np.ndarray) else one for one in arguments)
    return _tensor, (type(tensor), build, parts)


_registered: set[type[Tensor]] = set()


def register(kind: type[Tensor]) -> None:
    """Let `multiprocessing` send tensors of a type as shared memory, in this process and those that get one."""
    if kind not in _registered:
        _registered.add(kind)
        reduction.ForkingPickler.register(kind, _reduced)


reduction.ForkingPickler.register(Segment, _sent)


__all__ = ["Segment", "is_possible", "move", "new_segment", "owner_of", "register"]
