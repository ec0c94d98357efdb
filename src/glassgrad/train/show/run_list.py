"""`glassgrad runs`: the runs below a folder, one line each."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from glassgrad import errors
from glassgrad.data.files import no_directory
from glassgrad.doctor.rules import RUN_RULES, apply
from glassgrad.doctor.rules.rule import SEVERITIES
from glassgrad.train.kept import rundir
from glassgrad.train.kept.metrics import is_number, read_metrics
from glassgrad.train.kept.sessions import read_sessions
from glassgrad.train.show.diagnosis import run_of
from glassgrad.train.show.run_data import state_of

_DEEP = 3
"""The depth to which folders are searched."""


@dataclass(frozen=True)
class Listed:
    """One run: its folder, its state and its results.

    `loss` is the last validation loss, or the last training loss if there is none, or NaN. `findings` counts the
    findings by severity; `changed` is the time of the last write to its metrics, in seconds since 1970.
    """

    path: Path
    state: str
    step: int
    steps: int | None
    loss: float
    findings: dict[str, int]
    tags: tuple[str, ...]
    changed: float

    @property
    def found(self) -> str:
        """The findings in words."""
        parts = [f"{self.findings[kind]} {kind}" for kind in SEVERITIES if self.findings.get(kind)]
        return ", ".join(parts) or "none"

    def plain(self) -> dict[str, Any]:
        """Return it as data for JSON."""
        return {
            "run": str(self.path),
            "state": self.state,
            "step": self.step,
            "steps": self.steps if isinstance(self.steps, int) else None,
            "loss": self.loss if math.isfinite(self.loss) else None,
            "findings": dict(self.findings),
            "tags": list(self.tags),
            "changed": self.changed,
        }


def list_runs(folder: str | Path, tag: str = "", sort: str = "changed") -> list[Listed]:
    """Return the runs below a folder.

    Args:
        folder: the folder to search, three levels deep.
        tag: only runs started with this tag.
        sort: "changed" (the latest first), "loss" (the smallest first), "findings" (the worst first) or "name".

    Raises:
        errors.InputError: the folder does not exist.
    """
    path = Path(folder)
    if not path.is_dir():
        raise errors.RUNS_FOLDER(path=path, reason=no_directory(path))
    found = [one for one in map(_listed, _directories(path, _DEEP)) if one is not None and (not tag or tag in one.tags)]
    keys: dict[str, Any] = {
        "changed": lambda one: -one.changed,
        "loss": lambda one: (math.isnan(one.loss), one.loss),
        "findings": lambda one: [-one.findings.get(kind, 0) for kind in SEVERITIES],
        "name": lambda one: str(one.path),
    }
    return sorted(sorted(found, key=keys["name"]), key=keys[sort])


def _directories(folder: Path, deep: int) -> Iterator[Path]:
    try:
        is_run = (folder / rundir.METRICS).is_file() or (folder / rundir.CONFIG).is_file()
        entries = sorted(folder.iterdir()) if deep and not is_run else []
        inner = [one for one in entries if one.is_dir() and not one.is_symlink() and not one.name.startswith(".")]
    except OSError:  # another user's folder
        return
    if is_run:
        yield folder
        return
    for entry in inner:
        yield from _directories(entry, deep - 1)


def _listed(path: Path) -> Listed | None:
    try:
        records, told = read_metrics(path / rundir.METRICS), read_sessions(path)
    except OSError:  # another user's file
        return None
    if not records and not told:
        return None
    train = [record for record in records if record.get("event") == "train"]
    measured = [record for record in records if record.get("event") not in ("train", "final")]
    losses = [record["loss"] for record in measured or train if is_number(record.get("loss"))]
    try:
        findings = Counter(finding.severity for finding in apply(RUN_RULES, run_of(path))) if records else {}
    except errors.InputError:
        findings = {}
    tags = told.get("tags")
    return Listed(
        path=path,
        state=state_of(path, told, records).partition(":")[0],
        step=max((record["step"] for record in records), default=0),
        steps=told.get("steps"),
        loss=float(losses[-1]) if losses else math.nan,
        findings=dict(findings),
        tags=tuple(map(str, tags)) if isinstance(tags, list) else (),
        changed=max((file.stat().st_mtime for file in path.glob(rundir.METRICS)), default=0.0),
    )
