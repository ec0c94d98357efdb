"""Load the functions of eager mode that run on the pool's threads: `shares`, `packed`, `attention`, `recurrent`,
`updates`, `chunks` and `channels` in `compile.llvm`.
"""

from __future__ import annotations

import ctypes
import struct
import threading
from collections.abc import Sequence
from functools import cache as cached

import numpy as np

from glassgrad.base.kept import Cache, free_in_children
from glassgrad.compile.llvm.module import support
from glassgrad.compile.llvm.module.target import LoadedCode, host
from glassgrad.compile.llvm.products import packed_sizes
from glassgrad.compile.llvm.products import shares as products
from glassgrad.compile.native import cache, runtime
from glassgrad.compile.native.executable import Context, object_layout

_Resume = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)


class Job:
    """A function of those modules with the memory of its shares.

    Args:
        function: the name of the function.
        shares: the number of shares.
    """

    def __init__(self, function: str, shares: int) -> None:
        self.lock = free_in_children(threading.Lock())
        self.context = Context(shares, products.WORDS * shares)
        self.context.set(support.SHARES, shares)
        self.context.set(support.PHASES, 1)
        self.context.set(support.TABLE, self.context.table([[code(_module_of(function)).address(function)]]))
        self.pool = runtime.pool()
        self.context.set(support.POOL, self.pool.address)
        self.pool.ensure(shares - 1)
        self.first = support.slot_offset(shares, 0)
        self.resume = _Resume(runtime.support_code().address("resume"))
        if function == "packed":
            self._give_scratch(shares)

    def _give_scratch(self, shares: int) -> None:
        """Give each share memory for packed parts; pages that no share writes take no memory."""
        size = -(-packed_sizes.SCRATCH_BYTES // packed_sizes.VECTOR_BYTES) * packed_sizes.VECTOR_BYTES
        self.scratch = np.empty(shares * size + packed_sizes.VECTOR_BYTES, np.uint8)
        first = -(-self.scratch.ctypes.data // packed_sizes.VECTOR_BYTES) * packed_sizes.VECTOR_BYTES
        for share in range(shares):
            at = self.first + 8 * (products.WORDS * share + packed_sizes.SCRATCH)
            struct.pack_into("<q", self.context.memory, at, first + share * size)

    def run(self, form: struct.Struct, records: Sequence[tuple[int, ...]], turns: int = 1) -> None:
        """Run the shares that these records describe; if a step has the pool's threads, run on this thread only.

        With several turns each share runs `turns` times, and a turn begins when all shares have finished the previous
        one.
        """
        with self.lock:
            self._run(form, records, turns)

    def _run(self, form: struct.Struct, records: Sequence[tuple[int, ...]], turns: int) -> None:
        memory = self.context.memory
        for at, record in enumerate(records):
            form.pack_into(memory, self.first + 8 * products.WORDS * at, *record)
        lock = self.pool.lock
        alone = len(records) == 1 or not lock.acquire(blocking=False)
        try:
            self.resume(self.context.address, alone, turns)
        finally:
            if not alone:
                lock.release()
                if self.pool.left:
                    self.pool.sweep()


# A forked child inherits the counters of a run but not its threads.
_JOBS: Cache[tuple[str, int], Job] = Cache("jobs", 256, in_children=False)


def job(function: str, shares: int) -> Job:
    """Return the job of a function for `shares`; the first one loads the code.

    Raises:
        ImportError: without llvmlite.
    """
    return _JOBS.found((function, shares), lambda: Job(function, shares))


def packs() -> bool:
    """Tell whether this machine has the vectors that `packed` needs.

    Raises:
        ImportError: without llvmlite.
    """
    return host().vector_bytes == 64


def lanes() -> int:
    """Return how many float32 a vector of this machine holds.

    Raises:
        ImportError: without llvmlite.
    """
    return host().vector_bytes // packed_sizes.SIZE


def multiplies_whole_lines() -> bool:
    """Tell whether this machine multiplies vectors of 64 bytes as fast as those of 32.

    Raises:
        ImportError: without llvmlite.
    """
    return packs() and host().cpu not in _HALVES


_HALVES = frozenset({"znver4"})  # LLVM's name; it has these instructions but multiplies each half in turn


def _module_of(function: str) -> str:
    if function.startswith(_RECURRENT):
        return function.removesuffix("_back")
    return _MODULES.get(function, "products")


_RECURRENT = "recurrent_"  # a module for each cell and element kind, with both directions
_MODULES = {
    "update": "updates",
    "packed": "packed",
    "chunks": "chunks",
    "inside_f32": "channels",
    "inside_f64": "channels",
    "attend": "attention",
    "attend_back": "attention",
}


@cached
def code(module: str) -> LoadedCode:
    """Return the code of one of those modules, which lives as long as the process."""
    return LoadedCode(object_code(module))


@cached
def object_code(module: str) -> bytes:
    """Return the object code of one of those modules, from disk if it is there."""
    machine = host()
    about = (machine.header(), machine.attributes(), machine.vector_bytes, object_layout()[1])
    return cache.code_of(module, about, lambda: _text(module, *about), machine.compile)


def _text(module: str, header: str, attributes: str, vector_bytes: int, data: int) -> str:
    # Import lazily: each job needs only one of them, and only once per machine.
    from glassgrad.compile.llvm.loops import channels, updates
    from glassgrad.compile.llvm.module import chunks
    from glassgrad.compile.llvm.products import packed
    from glassgrad.compile.llvm.sequences import attention, recurrent

    if module.startswith(_RECURRENT):
        return recurrent.module(module, header, attributes, vector_bytes, data)
    match module:
        case "updates":
            return updates.module(header, attributes)
        case "chunks":
            return chunks.module(header, attributes, data)
        case "channels":
            return channels.module(header, attributes, vector_bytes, data)
        case "attention":
            return attention.module(header, attributes, vector_bytes, data)
        case "packed":
            return packed.module(header, attributes, data)
    return products.module(header, attributes, vector_bytes, data)
