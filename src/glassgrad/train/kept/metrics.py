"""metrics.jsonl: one JSON object per line, on disk as soon as it is known.

A run may be killed at any byte, so the reader takes a cut last line for what it is, and a resumed run drops the lines
of the steps it will make again.
"""

from __future__ import annotations

import json
import os
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol

from glassgrad.data.atomic import BINARY, write_all, write_atomically


class Logger(Protocol):
    """Whatever takes the records of a run: JSONL, CSV, TensorBoard and others."""

    def write(self, **record: Any) -> None:
        """Take one record: "event" ("train", "validation", ...), "step", and numbers by their names."""

    def sync(self) -> None:
        """Make sure that what was written survives; called before every checkpoint."""

    def close(self) -> None:
        """Write what is still to be written, and let go of files."""


class MetricsLog(AbstractContextManager["MetricsLog"]):
    """Appends records to a JSONL file, one write per record and nothing buffered in the process.

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
        """Append one record. Raises `OSError` when the disk is full, `ValueError` for NaN, which is no JSON."""
        write_all(self._descriptor, json.dumps(record, allow_nan=False).encode() + b"\n")

    def sync(self) -> None:
        """Force what was written to the disk, so that a power cut keeps it as well."""
        os.fsync(self._descriptor)

    def close(self) -> None:
        """Close the file."""
        os.close(self._descriptor)

    def __exit__(self, *raised: object) -> None:
        self.close()


def read_metrics(path: Path) -> list[dict[str, Any]]:
    """Return the records of a metrics file; a missing file has none, and a line that was cut short is left out."""
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return []
    records = []
    for line in content.split(b"\n"):
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            continue  # an empty line, one that a kill or a full disk cut short, or none of ours
        if isinstance(record, dict) and isinstance(record.get("step"), int):
            records.append(record)
    return records


def drop_after(path: Path, step: int) -> None:
    """Remove the records of later steps than `step`, and those of the end of a run, which will be written again."""
    kept = [record for record in read_metrics(path) if record["step"] <= step and record.get("event") != "final"]
    write_atomically(path, b"".join(json.dumps(record).encode() + b"\n" for record in kept))


__all__ = ["MetricsLog", "read_metrics"]
