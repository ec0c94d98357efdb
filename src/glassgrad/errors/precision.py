"""Messages about the precision of numbers: bfloat16 and autocast."""

from __future__ import annotations

from glassgrad.errors.kinds import Message


class PrecisionWarning(UserWarning):
    """A computation runs in another precision than requested."""


NO_BFLOAT_UNITS = Message(
    PrecisionWarning,
    "autocast to bfloat16 at {where}: this processor has no instruction for products of bfloat16 (AVX512-BF16), or there "
    "is no LLVM to use it; everything stays in float32, which is more exact and not slower here.\n"
    "Next: nothing; the same program runs in bfloat16 on a processor with that instruction.",
)
AMX_WRONG = Message(
    PrecisionWarning,
    "AMX on this processor ({cpu}) computed {found} instead of {wanted} for an element of a bfloat16 product; this process "
    "multiplies with AVX512-BF16 instead, which is slower and right.\n"
    "Next: report it with the name of the processor, and of the virtual machine if there is one.",
)
