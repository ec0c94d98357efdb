"""Tables of names that read as a text: words between spaces, or names with their values."""

from __future__ import annotations


def words(text: str) -> tuple[str, ...]:
    """Return the words of a text."""
    return tuple(text.split())


def pairs(text: str) -> dict[str, str]:
    """Return the dictionary of a text in which each name is followed by its value."""
    found = text.split()
    return dict(zip(found[::2], found[1::2], strict=True))
