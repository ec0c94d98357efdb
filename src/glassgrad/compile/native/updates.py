"""Update all parameters of an optimizer by one native call: `compile.llvm.loops.updates` around a rule's kernel."""

from __future__ import annotations

import struct
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from glassgrad.base.kept import free_in_children
from glassgrad.compile.llvm.module import support
from glassgrad.compile.native import products, runtime
from glassgrad.compile.native.executable import NativeStep

Entry = tuple[tuple[int, ...], int]  # addresses of a parameter's arrays, and the number of elements of each

_FORM = struct.Struct("<7q")


class Loop:
    """A rule's kernel for one chunk, run on all chunks of many parameters.

    Args:
        step: the kernel; a plain step of one share without memory of its own, e.g. an elementwise rule.
        arrays: the number of inputs that are arrays of a chunk; the inputs after them are numbers.
        shares: the number of parts into which the parameters are divided.
    """

    def __init__(self, step: NativeStep, arrays: int, shares: int) -> None:
        self.step, self.arrays, self.shares = step, arrays, shares
        self.lock = free_in_children(threading.Lock())  # of the contexts, which hold the numbers of one call
        layout = step.layout
        self.chunk = step.inputs[0].size
        self.size = step.inputs[0].dtype.itemsize
        places = [support.slot_offset(1, layout.slots[var]) for var in step.inputs]
        self.numbers = places[arrays:]
        self.contexts = [step.copied_context() for _ in range(shares)]
        written = [int(var in layout.written) for var in step.inputs[:arrays]]
        self.slots = self.contexts[0].table(list(zip(places, written, strict=False)))
        self.spare = runtime.aligned(shares * arrays * self.chunk * self.size)

    @staticmethod
    def fits(step: NativeStep) -> bool:
        """Tell whether a kernel may run on several threads at once."""
        layout = step.layout
        return step.is_plain and step.shares == 1 and not layout.arena and not layout.scratch and not layout.buffers

    def run(self, entries: Sequence[Entry], numbers: Sequence[float]) -> None:
        """Update parameters in place. Their arrays must be disjoint, contiguous and aligned."""
        with self.lock:
            self._run(entries, np.array(numbers, self.step.inputs[0].dtype))

    def _run(self, entries: Sequence[Entry], given: np.ndarray[Any, Any]) -> None:
        begin = int(given.ctypes.data) if given.size else 0
        shares = [np.array(rows, np.int64) for rows in self._shares(entries)]
        records = []
        for at, (context, rows) in enumerate(zip(self.contexts, shares, strict=True)):
            for number, place in enumerate(self.numbers):
                context.set(place, begin + number * self.size)
            spare = int(self.spare.ctypes.data) + at * self.arrays * self.chunk * self.size
            where = int(rows.ctypes.data) if rows.size else 0
            records.append((context.address, self.arrays, self.slots, spare, self.chunk * self.size, where, len(rows)))
        products.job("update", self.shares).run(_FORM, records)

    def _shares(self, entries: Sequence[Entry]) -> list[list[tuple[int, ...]]]:
        """Divide parameters into one part per share, with about equal numbers of chunks; return their rows."""
        chunks = [-(-count // self.chunk) for _, count in entries]
        most = -(-sum(chunks) // self.shares)
        found: list[list[tuple[int, ...]]] = [[] for _ in range(self.shares)]
        share = taken = 0
        for (addresses, count), parts in zip(entries, chunks, strict=True):
            start = 0
            while start < parts:
                if taken == most:
                    share, taken = share + 1, 0
                stop = min(parts, start + most - taken)
                elements = min(count, stop * self.chunk) - start * self.chunk
                further = start * self.chunk * self.size
                whole, left = divmod(elements, self.chunk)
                found[share].append((whole, left * self.size, *[one + further for one in addresses]))
                taken += stop - start
                start = stop
        return found


def loop(step: NativeStep, arrays: int, shares: int) -> Loop | None:
    """Return the loop around a kernel; None for a kernel that cannot run on several threads at once."""
    return Loop(step, arrays, shares) if Loop.fits(step) else None
