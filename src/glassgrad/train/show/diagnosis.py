"""The doctor's findings about a run directory, from its losses and the record of `--doctor` or `--monitor`."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from glassgrad import errors
from glassgrad.data.files import no_directory
from glassgrad.doctor import MonitorData, Run
from glassgrad.doctor.reports.wording import lines
from glassgrad.doctor.rules import RUN_RULES, apply
from glassgrad.doctor.run import Setup
from glassgrad.train.kept.metrics import is_number, read_metrics
from glassgrad.train.kept.rundir import CONFIG, METRICS
from glassgrad.train.show.monitoring import RECORD

Array = np.ndarray

# Events of metrics.jsonl other than validations.
_OTHERS = frozenset({"train", "final"})


def run_of(directory: str | Path) -> Run:
    """Return the run recorded in a directory. Raises `errors.InputError` if there is none."""
    path = Path(directory)
    if not path.is_dir():
        also = "; a script to watch has a name that ends in .py" if path.is_file() else ""
        raise errors.RUN_MISSING(path=path, reason=no_directory(path) + also)
    try:
        records = read_metrics(path / METRICS)
    except OSError as error:
        raise errors.RUN_MISSING(path=path, reason=f"cannot read {METRICS}: {error.strerror or error}") from None
    data = MonitorData.load(path / RECORD) if (path / RECORD).is_file() else None
    if not records and data is None:
        raise errors.RUN_MISSING(path=path, reason=f"the directory has no records in {METRICS}, and no {RECORD}")
    train = [record for record in records if record.get("event") == "train"]
    held_out = [record for record in records if record.get("event") not in _OTHERS]
    losses = _points(train)
    if not len(losses) and data is not None:
        losses = np.stack([data.steps.astype(np.float64), data.loss], axis=1)
    return Run(
        model=str(_config(path).get("model", "")),
        data=data if data is not None and len(data) else None,
        losses=losses,
        held_out=_points(held_out),
        setup=Setup(optimizers=_optimizers(path, train)),
    )


def diagnosis(directory: str | Path) -> Iterator[str]:
    """Yield the lines of the report about a run directory."""
    run = run_of(directory)
    steps = int(run.losses[-1, 0]) if len(run.losses) else 0
    yield from lines(apply(RUN_RULES, run), steps, 0 if run.data is None else len(run.data))
    if run.data is None:
        yield "             only the losses are known: train with --doctor to examine gradients"


def _points(records: list[dict[str, Any]]) -> Array:
    found = [
        (record["step"], math.nan if record["loss"] is None else record["loss"])
        for record in records
        if "loss" in record and (record["loss"] is None or is_number(record["loss"]))
    ]
    return np.array(found, np.float64).reshape(-1, 2)


def _config(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads((path / CONFIG).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}


def _optimizers(path: Path, train: list[dict[str, Any]]) -> tuple[tuple[str, dict[str, Any]], ...]:
    kind = _config(path).get("optimizer")
    rate = next((record["rate"] for record in train if is_number(record.get("rate"))), None)
    if not isinstance(kind, str) or rate is None:
        return ()
    names = {"sgd": "SGD", "adam": "Adam", "adamw": "AdamW", "rmsprop": "RMSprop"}
    return ((names.get(kind.lower(), kind), {"lr": float(rate)}),)
