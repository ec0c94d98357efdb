"""Show a run in a notebook: its results as a table, and its losses as a line."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from glassgrad.engine.reports import notebook
from glassgrad.train.kept.metrics import is_number, read_metrics
from glassgrad.train.show.progress import duration

_WIDTH, _HEIGHT = 360, 90
_POINTS = 180


def result_html(result: Any) -> str:
    """Show the result of `fit`."""
    rows: list[tuple[str, object]] = [("steps", f"{result.step:,}"), ("loss", _short(result.loss))]
    rows += [(f"validation {name}", _short(value)) for name, value in result.measures.items()]
    rows.append(("state", "finished" if result.finished else f"not finished: {result.ended or 'stopped'}"))
    rows.append(("time", duration(result.seconds)))
    if result.directory is not None:
        rows.append(("directory", result.directory))
    return f"<div>{notebook.table('run', rows)}{losses_svg(result.records)}</div>"


def directory_html(path: Path, metrics: Path) -> str:
    """Show the records of a run directory."""
    try:
        records = read_metrics(metrics)
    except OSError:
        records = []
    latest: dict[str, object] = {}
    for record in records:
        event = record.get("event")
        latest.update({f"{event} {key}": _short(value) for key, value in record.items() if "loss" in key})
    step = max((record["step"] for record in records), default=0)
    rows = [("directory", path), ("steps", f"{step:,}"), *latest.items()]
    return f"<div>{notebook.table('run', rows)}{losses_svg(records)}</div>"


def losses_svg(records: Iterable[Mapping[str, Any]]) -> str:
    """Return the training losses as a line, thinned if there are many; empty if there are fewer than two."""
    points = [
        (record["step"], record["loss"])
        for record in records
        if record.get("event") == "train" and is_number(record.get("loss")) and math.isfinite(record["loss"])
    ]
    if len(points) < 2:
        return ""
    steps, losses = _thinned(np.array(points, np.float64))
    low, high = float(losses.min()), float(losses.max())
    x = (steps - steps[0]) / max(steps[-1] - steps[0], 1.0) * (_WIDTH - 8) + 4
    y = (1 - (losses - low) / ((high - low) or 1.0)) * (_HEIGHT - 8) + 4
    line = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x, y, strict=True))
    said = (
        f"training loss from {_short(losses[0])} to {_short(losses[-1])}, lowest {_short(low)}, highest {_short(high)}"
    )
    return (
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}" height="{_HEIGHT}" role="img" aria-label="{said}">'
        f"<title>{said}</title>"
        f'<polyline points="{line}" fill="none" stroke="currentColor" stroke-width="1.5"/></svg>'
    )


def _thinned(points: Any) -> Sequence[Any]:
    """Return steps and losses; if there are many, only the smallest and the largest of each interval."""
    if len(points) <= _POINTS:
        return points[:, 0], points[:, 1]
    kept: list[int] = [0]
    for part in np.array_split(np.arange(len(points)), _POINTS // 2):
        kept += sorted({int(part[points[part, 1].argmin()]), int(part[points[part, 1].argmax()])})
    chosen = points[np.unique([*kept, len(points) - 1])]
    return chosen[:, 0], chosen[:, 1]


def _short(value: Any) -> str:
    return f"{value:.4g}" if is_number(value) else str(value)
