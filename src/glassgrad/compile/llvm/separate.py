"""Several object files as one sequence of bytes, and back."""

from __future__ import annotations

from collections.abc import Sequence

_MAGIC = b"glassgrad objects\n"


def joined(objects: Sequence[bytes]) -> bytes:
    """Return several object files as one sequence of bytes."""
    return b"".join([_MAGIC, *(part for one in objects for part in (len(one).to_bytes(8, "little"), one))])


def separate(code: bytes) -> list[bytes]:
    """Return the object files that `joined` has put together, or the one that this is."""
    if not code.startswith(_MAGIC):
        return [code]
    found, at = [], len(_MAGIC)
    while at < len(code):
        size = int.from_bytes(code[at : at + 8], "little")
        found.append(code[at + 8 : at + 8 + size])
        at += 8 + size
    return found
