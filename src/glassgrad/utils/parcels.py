"""Batches from a worker to the process that trains, in memory that both have mapped.

A worker copies the large arrays of a batch into a slot, a segment of shared memory, and sends the rest with their
places. The first byte of a slot says whether its batch is in use. The process that trains makes tensors over the slot,
without a copy, and clears the byte when the last of them is gone: the worker then fills the slot again. Fresh memory
for each batch would cost more than a pipe, since the system gives it page by page.
"""

from __future__ import annotations

import io
import itertools
import os
import pickle
import weakref
from multiprocessing.reduction import ForkingPickler
from typing import Any

import numpy as np

from glassgrad.engine.memory import shared

LARGE = 1 << 16  # bytes of arrays from which a slot is faster than a pipe
_MOST = 8  # slots of a worker; with all of them in use, as when batches are kept in a list, a batch takes the pipe
_ALIGNED = 64  # bytes: the head of a slot, and what each array begins at a multiple of


class Letter:
    """A batch on its way through the pipe, with copies of its arrays."""

    def __init__(self, rest: bytes, copies: list[bytearray]) -> None:
        self.rest, self.copies = rest, copies


class Parcel:
    """A batch on its way: what is not in the slot, the places of what is, and the segment where it is a new one."""

    def __init__(
        self, rest: bytes, places: list[tuple[int, int]], slot: tuple[int, int], segment: shared.Segment | None
    ) -> None:
        self.rest, self.places, self.slot, self.segment = rest, places, slot, segment


class Sender:
    """The slots of a worker."""

    def __init__(self) -> None:
        self.slots: list[shared.Segment] = []

    def packed(self, batch: object) -> object:
        """Return a parcel of a batch with large arrays, and a letter of any other."""
        buffers: list[pickle.PickleBuffer] = []
        file = io.BytesIO()
        try:
            pickle.Pickler(file, 5, buffer_callback=buffers.append).dump(batch)
        except (
            pickle.PicklingError,
            TypeError,
            AttributeError,
        ):  # the pipe has other ways, and says what it cannot send
            return batch
        views = [buffer.raw() for buffer in buffers]
        places, end = [], _ALIGNED
        for view in views:
            places.append((end, end + view.nbytes))
            end += -(-view.nbytes // _ALIGNED) * _ALIGNED
        small = sum(view.nbytes for view in views) < LARGE
        number, fresh = (None, False) if small or not shared.is_possible() else self._free(end)
        if number is None:
            return Letter(file.getvalue(), [bytearray(view) for view in views])
        segment = self.slots[number]
        segment[0] = 1
        memory = np.frombuffer(segment, np.uint8)
        for view, (start, stop) in zip(views, places, strict=True):
            memory[start:stop] = np.frombuffer(view, np.uint8)
        return Parcel(file.getvalue(), places, (os.getpid(), number), segment if fresh else None)

    def _free(self, size: int) -> tuple[int | None, bool]:
        """Return the number of a slot that is not in use, and whether its segment is new; None if all are in use."""
        free = [number for number, segment in enumerate(self.slots) if not segment[0]]
        for number in free:
            if len(self.slots[number]) >= size:
                return number, False
        if not free and len(self.slots) >= _MOST:
            return None, False
        segment = shared.new_segment(size)
        if free:
            self.slots[free[0]] = segment
            return free[0], True
        self.slots.append(segment)
        return len(self.slots) - 1, True


_numbers = itertools.count()
_in_use: dict[int, weakref.finalize[Any, Any]] = {}  # what clears the first byte of each slot that is in use here


def _release(segment: shared.Segment, number: int) -> None:
    _in_use.pop(number).detach()
    segment[0] = 0


def _keep() -> None:
    """Never fill these slots again: a process that is being forked reads them as well."""
    while _in_use:
        _in_use.popitem()[1].detach()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_keep)


class Receiver:
    """The slots of all workers, as the process that trains has them mapped."""

    def __init__(self) -> None:
        self.slots: dict[tuple[int, int], shared.Segment] = {}

    def opened(self, batch: object) -> Any:
        """Return the batch of a parcel, over the memory of its slot, or of a letter."""
        if isinstance(batch, Letter):
            return ForkingPickler.loads(batch.rest, buffers=batch.copies)
        if not isinstance(batch, Parcel):
            return batch
        if batch.segment is not None:
            self.slots[batch.slot] = batch.segment
        segment = self.slots[batch.slot]
        memory = np.frombuffer(segment, np.uint8)
        number = next(_numbers)
        _in_use[number] = weakref.finalize(memory, _release, segment, number)
        _in_use[number].atexit = False
        return ForkingPickler.loads(batch.rest, buffers=[memory[start:stop] for start, stop in batch.places])


__all__ = ["Letter", "Parcel", "Receiver", "Sender"]
