"""Tables of names, written as text: words between blanks, and pairs `left=right`."""

from __future__ import annotations


def words(text: str) -> tuple[str, ...]:
    """Return the words of a text."""
    return tuple(text.split())


def pairs(text: str) -> dict[str, str]:
    """Return the words `left=right` of a text as a dictionary."""
    found = {}
    for word in text.split():
        left, _, right = word.partition("=")
        found[left] = right
    return found
