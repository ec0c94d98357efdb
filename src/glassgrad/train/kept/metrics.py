"""metrics.jsonl: one JSON object per line, written to disk at once.

A run may be killed at any byte. So the reader skips a truncated last line, and a resumed run removes the records of the
steps that it will repeat.
"""

from __future__ import annotations

import json
import os
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol

from glassgrad.data.atomic import BINARY, write_all, write_atomically

_DIGITS = 19


class RecordLog(Protocol):
    """Anything that takes the records of a run: JSONL, CSV, TensorBoard and others."""

    def write(self, **record: Any) -> None:
        """Write one record: "event" ("train", "validation", ...), "step", and numbers by their names."""

    def sync(self) -> None:
        """Flush what was written to stable storage; called before every checkpoint."""

    def close(self) -> None:
        """Flush buffers and close files."""


class MetricsLog(AbstractContextManager["MetricsLog"]):
    """Appends records to a JSONL file, with one write per record and without a buffer in the process.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder) / "metrics.jsonl"
        ...     with MetricsLog(path) as log:
        ...         log.write(event="train", step=100, loss=2.5)
        ...     read_metrics(path)
        [{'event': 'train', 'step': 100, 'loss': 2.5}]
    """

    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | BINARY, 0o666)

    def write(self, **record: Any) -> None:
        """Append one record. Raises `OSError` when the disk is full, `ValueError` for NaN, which JSON lacks."""
        write_all(self._descriptor, json.dumps(record, allow_nan=False).encode() + b"\n")

    def sync(self) -> None:
        """Force written data to disk, so that it survives a power failure."""
        os.fsync(self._descriptor)

    def close(self) -> None:
        """Close the file."""
        os.close(self._descriptor)

    def __exit__(self, *raised: object) -> None:
        self.close()


def read_metrics(path: Path) -> list[dict[str, Any]]:
    """Return the records of a metrics file; a missing file has none, and a truncated line is skipped.

    Example:
        >>> from pathlib import Path
        >>> from glassgrad.train import read_metrics
        >>> read_metrics(Path("no-such-run") / "metrics.jsonl")
        []
    """
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return []
    records = []
    for line in content.split(b"\n"):
        try:
            record = json.loads(line, parse_int=_whole)
        except (ValueError, RecursionError):
            continue  # an empty line, one truncated by a kill or a full disk, or a foreign one
        if (
            isinstance(record, dict)
            and isinstance(record.get("step"), int)
            and isinstance(record.get("event", ""), str)
        ):
            records.append(record)
    return records


def is_number(value: object) -> bool:
    """Tell whether an entry of a record is a number."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def _whole(digits: str) -> int | float:
    """Read an integer; damaged digits may exceed the range of floats and arrays."""
    return int(digits) if len(digits) < _DIGITS else float(digits)


def drop_after(path: Path, step: int) -> None:
    """Remove the records after `step`, and those of the end of a run: both will be written again."""
    kept = [record for record in read_metrics(path) if record["step"] <= step and record.get("event") != "final"]
    write_atomically(path, b"".join(json.dumps(record).encode() + b"\n" for record in kept))


__all__ = ["MetricsLog", "read_metrics"]
