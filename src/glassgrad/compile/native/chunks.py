"""Run a kernel for one chunk on all chunks of large arrays by one native call, with `compile.llvm.module.chunks`."""

from __future__ import annotations

import struct
import threading
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from glassgrad.base.kept import free_in_children
from glassgrad.compile.llvm.module import support
from glassgrad.compile.native import products
from glassgrad.compile.native.executable import NativeStep
from glassgrad.ops.core import Array

_FORM = struct.Struct("<5q")


class Chunks:
    """The loop around a kernel.

    Args:
        step: the kernel; a plain step of one share whose arguments need only a check of their types.
        shares: the number of parts into which the chunks are divided.
    """

    def __init__(self, step: NativeStep, shares: int) -> None:
        assert step.is_plain
        assert step.shares == 1
        assert not step.layout.checks
        self.shares = shares
        self.lock = free_in_children(threading.Lock())  # of the table and the contexts
        self.contexts = [step.copied_context() for _ in range(shares)]
        self.places = [support.slot_offset(1, step.layout.slots[var]) for var in (*step.inputs, *step.outputs)]
        self.form = struct.Struct(f"<{4 * len(self.places)}q")
        self.table: Array = np.zeros(4 * len(self.places), np.int64)
        address = int(self.table.ctypes.data)
        self.about = [(context.address, len(self.places), address) for context in self.contexts]

    def run(self, arrays: Sequence[Array], steps: Sequence[int], count: int) -> None:
        """Run on `count` chunks.

        Args:
            arrays: one for each input and output; contiguous, aligned, of the kernel's dtypes, and at least one chunk
                long.
            steps: bytes per chunk of each array; 0 for an array that all chunks read.
            count: the number of chunks. The last one ends with the array, and may share elements with the one before.
        """
        rows = zip(self.places, arrays, steps, strict=True)
        words = [
            word for place, array, step in rows for word in (place, id(array), step, array.nbytes - step if step else 0)
        ]
        edges = [count * at // self.shares for at in range(self.shares + 1)]
        records = [(*one, first, last) for one, (first, last) in zip(self.about, pairwise(edges), strict=True)]
        with self.lock:
            self.form.pack_into(self.table, 0, *words)
            products.job("chunks", self.shares).run(_FORM, records)
