"""The directory of a run: its files, and the lock that lets only one process at a time train in it.

config.toml          every hyperparameter, commented; can be given to --config
metrics.jsonl        one record per line, written during the run
run.json             the length of the run, and each process that worked on it (see sessions.py)
model.safetensors    the weights, readable by PyTorch; enough to sample from
state.safetensors    everything needed to resume bit for bit
loss.png             the loss over the steps, drawn at the end
samples.json         outputs or mistakes of the trained model (see samples.py)
report.html          all results on one page, written at the end
step.html            the graph of a step, linked from report.html; made by `glassgrad report`
stop                 asks the training process to save and stop; removed afterwards
best/                weights with the best validation results, if the run keeps any
monitor.npz          statistics of the gradients, if a run is watched, and four pictures of it (see monitoring.py)
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from glassgrad import errors
from glassgrad.data.atomic import BINARY, sweep, sync_directory, temporary_of
from glassgrad.data.files import no_directory

CONFIG, METRICS, MODEL, STATE, PICTURE = (
    "config.toml",
    "metrics.jsonl",
    "model.safetensors",
    "state.safetensors",
    "loss.png",
)

BEST = "best"
REPORT = "report.html"
GRAPH = "step.html"
STOP = "stop"
"""A file of this name requests the training process to save and stop; the process then deletes the file."""

_LOCK = ".lock"
_HELD: set[int] = set()
"""Open locks. A forked process inherits them and would hold the run after the training process is gone."""


def _let_go() -> None:
    for descriptor in _HELD:
        os.close(descriptor)
    _HELD.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_let_go)


def is_held(path: Path) -> bool:
    """Return whether a process is training in the directory."""
    try:
        descriptor = os.open(path / _LOCK, os.O_RDWR | BINARY)
    except OSError:
        return False
    try:
        _take(descriptor)
        _release(descriptor)
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return False


class RunDirectory:
    """Paths of the files of a run.

    A new run is made with `create`, an existing one is opened with `RunDirectory.existing`.

    Example:
        >>> from pathlib import Path
        >>> from glassgrad.train import RunDirectory
        >>> RunDirectory(Path("runs/first")).metrics.name
        'metrics.jsonl'
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.config = path / CONFIG
        self.metrics = path / METRICS
        self.model = path / MODEL
        self.state = path / STATE
        self.picture = path / PICTURE

    def _repr_html_(self) -> str:
        from glassgrad.train.show.notebook import directory_html

        return directory_html(self.path, self.metrics)

    @classmethod
    def existing(cls, path: str | Path) -> RunDirectory:
        """Open a run to continue it. Raises `errors.InputError` if there is none."""
        run = cls(Path(path))
        if not run.path.is_dir():
            raise errors.RUN_MISSING(path=path, reason=no_directory(run.path))
        for file in (run.config, run.state):
            if not file.is_file():
                raise errors.RUN_MISSING(path=path, reason=f"the directory has no {file.name}")
        return run

    @contextlib.contextmanager
    def lock(self) -> Iterator[None]:
        """Lock the run for this process; the system releases the lock however the process ends."""
        try:
            descriptor = os.open(self.path / _LOCK, os.O_RDWR | os.O_CREAT | BINARY, 0o666)
        except OSError as error:
            raise errors.RUN_NOT_SAVED(path=self.path, reason=error.strerror, kept="") from None
        try:
            if not _taken(descriptor):
                raise errors.RUN_LOCKED(path=self.path)
            _HELD.add(descriptor)
            for folder in (self.path, self.path / BEST):
                sweep(folder, alone=True)
            yield
        finally:
            _HELD.discard(descriptor)
            with contextlib.suppress(OSError):  # closing releases it anyway
                _release(descriptor)  # also for a process that was just forked
            os.close(descriptor)


def _taken(descriptor: int) -> bool:
    """Lock a file and return whether this succeeded; retry, since `is_held` in another process may hold it briefly."""
    for wait in (0.02, 0.1, None):
        try:
            _take(descriptor)
        except OSError:
            if wait is not None:
                time.sleep(wait)
        else:
            return True
    return False


def _take(descriptor: int) -> None:
    """Lock a file without waiting, or raise `OSError`; the system releases it when the process ends."""
    if sys.platform == "win32":
        import msvcrt

        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
    else:
        import fcntl

        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _release(descriptor: int) -> None:
    if sys.platform == "win32":
        import msvcrt

        msvcrt.locking(descriptor, msvcrt.LK_UNLCK, 1)
    else:
        import fcntl

        fcntl.flock(descriptor, fcntl.LOCK_UN)


def check_free(path: Path) -> None:
    """Raise `errors.InputError` if a new run cannot be made at `path`, before any work is done."""
    if not path.exists():
        return
    if (path / CONFIG).exists() or (path / STATE).exists():
        raise errors.RUN_EXISTS(path=path)
    if not path.is_dir() or any(path.iterdir()):
        raise errors.RUN_NOT_EMPTY(path=path)


def create(path: Path | None, task: str, fill: Callable[[RunDirectory], None]) -> RunDirectory:
    """Make a run directory with the files that `fill` writes, atomically: it appears complete or not at all.

    Without a path, take the next free `runs/TASK-NNN`. Raises `errors.InputError` if it cannot be made.
    """
    parent = path.parent if path else Path("runs")
    made = _make_parents(parent)
    name = path.name if path else task
    temporary = temporary_of(parent / name)
    try:
        sweep(parent, name)
        temporary.mkdir()
        fill(RunDirectory(temporary))
        final = _move(temporary, path) if path else _move_to_next(temporary, parent, task)
    except BaseException as error:  # even Ctrl-C leaves no incomplete folder
        shutil.rmtree(temporary, ignore_errors=True)
        _remove_empty(made)
        if isinstance(error, OSError):
            raise errors.RUN_NOT_WRITABLE(path=path or parent, reason=error.strerror or error) from None
        raise
    sync_directory(parent)
    return RunDirectory(final)


def _make_parents(parent: Path) -> list[Path]:
    """Make the directories above a run and return those that were missing, innermost first."""
    missing: list[Path] = []
    try:
        for folder in (parent, *parent.parents):
            if folder.exists():
                break
            missing.append(folder)
        parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        _remove_empty(missing)
        raise errors.RUN_NOT_WRITABLE(path=parent, reason=error.strerror) from None
    return missing


def _remove_empty(folders: list[Path]) -> None:
    for folder in folders:
        with contextlib.suppress(OSError):  # another process has written a file there
            folder.rmdir()


def _move(temporary: Path, path: Path) -> Path:
    check_free(path)
    if path.exists():
        path.rmdir()  # it is empty; some systems cannot rename over an empty directory
    return temporary.rename(path)


def _move_to_next(temporary: Path, parent: Path, task: str) -> Path:
    number = 1 + max((_number(entry.name, task) for entry in parent.iterdir()), default=0)
    while True:
        path = parent / f"{task}-{number:03d}"
        # Another process may have taken the number in the meantime; renaming onto its non-empty directory fails.
        try:
            if not path.exists():
                return temporary.rename(path)
        except OSError:
            if not path.exists():
                raise
        number += 1


def _number(name: str, task: str) -> int:
    prefix, _, number = name.rpartition("-")
    return int(number) if prefix == task and number.isascii() and number.isdigit() else 0


__all__ = ["RunDirectory"]
