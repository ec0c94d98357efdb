"""The number of parts into which the sum over images in a convolution's weight gradient is cut.

It does not depend on the number of threads, so the order of summation, and with it the last bit, stays the same.
"""

from __future__ import annotations

# A large weight has fewer parts, because each part takes memory.
_PARTS, _FEW_PARTS, _PART_ELEMENTS = 16, 4, 1 << 22


def parts_of(images: int, weights: int) -> int:
    """Return the number of parts for a weight with `weights` elements."""
    return min(_PARTS, images, max(_FEW_PARTS, _PART_ELEMENTS // weights))
