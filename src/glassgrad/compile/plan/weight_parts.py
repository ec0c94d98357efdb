"""Into how many parts the sum over images is cut that is the gradient of a convolution's weight.

The number does not depend on that of the threads: the order of summation, and with it the last bit, stays the same.
"""

from __future__ import annotations

# A large weight has fewer parts, for they take memory.
_PARTS, _FEW_PARTS, _PART_ELEMENTS = 16, 4, 1 << 22


def parts_of(images: int, weights: int) -> int:
    """Return the number of parts for a weight of so many elements."""
    return min(_PARTS, images, max(_FEW_PARTS, _PART_ELEMENTS // weights))
