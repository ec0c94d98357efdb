"""Writing files so that a crash, a kill or a full disk leaves the old file or the new one, never half of one."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path


def write_atomically(path: Path, content: bytes) -> None:
    """Replace `path` by `content` in one step that either happens or does not.

    The content goes to a temporary file beside it, is forced to the disk and then renamed over the old file.
    Raises `OSError`; the old file is then untouched and the temporary one removed.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
        try:
            write_all(descriptor, content)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        temporary.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):  # the error on its way out is the one to tell
            temporary.unlink(missing_ok=True)
        raise
    sync_directory(path.parent)


def write_all(descriptor: int, content: bytes) -> None:
    """Write every byte; `os.write` may take fewer, and says that a disk is full only at the next call."""
    rest = memoryview(content)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def sync_directory(path: Path) -> None:
    """Force a rename to the disk. Where a directory cannot be opened (Windows), the system offers no way to."""
    with contextlib.suppress(OSError):  # see above
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
