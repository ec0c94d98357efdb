"""Announce long work to code that watches whether this process makes progress."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

NOW: list[str] = []
"""The work under way, on any thread."""


@contextmanager
def announced(what: str) -> Iterator[None]:
    """Announce that the block takes long."""
    NOW.append(what)
    try:
        yield
    finally:
        NOW.remove(what)
