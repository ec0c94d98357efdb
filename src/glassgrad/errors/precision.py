"""Messages about the precision of numbers: bfloat16 and autocast."""

from __future__ import annotations

from glassgrad.errors.kinds import Message


class PrecisionWarning(UserWarning):
    """A computation runs in another precision than was asked for."""


NO_BFLOAT_UNITS = Message(
    PrecisionWarning,
    "autocast to bfloat16 at {where}: this processor has no instruction for products of bfloat16 (AVX512-BF16), or there "
    "is no LLVM to use it; everything stays in float32, which is as exact and here as fast.\n"
    "Next: nothing; on a processor that has it, the same program runs in bfloat16.",
)
