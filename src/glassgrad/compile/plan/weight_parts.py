"""Into how many parts the sum over images is cut that is the gradient of a convolution's weight.

The number does not depend on that of the threads: the order of summation, and with it the last bit, stays the same.
"""

from __future__ import annotations

# A large weight has fewer parts, for they take memory.
_PARTS, _FEW_PARTS, _PART_ELEMENTS = 16, 4, 1 << 22
# With so many elements for each term of their sums, adding up parts costs more than sharing out the channels.
_ELEMENTS_A_TERM = 64


def has_few_terms(images: int, positions: int, weights: int) -> bool:
    """Tell whether a weight is so large, and its sums so short, that they are not cut into parts."""
    return images > 1 and weights >= _ELEMENTS_A_TERM * images * positions


def parts_of(images: int, positions: int, weights: int, groups: int) -> int:
    """Return the number of parts for a weight of so many elements."""
    if groups == 1 and has_few_terms(images, positions, weights):
        return 1
    return min(_PARTS, images, max(_FEW_PARTS, _PART_ELEMENTS // weights))
