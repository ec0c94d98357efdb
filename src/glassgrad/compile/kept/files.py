"""Entries on disk, each a header and some bytes, named by a hash of everything that they depend on.

An entry is written under a temporary name and renamed, so readers see all of it or nothing, even with concurrent
writers. A checksum over its name, header and code detects files that were damaged or renamed. If the disk fails,
compiling continues without it.

Machine code is executed as found, so only files of this user are read: `private` refuses folders and files that
another user could have written, with one warning.

The folder is ``$GLASSGRAD_CACHE_DIR``, or ``glassgrad`` in ``$XDG_CACHE_HOME`` or in ``~/.cache``; setting the first to
an empty string turns the cache off.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import stat
import time
from pathlib import Path
from typing import Any

from glassgrad.compile.kept import private

Header = dict[str, Any]  # plain data for JSON

_MAGIC = b"glassgrad native 2\n"
_SUFFIX = ".native"
KEPT_BYTES = 256 << 20
_STALE_SECONDS = 3600.0

# The user may keep other files in the folder: remove only names like these.
_ENTRY = re.compile(r"[0-9a-f]{64}" + re.escape(_SUFFIX))
_UNFINISHED = re.compile(r"\.[0-9a-f]{64}\.[a-z0-9_]+\.new")


def folder() -> Path | None:
    """Return the folder of the entries; None if the cache is off or the folder is not trusted."""
    named = os.environ.get("GLASSGRAD_CACHE_DIR")
    if named == "":
        return None
    base = Path(named) if named is not None else _user_folder()
    return None if base is None else private.trusted(base / "native")


def _user_folder() -> Path | None:
    base = os.environ.get("XDG_CACHE_HOME")
    # A relative path would name another folder after each `cd`, perhaps one unpacked with someone's project.
    if base and private.is_absolute(Path(base), "XDG_CACHE_HOME"):
        return Path(base) / "glassgrad"
    try:
        return Path.home() / ".cache" / "glassgrad"
    except RuntimeError:  # there is no home
        return None


def name_of(*parts: object) -> str:
    """Return the name of an entry from everything that its content depends on."""
    return hashlib.sha256("\x1e".join(map(str, parts)).encode()).hexdigest()


def read(key: str) -> tuple[Header, bytes] | None:
    """Return the header and the code of an entry; None if it is missing or damaged."""
    place = folder()
    if place is None:
        return None
    path = place / f"{key}{_SUFFIX}"
    data = private.read(path, KEPT_BYTES)
    if data is None:
        return None
    entry = _unpacked(key, data)
    if entry is None:
        forget(key)
    else:
        with contextlib.suppress(OSError):  # removed, or not ours: only its age is not updated
            os.utime(path)  # recently used entries are kept longest
    return entry


def forget(key: str) -> None:
    """Remove an entry that turned out to be damaged."""
    place = folder()
    if place is not None:
        with contextlib.suppress(OSError):  # another process was quicker
            (place / f"{key}{_SUFFIX}").unlink()


def _packed(key: str, header: Header, code: bytes) -> bytes:
    text = json.dumps(header).encode()
    body = len(text).to_bytes(8, "little") + text + code
    return _MAGIC + _digest(key, body) + body


def _digest(key: str, body: bytes) -> bytes:
    return hashlib.sha256(key.encode() + body).digest()


def _unpacked(key: str, data: bytes) -> tuple[Header, bytes] | None:
    start = len(_MAGIC)
    digest, body = data[start : start + 32], data[start + 32 :]
    if not data.startswith(_MAGIC) or _digest(key, body) != digest:
        return None
    size = int.from_bytes(body[:8], "little")
    try:
        header = json.loads(body[8 : 8 + size])
    except (ValueError, RecursionError):  # the second from deeply nested lists
        return None
    return (header, body[8 + size :]) if isinstance(header, dict) else None


_written: dict[Path, int] = {}
"""Bytes that this process has written to a folder since its last full listing."""
_LOOKS = 16  # a process scans the folder whenever it has written 1/16 of the limit


def write(key: str, header: Header, code: bytes, kept: int = KEPT_BYTES) -> None:
    """Store an entry, and limit the folder to about `kept` bytes; do nothing if that is impossible."""
    place = folder()
    if place is None:
        return
    import tempfile  # imports shutil and more in 3 ms, which reading avoids

    content = _packed(key, header, code)
    with contextlib.suppress(OSError):  # an unwritable cache is not an error
        private.make(place)
        handle, temporary = tempfile.mkstemp(prefix=f".{key}.", suffix=".new", dir=place)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(content)
            Path(temporary).replace(place / f"{key}{_SUFFIX}")
        except OSError:
            with contextlib.suppress(OSError):  # leftovers are removed when they are old
                Path(temporary).unlink()
            return
        # Do not scan each time: the first step of a deep network writes hundreds of entries to a folder of thousands.
        _written[place] = _written.get(place, kept) + len(content)
        if _written[place] * _LOOKS >= kept:
            _prune(place, kept)
            _written[place] = 0


def _prune(place: Path, kept: int) -> None:
    """Remove the least recently used entries beyond the limit, and temporary files of killed processes."""
    found = []
    for path in place.iterdir():
        with contextlib.suppress(OSError):  # removed while we looked
            about = path.lstat()
            if not stat.S_ISREG(about.st_mode):
                continue
            if _ENTRY.fullmatch(path.name):
                found.append((about.st_mtime, about.st_size, path))
            elif _UNFINISHED.fullmatch(path.name) and about.st_mtime < time.time() - _STALE_SECONDS:
                path.unlink()
    excess = sum(size for _, size, _ in found) - kept
    for _, size, path in sorted(found):
        if excess <= 0:
            return
        with contextlib.suppress(OSError):  # another process was quicker
            path.unlink()
            excess -= size
