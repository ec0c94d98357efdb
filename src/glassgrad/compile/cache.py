"""Compiled steps on disk: a second process that compiles the same graph finds the machine code there.

An entry's name is a hash of everything that the code depends on: the graph as it was traced (or the module's text), the
processor and its features, and the versions of glassgrad and LLVM. An entry is written under another name and moved
into place, so that readers see all of it or nothing, however many write at once; a checksum finds files that were
damaged since. Whatever goes wrong with the disk, compiling goes on without it.

The folder is ``$GLASSGRAD_CACHE_DIR``, or ``glassgrad`` in ``$XDG_CACHE_HOME`` or in ``~/.cache``; setting the first to
an empty string turns the cache off.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tempfile
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

_MAGIC = b"glassgrad native 1\n"
_KEPT_BYTES = 256 << 20


def folder() -> Path | None:
    """Return where entries lie; None when the cache is off."""
    named = os.environ.get("GLASSGRAD_CACHE_DIR")
    if named is not None:
        return Path(named) / "native" if named else None
    base = os.environ.get("XDG_CACHE_HOME")
    try:
        return (Path(base) if base else Path.home() / ".cache") / "glassgrad" / "native"
    except RuntimeError:  # there is no home
        return None


@lru_cache(maxsize=1)
def _versions() -> str:
    """Return what identifies the compiler: versions, and the state of its own source files and of those of the ops."""
    import llvmlite
    from llvmlite.binding import llvm_version_info

    from glassgrad._version import __version__

    here = Path(__file__).parent.parent
    sources = []
    for path in sorted([*(here / "compile").rglob("*.py"), *(here / "ops").rglob("*.py")]):
        with contextlib.suppress(OSError):  # removed while we looked
            found = path.stat()
            sources.append(f"{path.relative_to(here)} {found.st_size} {found.st_mtime_ns}")
    return "\n".join([__version__, llvmlite.__version__, str(llvm_version_info), *sources])


def key_of(*parts: object) -> str:
    """Return the name of an entry for what its code depends on."""
    from glassgrad.compile.emit.llvm.target import host

    machine = host()
    whole = [_versions(), machine.triple, machine.cpu, machine.features, *map(str, parts)]
    return hashlib.sha256("\x1e".join(whole).encode()).hexdigest()


def read(key: str) -> tuple[dict[str, Any], bytes] | None:
    """Return the header and the code of an entry; None when there is none or it is damaged."""
    place = folder()
    if place is None:
        return None
    path = place / key
    try:
        data = path.read_bytes()
    except OSError:
        return None
    entry = _unpacked(data)
    if entry is None:
        with contextlib.suppress(OSError):  # another process was quicker
            path.unlink()
    else:
        with contextlib.suppress(OSError):  # removed, or not ours: only its age is lost
            os.utime(path)  # entries that are used are kept longest
    return entry


def _unpacked(data: bytes) -> tuple[dict[str, Any], bytes] | None:
    start = len(_MAGIC)
    digest, body = data[start : start + 32], data[start + 32 :]
    if not data.startswith(_MAGIC) or hashlib.sha256(body).digest() != digest:
        return None
    size = int.from_bytes(body[:8], "little")
    header: dict[str, Any] = json.loads(body[8 : 8 + size])
    return header, body[8 + size :]


def write(key: str, header: dict[str, Any], code: bytes) -> None:
    """Store an entry; does nothing where that is impossible."""
    place = folder()
    if place is None:
        return
    text = json.dumps(header).encode()
    body = len(text).to_bytes(8, "little") + text + code
    with contextlib.suppress(OSError):  # a cache that cannot be written is no error
        place.mkdir(parents=True, exist_ok=True, mode=0o700)
        handle, temporary = tempfile.mkstemp(prefix=".new-", dir=place)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(_MAGIC + hashlib.sha256(body).digest() + body)
            os.replace(temporary, place / key)  # noqa: PTH105 - one call, atomic
        except OSError:
            with contextlib.suppress(OSError):  # what is left is swept with the oldest
                os.unlink(temporary)  # noqa: PTH108 - beside the call above
            return
        _prune(place)


def _prune(place: Path) -> None:
    """Remove the entries that were not used for longest, once there are too many."""
    found = []
    for path in place.iterdir():
        with contextlib.suppress(OSError):  # removed while we looked
            stat = path.stat()
            found.append((stat.st_mtime, stat.st_size, path))
    excess = sum(size for _, size, _ in found) - _KEPT_BYTES
    for _, size, path in sorted(found):
        if excess <= 0:
            return
        with contextlib.suppress(OSError):  # another process was quicker
            path.unlink()
            excess -= size


def code_for(text: str, compile_text: Callable[[str], bytes]) -> tuple[bytes, bool]:
    """Return the code of a module, from the disk if it is there, and whether it was."""
    key = key_of("module", text)
    entry = read(key)
    if entry is not None:
        return entry[1], True
    code = compile_text(text)
    write(key, {}, code)
    return code, False
