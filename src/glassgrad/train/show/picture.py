"""loss.png: the loss of a run over its steps, drawn from metrics.jsonl."""

from __future__ import annotations

import itertools
import math
from pathlib import Path
from typing import Any

import numpy as np

from glassgrad.errors.packages import needed
from glassgrad.train.kept.metrics import read_metrics

_INK, _PALE, _ACCENT = "#22577a", "#b9cfdd", "#d1495b"


_MOST_DROPS = 5
"""The largest number of changes of the learning rate that are marked; more changes are a schedule."""


def draw_loss(
    metrics: Path, picture: Path, title: str, held_out: str = "validation", axis: str = "cross entropy, nats"
) -> None:
    """Draw the recorded losses to a PNG file. Raises `OSError`."""
    with needed("matplotlib", "pictures", extra="pictures"):
        import matplotlib as mpl
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure

    records = read_metrics(metrics)
    with mpl.rc_context():
        mpl.rcdefaults()  # ignore the user's style
        figure = Figure(figsize=(8, 4.5), dpi=150, layout="constrained")
        FigureCanvasAgg(figure)
        axes = figure.add_subplot()
        _curves(axes, records, held_out)
        _dress(axes, title, axis)
        figure.savefig(picture)


def _curves(axes: Any, records: list[dict[str, Any]], held_out: str) -> None:
    train = [record for record in records if record["event"] == "train"]
    steps = np.array([record["step"] for record in train])
    losses = np.array([record["loss"] for record in train])
    smooth = _smooth(losses)
    axes.plot(steps, losses, color=_PALE, linewidth=0.8, label="training, mean of each window")
    axes.plot(steps, smooth, color=_INK, linewidth=1.8, label="training, smoothed")
    validation = [record for record in records if record["event"] == held_out]
    axes.plot(
        [record["step"] for record in validation],
        [record["loss"] for record in validation],
        color=_ACCENT,
        marker="o",
        markersize=4,
        linewidth=1.2,
        label=held_out,
    )
    _drops(axes, train)
    _limits(axes, smooth, validation)
    for record in records:
        if record["event"] == "final":
            text = f"final: training {record['train_loss']:.4f}, {held_out} {record[f'{held_out}_loss']:.4f}"
            axes.set_title(text, loc="right", fontsize=9, color="#666666")


def _drops(axes: Any, train: list[dict[str, Any]]) -> None:
    drops = [
        (before["step"], after["rate"])
        for before, after in itertools.pairwise(train)
        if before["rate"] != after["rate"]
    ]
    for step, rate in drops if len(drops) <= _MOST_DROPS else ():
        axes.axvline(step, color="#999999", linewidth=0.8, linestyle=":")
        axes.annotate(
            f" rate {rate:g}", (step, 0.97), xycoords=("data", "axes fraction"), color="#666666", fontsize=8, va="top"
        )


def _smooth(losses: np.ndarray) -> np.ndarray:
    """A centred moving mean over a fiftieth of the run, over fewer points at the ends."""
    reach = max(len(losses) // 100, 1)
    sums = np.concatenate([[0.0], np.cumsum(losses)])
    places = np.arange(len(losses))
    low, high = np.maximum(places - reach, 0), np.minimum(places + reach + 1, len(losses))
    return np.asarray((sums[high] - sums[low]) / (high - low))


def _limits(axes: Any, smooth: np.ndarray, validation: list[dict[str, Any]]) -> None:
    """Choose limits that crop the steep fall of the first steps, which would flatten the rest."""
    shown = [*smooth[len(smooth) // 50 :], *(record["loss"] for record in validation)]
    if not shown:
        return
    low, high = min(shown), max(shown)
    room = max((high - low) * 0.15, 0.02)
    if math.isfinite(low) and math.isfinite(high):
        axes.set_ylim(low - room, high + room)


def _dress(axes: Any, title: str, axis: str) -> None:
    axes.set_title(title, loc="left", fontsize=11)
    axes.set_xlabel("step")
    axes.set_ylabel(axis)
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.grid(color="#e6e6e6", linewidth=0.6)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    axes.legend(frameon=False, fontsize=9, loc="upper right")
    axes.margins(x=0.02)
