"""Tables of names written as text: words separated by blanks, and pairs `name=value`."""

from __future__ import annotations


def words(text: str) -> tuple[str, ...]:
    """Return the words of a text."""
    return tuple(text.split())


def pairs(text: str) -> dict[str, str]:
    """Return the words `name=value` of a text as a dictionary."""
    return {one[0]: one[1] for one in (word.split("=", 1) for word in text.split())}
