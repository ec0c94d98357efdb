"""Atomic file writes: a crash, a kill or a full disk leaves the old file or the new one, never half of one."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import time
from pathlib import Path

BINARY = getattr(os, "O_BINARY", 0)
"""For `os.open`: without it, Windows writes two bytes per newline and stops reading at a byte 0x1A."""

_TEMPORARY = re.compile(r"\.(?P<name>.+)\.(?P<process>[0-9]+)\.tmp")
_HOUR = 3600.0


def temporary_of(path: Path) -> Path:
    """Return the path to which this process writes a file, or a folder, before it is renamed."""
    return path.with_name(f".{path.name}.{os.getpid()}.tmp")


def write_atomically(path: Path, content: bytes) -> None:
    """Replace `path` by `content` atomically.

    The content goes to a temporary file beside it, is forced to the disk and then renamed over the old file.
    Raises `OSError`; the old file is then untouched and the temporary one removed.
    """
    temporary = temporary_of(path)
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | BINARY, 0o666)
        try:
            write_all(descriptor, content)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        temporary.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):  # the original error is the one to report
            temporary.unlink(missing_ok=True)
        raise
    sync_directory(path.parent)


def sweep(folder: Path, name: str = "", *, alone: bool = False, ask: bool = hasattr(os, "fork")) -> None:
    """Remove temporary files that killed processes left of one file, or of all files, in a folder.

    With `alone`, no other process writes there and all of them are removed. Otherwise files of living processes stay;
    where that cannot be tested, as on Windows, whose `os.kill` with 0 does not test, files younger than an hour stay.
    """
    for path in folder.glob(".*.tmp"):
        found = _TEMPORARY.fullmatch(path.name)
        if found is None or (name and found["name"] != name):
            continue
        with contextlib.suppress(OSError):  # harmless, and tried again next time
            if alone or _is_stale(path, int(found["process"]), ask):
                _remove(path)


def _is_stale(path: Path, process: int, ask: bool) -> bool:
    if not ask:
        return path.stat().st_mtime < time.time() - _HOUR
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return True
    except OSError:  # it lives, under another user
        return False
    return False


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink()


def write_all(descriptor: int, content: bytes) -> None:
    """Write every byte; `os.write` may take fewer, and reports a full disk only at the next call."""
    rest = memoryview(content)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def sync_directory(path: Path) -> None:
    """Force a rename to the disk. Windows, where a directory cannot be opened, offers no way to do so."""
    with contextlib.suppress(OSError):  # see above
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
