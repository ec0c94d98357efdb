"""Announce work that takes long, for programs that watch whether this process makes progress."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

NOW: list[str] = []
"""The work under way, on any thread."""


@contextmanager
def announced(what: str) -> Iterator[None]:
    """Say inside of this block that something takes long."""
    NOW.append(what)
    try:
        yield
    finally:
        NOW.remove(what)
