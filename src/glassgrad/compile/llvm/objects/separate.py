"""Several object files as one sequence of bytes, and back."""

from __future__ import annotations

from collections.abc import Sequence

_PARTS, _APART = b"glassgrad objects\n", b"glassgrad units\n"


def joined(objects: Sequence[bytes], *, apart: bool = False) -> bytes:
    """Return several object files as one sequence of bytes; `apart` is stored with them, for `are_apart`."""
    parts = (part for one in objects for part in (len(one).to_bytes(8, "little"), one))
    return b"".join([_APART if apart else _PARTS, *parts])


def are_apart(code: bytes) -> bool:
    """Tell whether these are files that kernels share, each of which uses those before it."""
    return code.startswith(_APART)


def separate(code: bytes) -> list[bytes]:
    """Undo `joined`; a single object file is returned alone."""
    if not code.startswith((_PARTS, _APART)):
        return [code]
    found, at = [], code.index(b"\n") + 1
    while at < len(code):
        size = int.from_bytes(code[at : at + 8], "little")
        found.append(code[at + 8 : at + 8 + size])
        at += 8 + size
    return found
