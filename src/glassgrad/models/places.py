"""The part of a text that a model with a context of fixed length sees."""

from __future__ import annotations


def first_seen(length: int, context: int) -> int:
    """Return the first place of a text of that length that is still in the context.

    Positions count from this first place, so the cache becomes invalid whenever it moves. It therefore moves by half a
    context at once: on average three quarters of the context are used, and rereading costs one pass per context / 2
    tokens.

    Example:
        >>> [first_seen(length, 8) for length in (1, 8, 9, 12, 13)]
        [0, 0, 4, 4, 8]
    """
    half = max(context // 2, 1)
    return max(-(-(length - context) // half) * half, 0)
