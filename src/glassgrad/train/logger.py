"""`Logger`: print the numbers of your own training loop, and write them to files that the other tools read."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import Any

from glassgrad import errors
from glassgrad.base import provenance
from glassgrad.train.kept import loggers
from glassgrad.train.kept.metrics import MetricsLog, read_metrics
from glassgrad.train.kept.rundir import METRICS


class Logger(AbstractContextManager["Logger"]):
    """Prints and stores the measurements of your own training loop.

    `glassgrad report`, `glassgrad runs`, `glassgrad doctor` and `glassgrad live` accept the directory as a run, while
    the loop runs and afterwards.

    Args:
        run_dir: the directory for the files. It is created if missing; records are appended to existing ones. None for
            no files.
        log_to: targets, separated by commas: console, jsonl, csv, tensorboard (with tensorboardX), wandb.
        print_every: print every n-th record of an event; all are stored.

    Raises:
        InputError: a name in `log_to` is unknown, its package is not installed, or it needs `run_dir`.
        ArgumentError: `print_every` is not positive.

    Example:
        >>> import tempfile
        >>> import glassgrad as gg
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     with gg.train.Logger(folder, log_to="console, jsonl, csv") as logger:
        ...         for step in range(1, 4):
        ...             logger.log({"loss": gg.tensor(1.0) / step}, step)
        ...         logger.log({"loss": 0.5, "accuracy": 0.75}, event="validation")
        ...     gg.train.read_metrics(Path(folder) / "metrics.jsonl")[-1]
        step 1  loss 1
        step 2  loss 0.5
        step 3  loss 0.3333
        validation  step 3  loss 0.5  accuracy 0.75
        {'event': 'validation', 'step': 3, 'loss': 0.5, 'accuracy': 0.75}
    """

    def __init__(self, run_dir: str | Path | None = None, log_to: str = "console, jsonl", print_every: int = 1) -> None:
        if print_every < 1:
            raise _refused("print_every", print_every, "at least 1")
        names = loggers.wanted(log_to, ("console", *loggers.KNOWN))
        directory = None if run_dir is None else Path(run_dir)
        self._console = "console" in names
        self._every = print_every
        self._printed: dict[str, int] = {}
        if directory is not None:
            directory.mkdir(parents=True, exist_ok=True)
        self._logs: list[Any] = loggers.make(names, directory, {})
        if "jsonl" in names and directory is not None:
            self._logs.insert(0, MetricsLog(directory / METRICS))
        before = read_metrics(directory / METRICS) if directory is not None else []
        self.step = max((record["step"] for record in before), default=0)

    def log(self, values: Mapping[str, Any], step: int | None = None, event: str = "train") -> None:
        """Log the numbers of a step.

        Args:
            values: numbers by their names: Python's, NumPy's, or tensors with one element (also PyTorch's).
            step: their step; by default the next one for "train", the last record's for other events.
            event: what was measured: "train", "validation", "final", or any other name.

        Raises:
            ArgumentError: a value is not a single number.
            OSError: the disk is full. Earlier records stay readable.
        """
        numbers = {name: _number(name, value) for name, value in values.items()}
        if step is None:
            step = self.step + (event == "train")
        self.step = int(step)
        # JSON has no NaN; null represents it, and `glassgrad doctor` finds its first step.
        kept = {name: value if math.isfinite(value) else None for name, value in numbers.items()}
        for log in self._logs:
            log.write(event=event, step=self.step, **kept)
        self._print(event, numbers)

    def _print(self, event: str, numbers: Mapping[str, float]) -> None:
        count = self._printed[event] = self._printed.get(event, 0) + 1
        if not self._console or (count - 1) % self._every:
            return
        parts = [f"step {self.step:,}", *(f"{name} {value:.4g}" for name, value in numbers.items())]
        print("  ".join(parts if event == "train" else [event, *parts]), flush=True)  # noqa: T201 - what it is for

    def write(self, **record: Any) -> None:
        """Write a record, like the loggers of a `Trainer`: "event", "step" and numbers."""
        place = {key: record.pop(key) for key in ("event", "step") if key in record}
        self.log(record, **place)

    def sync(self) -> None:
        """Flush all records to the disk."""
        for log in self._logs:
            log.sync()

    def close(self) -> None:
        """Close all files."""
        for log in self._logs:
            log.close()
        self._logs = []

    def __exit__(self, *raised: object) -> None:
        self.close()


def _number(name: str, value: Any) -> float:
    if not isinstance(value, str | bytes):
        with suppress(TypeError, ValueError, RuntimeError):
            return float(value.detach() if hasattr(value, "detach") else value)
    shape = f" of shape {tuple(value.shape)}" if hasattr(value, "shape") else ""
    raise _refused(name, f"{type(value).__name__}{shape}", "a single number")


def _refused(name: str, given: object, expected: str) -> Exception:
    depth = 1  # this file counts as the user's code, like the rest of `train`
    while sys._getframe(depth).f_code.co_filename == __file__:
        depth += 1
    return errors.BAD_OPTION(owner="Logger", name=name, given=given, expected=expected, where=provenance.here(depth))


__all__ = ["Logger"]
