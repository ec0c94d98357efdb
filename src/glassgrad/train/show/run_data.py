"""Read everything that a run directory records, as data for the page."""

from __future__ import annotations

import math
import shlex
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from glassgrad.doctor import Finding, MonitorData
from glassgrad.doctor.rules import RUN_RULES, apply
from glassgrad.report.page.layers import histograms_of, layers_of
from glassgrad.report.page.packing import number, packed
from glassgrad.report.thinning import thinned
from glassgrad.train.kept import rundir
from glassgrad.train.kept.metrics import is_number, read_metrics
from glassgrad.train.kept.samples import read_samples
from glassgrad.train.kept.sessions import read_sessions
from glassgrad.train.show.diagnosis import run_of

Array = np.ndarray
Record = dict[str, Any]

POINTS = 1_500
"""The largest number of points of a curve; a longer one keeps the smallest and the largest value of each bucket."""
_PLACES = frozenset({"event", "step", "seconds"})


def run_data(directory: str | Path, after: int | None = None, watched: tuple[int, int] | None = None) -> dict[str, Any]:
    """Return the data of a run for the page. Raises `errors.InputError` if there is no run.

    With `after`, return only what changes during a run: points of the curves after that many records, and samples of
    the layers after the second step of `watched`, with histograms as wide as those up to its first step.
    """
    path = Path(directory)
    found = run_of(path)
    records = read_metrics(path / rundir.METRICS)
    told = read_sessions(path)
    new = records[after or 0 :]
    known = max((record["step"] for record in records[:after]), default=0) if after else None
    changing = {
        "records": len(records),
        "state": state_of(path, told, records),
        "step": max((record["step"] for record in records), default=0),
        "steps": told.get("steps") if isinstance(told.get("steps"), int) else None,
        "results": results_of(records),
        "findings": [finding_data(one) for one in apply(RUN_RULES, found)],
        "curves": curves_of([*new, *_norms(found.data, known)], records),
    }
    data = found.data
    if after is not None:
        return changing | _new_layers(data, watched)
    config, helps = read_config(path)
    return {
        "name": path.resolve().name,
        "path": str(path),
        "watched": data is not None,
        **changing,
        "layers": None if data is None else layers_of(data),
        "histograms": None if data is None else histograms_of(data),
        "samples": read_samples(path),
        "config": config,
        "helps": helps,
        "sessions": told.get("sessions", []),
        "command": command_of(path, config, told),
    }


def _new_layers(data: MonitorData | None, watched: tuple[int, int] | None) -> dict[str, Any]:
    """Return the samples of layers since the second step of `watched`; empty if there are none."""
    if data is None or not len(data):
        return {}
    first, last = watched or (int(data.steps[-1]), -1)
    new = data.after(last)
    like = data.before(first + 1)
    if not len(new):
        return {}
    return {"layers": layers_of(new), "histograms": histograms_of(new, like if len(like) else new)}


def state_of(path: Path, told: Mapping[str, Any], records: Iterable[Record]) -> str:
    """Return "running", "finished", "stopped", "interrupted", "failed: ..." or "ended without a word"."""
    sessions = told.get("sessions", [])
    if any(record.get("event") == "final" for record in records):
        return "finished"
    last = sessions[-1] if sessions else {}
    if "ended" in last:
        return str(last["ended"]) + (f": {last['reason']}" if "reason" in last else "")
    if rundir.is_held(path):
        return "running"
    return "ended without a word" if sessions else "unknown"


def results_of(records: list[Record]) -> dict[str, Any]:
    """Return the results of a run: the latest number of each kind, and the duration."""
    found: dict[str, Any] = {}
    for record in records:
        event = str(record.get("event"))
        for key, value in record.items():
            if key in _PLACES or key == "rate" or key.endswith("_seconds") or not is_number(value):
                continue
            found[key.replace("_", " ") if event == "final" else f"{event} {key}".replace("_", " ")] = number(value)
        if is_number(record.get("seconds")):
            found["seconds"] = number(record["seconds"])
    return found


def finding_data(finding: Finding) -> dict[str, Any]:
    """Return a finding as plain data."""
    return {
        "rule": finding.rule,
        "severity": finding.severity,
        "what": finding.what,
        "advice": finding.advice,
        "where": finding.where,
        "value": number(finding.value),
        "threshold": number(finding.threshold),
        "source": finding.source,
        "evidence": [[int(step), number(value)] for step, value in finding.evidence],
        "remedy": finding.remedy,
    }


# --- curves -----------------------------------------------------------------------------------------------


def curves_of(records: list[Record], whole: list[Record]) -> list[dict[str, Any]]:
    """Return every number that was logged more than once as a curve over steps and seconds of training."""
    clock = _clock(whole)
    series: dict[tuple[str, str], list[tuple[int, float]]] = {}
    for record in [*records, *_throughput(records, whole)]:
        event = str(record.get("event"))
        if event == "final":
            continue
        for key, value in record.items():
            if key not in _PLACES and (value is None or is_number(value)):
                point = record["step"], math.nan if value is None else float(value)
                series.setdefault((event, key), []).append(point)
    return [_curve(event, name, points, clock) for (event, name), points in series.items()]


def _curve(event: str, name: str, points: list[tuple[int, float]], clock: tuple[Array, Array]) -> dict[str, Any]:
    found = np.array(sorted(points, key=lambda point: point[0]), np.float64).reshape(-1, 2)
    steps, values = thinned(found[:, 0], found[:, 1], POINTS)
    seconds = np.interp(steps, *clock) if len(clock[0]) else np.full(len(steps), math.nan)
    return {
        "event": event,
        "name": name,
        "steps": packed(steps, "f8"),
        "seconds": packed(seconds),
        "values": packed(values),
        "points": len(found),
    }


def _clock(records: list[Record]) -> tuple[Array, Array]:
    """Return steps and the seconds of training at which they were reached."""
    found = {record["step"]: float(record["seconds"]) for record in records if is_number(record.get("seconds"))}
    steps = np.array(sorted({0: 0.0, **found}), np.float64) if found else np.zeros(0)
    return steps, np.array([found.get(int(step), 0.0) for step in steps])


def _throughput(records: list[Record], whole: list[Record]) -> list[Record]:
    """Return steps per second between the training records; the log does not contain them."""
    steps, seconds = _clock([record for record in whole if record.get("event") == "train"])
    wanted = {record["step"] for record in records if record.get("event") == "train"}
    made = np.diff(steps)
    passed = np.diff(seconds)
    return [
        {"event": "train", "step": int(step), "steps_per_second": float(count / time)}
        for step, count, time in zip(steps[1:], made, passed, strict=True)
        if time > 0 and int(step) in wanted
    ]


def _norms(data: MonitorData | None, after: int | None) -> list[Record]:
    """Return the total gradient norm that the monitor recorded, as records."""
    if data is None:
        return []
    return [
        {"event": event, "step": int(step), "gradient norm": float(value)}
        for event, values in (("before clipping", data.total_norm), ("after clipping", data.total_norm_clipped))
        for step, value in zip(data.steps, values, strict=True)
        if not math.isnan(value) and (after is None or step > after)
    ]


# --- its origin -------------------------------------------------------------------------------------------


def read_config(path: Path) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the configuration of a run, and the meaning of each key, from the comment above it."""
    try:
        text = (path / rundir.CONFIG).read_text(encoding="utf-8")
        values = tomllib.loads(text)
    except (OSError, ValueError):
        return {}, {}
    helps: dict[str, str] = {}
    comment: list[str] = []
    for line in text.splitlines():
        if line.startswith("#"):
            comment.append(line.lstrip("# "))
            continue
        key, equals, _ = line.partition("=")
        if equals and comment:
            helps[key.strip()] = " ".join(comment)
        comment = []
    return {
        key: value if isinstance(value, str | bool | int) else _shown(value) for key, value in values.items()
    }, helps


def _shown(value: Any) -> Any:
    return number(value) if isinstance(value, float) else str(value)


def command_of(path: Path, config: Mapping[str, Any], told: Mapping[str, Any]) -> str:
    """Return the command that repeats the run; empty if a script started it."""
    sessions = told.get("sessions") or [{}]
    words = sessions[0].get("command") or []
    task = config.get("task")
    if isinstance(task, str) and task != "trainer" and (not words or words[:2] == ["glassgrad", "train"]):
        watched = ["--monitor"] if any(word in ("--monitor", "--doctor") for word in words) else []
        return shlex.join(["glassgrad", "train", task, "--config", str(path / rundir.CONFIG), *watched])
    return shlex.join(map(str, words))
