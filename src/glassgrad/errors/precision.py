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
AMX_WRONG = Message(
    PrecisionWarning,
    "AMX on this processor ({cpu}) gave {found} for an element of a product of bfloat16 that is {wanted}; products run "
    "without it in this process, by AVX512-BF16, which is slower and right.\n"
    "Next: report it with the name of the processor and of the virtual machine, if it is one.",
)
