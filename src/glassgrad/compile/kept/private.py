"""Folders and files that only this user can have written; machine code is read only from these.

The check needs owners and modes of files, so it is skipped on Windows, where a user's folders are closed to others by
default.
"""

from __future__ import annotations

import contextlib
import os
import stat
import warnings
from pathlib import Path

from glassgrad import errors
from glassgrad.base import provenance

_HAS_OWNERS = hasattr(os, "geteuid")
noticed: set[str] = set()


def is_absolute(path: Path, variable: str) -> bool:
    """Tell whether a path from the environment is absolute; warn once about one that is not."""
    if path.is_absolute():
        return True
    _notice(path, f"is a relative path (from {variable})", f"make {variable} an absolute path")
    return False


def trusted(folder: Path) -> Path | None:
    """Return a folder that does not exist yet or that only this user can have filled; else None, with one warning.

    The parent folder is checked too, because whoever can write there can replace the folder.
    """
    if not is_absolute(folder, "GLASSGRAD_CACHE_DIR"):
        return None
    for path in (folder.parent, folder):
        complaint = _complaint(path)
        if complaint:
            _notice(path, *complaint)
            return None
    return folder


def _complaint(path: Path) -> tuple[str, str] | None:
    """Return the reason not to trust a folder, and the remedy; None if it is trusted."""
    try:
        found = path.lstat()
    except OSError:  # missing or not accessible: the later read or write handles that
        return None
    if stat.S_ISLNK(found.st_mode):
        return "is a symbolic link", "put a folder into its place"
    if not stat.S_ISDIR(found.st_mode) or _is_own(found):
        return None
    if found.st_uid != os.geteuid():
        return "belongs to another user", "use a folder of your own"
    return "can be written by other users", f"close it with: chmod go-w {path}"


def _is_own(found: os.stat_result) -> bool:
    return not _HAS_OWNERS or (found.st_uid == os.geteuid() and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH))


def _notice(path: Path, reason: str, cure: str) -> None:
    if str(path) not in noticed:
        noticed.add(str(path))
        text = errors.CACHE_REFUSED.text(path=path, reason=reason, cure=cure)
        warnings.warn(text, errors.CompileWarning, stacklevel=provenance.stack_level())


def make(folder: Path) -> None:
    """Make a folder and its parent, closed to others; raise `OSError` on failure."""
    folder.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    folder.mkdir(exist_ok=True, mode=0o700)


def read(path: Path, most: int) -> bytes | None:
    """Return the content of a file of this user: None if it is missing, empty bytes if it is to be replaced."""
    with contextlib.suppress(OSError), open(path, "rb", opener=_open) as file:
        found = os.fstat(file.fileno())  # of the open file: the path could refer to another file by now
        if stat.S_ISREG(found.st_mode) and _is_own(found) and found.st_size <= most:
            return file.read()
        return b""
    return None


def _open(path: str, flags: int) -> int:
    """Open a file, but not a link, and without waiting for the other end of a pipe."""
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
