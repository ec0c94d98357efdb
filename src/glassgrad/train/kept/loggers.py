"""Loggers that receive the records of a run besides metrics.jsonl. Each is loaded if a run names it.

A resumed run repeats the steps after its checkpoint; it calls `drop_after` first, so no step is logged twice.
"""

from __future__ import annotations

import csv
import importlib
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from glassgrad import errors
from glassgrad.data.atomic import write_atomically
from glassgrad.train.config import nearest

_PLACE = ("event", "step")


class CSVLogger:
    """One row for every record, one column for every key; a new key widens the table.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     log = CSVLogger(Path(folder) / "metrics.csv")
        ...     log.write(event="train", step=10, loss=2.5)
        ...     log.write(event="validation", step=10, loss=2.25, accuracy=0.5)
        ...     print(log.path.read_text(encoding="utf-8"))
        event,step,loss,accuracy
        train,10,2.5,
        validation,10,2.25,0.5
        <BLANKLINE>
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._columns: list[str] = []
        if path.exists():
            with path.open(newline="", encoding="utf-8") as file:
                self._columns = next(csv.reader(file), [])

    def write(self, **record: Any) -> None:
        """Append a record. Raises `OSError`."""
        new = [key for key in record if key not in self._columns]
        if new:
            self._rewrite(self._rows(), [*self._columns, *new])
        with self.path.open("a", newline="", encoding="utf-8") as file:
            csv.DictWriter(file, self._columns, lineterminator="\n").writerow(record)

    def drop_after(self, step: int) -> None:
        """Remove the rows of later steps."""
        if self._columns:
            kept = [row for row in self._rows() if row["step"].isdigit() and int(row["step"]) <= step]
            self._rewrite([row for row in kept if row["event"] != "final"], self._columns)

    def _rows(self) -> list[dict[str, str]]:
        if not self.path.exists():
            return []
        with self.path.open(newline="", encoding="utf-8", errors="replace") as file:  # a kill may truncate a character
            return [{key: value or "" for key, value in row.items() if key} for row in csv.DictReader(file)]

    def _rewrite(self, rows: list[dict[str, str]], columns: list[str]) -> None:
        text = io.StringIO()
        writer = csv.DictWriter(text, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        write_atomically(self.path, text.getvalue().encode())
        self._columns = columns

    def sync(self) -> None:
        """Do nothing: records are not buffered."""

    def close(self) -> None:
        """Nothing is open."""


class TensorBoardLogger:
    """Scalars for TensorBoard, such as `train/loss`, written with the package tensorboardX.

    Example:
        >>> from pathlib import Path
        >>> from glassgrad.train import TensorBoardLogger
        >>> logger = TensorBoardLogger(Path("runs/first"))  # doctest: +SKIP
    """

    def __init__(self, directory: Path) -> None:
        self._package = _package("tensorboard", "tensorboardX")
        self._directory = directory
        self._writer: Any = None
        self._purge: int | None = None

    def write(self, **record: Any) -> None:
        """Add every number of a record under its event."""
        if self._writer is None:
            self._writer = self._package.SummaryWriter(str(self._directory), purge_step=self._purge)
        for name, value in _numbers(record).items():
            self._writer.add_scalar(name, value, record["step"])

    def drop_after(self, step: int) -> None:
        """Make TensorBoard ignore later steps that an earlier process wrote."""
        self._purge = step + 1

    def sync(self) -> None:
        """Flush the package's buffer."""
        if self._writer is not None:
            self._writer.flush()

    def close(self) -> None:
        """Close its files."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None


class WandbLogger:
    """Records for Weights & Biases, written with the package wandb; a resumed run continues its own record.

    Example:
        >>> from glassgrad.train import WandbLogger
        >>> logger = WandbLogger({"lr": 0.1}, "first", project="spirals")  # doctest: +SKIP
    """

    def __init__(self, config: Mapping[str, Any], identity: str, **options: Any) -> None:
        self._run: Any = _package("wandb", "wandb").init(config=dict(config), id=identity, resume="allow", **options)

    def write(self, **record: Any) -> None:
        """Log every number of a record under its event."""
        self._run.log(_numbers(record), step=record["step"])

    def drop_after(self, step: int) -> None:
        """Do nothing: the service keeps the first value of a step."""

    def sync(self) -> None:
        """Do nothing: the package sends in the background."""

    def close(self) -> None:
        """Finish the run."""
        self._run.finish()


def _numbers(record: Mapping[str, Any]) -> dict[str, float]:
    """Return the numbers of a record under the name of its event and their own."""
    numbers = {key: value for key, value in record.items() if key not in _PLACE and isinstance(value, int | float)}
    return {f"{record['event']}/{key}": value for key, value in numbers.items()}


def _package(name: str, package: str) -> Any:
    try:
        return importlib.import_module(package)
    except ImportError:
        raise errors.LOGGER_MISSING(name=name, package=package) from None


class Records:
    """Keeps the records in memory, as a list of dictionaries."""

    def __init__(self) -> None:
        self.all: list[dict[str, Any]] = []

    def write(self, **record: Any) -> None:
        """Keep a record."""
        self.all.append(record)

    def drop_after(self, step: int) -> None:
        """Forget later steps."""
        self.all = [record for record in self.all if record["step"] <= step]

    def sync(self) -> None:
        """Do nothing: records stay in memory."""

    def close(self) -> None:
        """Nothing is open."""


KNOWN = ("jsonl", "csv", "tensorboard", "wandb")


def wanted(log_to: str, known: Sequence[str] = KNOWN) -> list[str]:
    """Return the names in `log_to`. Raises `errors.InputError` for an unknown one."""
    names = [name.strip() for name in log_to.split(",") if name.strip()]
    for name in names:
        if name not in known:
            raise errors.LOGGER_UNKNOWN(given=name, known=", ".join(known), nearest=nearest(name, known))
    return names


def make(names: list[str], directory: Path | None, config: Mapping[str, Any]) -> list[Any]:
    """Return the loggers of a run, except metrics.jsonl, which the run writes itself."""
    found: list[Any] = []
    for name in names:
        if name in ("csv", "tensorboard") and directory is None:
            raise errors.LOGGER_NEEDS_DIRECTORY(name=name)
        if name == "csv" and directory is not None:
            found.append(CSVLogger(directory / "metrics.csv"))
        if name == "tensorboard" and directory is not None:
            found.append(TensorBoardLogger(directory / "tensorboard"))
        if name == "wandb":
            found.append(WandbLogger(config, directory.name if directory is not None else "glassgrad"))
    return found


__all__ = ["CSVLogger", "TensorBoardLogger", "WandbLogger"]
