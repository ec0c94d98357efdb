"""Sizes of `packed`, apart from what writes it: a process that finds its code on the disk needs no more."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from glassgrad.compile.llvm.module.ir import Module

SCRATCH = 31  # the address of memory for packed parts; the last word of a record, which no share writes to

KIND, SIZE, LANES, VECTORS = "f32", 4, 16, 2
VECTOR_BYTES = LANES * SIZE  # what the processor's vectors must have
WIDTH = LANES * VECTORS

DEPTH = 256  # terms that are packed at a time
BLOCK = 80_000  # elements of A that are packed at a time: a third of a second-level cache of a megabyte
SCRATCH_BYTES = SIZE * ((DEPTH + LANES) * WIDTH + BLOCK + 4 * LANES)


def lanes_of(functions: Module) -> int:
    """Return how many numbers a vector of a module holds; `attention` is for those of 64 and of 32 bytes."""
    return int(functions.vector_bytes) // SIZE
