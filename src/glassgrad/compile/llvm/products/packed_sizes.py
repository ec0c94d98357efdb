"""Sizes of `packed`, separate from its writer: a process that finds the code on disk needs only these."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from glassgrad.compile.llvm.module.ir import Module

SCRATCH = 31  # the address of memory for packed parts, in the last word of a record, which no share writes

KIND, SIZE, LANES, VECTORS = "f32", 4, 16, 2
VECTOR_BYTES = LANES * SIZE  # the required size of the processor's vectors
WIDTH = LANES * VECTORS

DEPTH = 256  # terms that are packed at a time
BLOCK = 80_000  # elements of A that are packed at a time, a third of a second-level cache of a megabyte
SCRATCH_BYTES = SIZE * ((DEPTH + LANES) * WIDTH + BLOCK + 4 * LANES)


def lanes_of(functions: Module) -> int:
    """Return the number of lanes of a module's vectors; `attention` supports those of 64 and of 32 bytes."""
    return int(functions.vector_bytes) // SIZE
