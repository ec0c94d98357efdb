"""The recorded step times as one picture: for each workload, bars that say how many times our time a peer takes."""

from __future__ import annotations

import json
import statistics
from pathlib import Path
from typing import Any

from benchmarks.results import FOLDER, RECORDED
from benchmarks.workloads import WORKLOADS

PICTURE = FOLDER / "results.png"
OURS = "#1b6ca8"
THEIRS = "#b9bec7"


def recorded_medians(folder: Path = RECORDED) -> dict[str, tuple[str, dict[str, float]]]:
    """For each recorded workload that we took part in, its title and the median seconds per step of each peer."""
    found = {}
    for workload in WORKLOADS.values():
        path = folder / f"{workload.key}.json"
        if path.exists():
            data = json.loads(path.read_text(encoding="utf-8"))
            medians = {name: statistics.median(rounds) for name, rounds in data["seconds_per_step"].items()}
            if any(name.startswith("glassgrad") for name in medians):
                found[workload.key] = (data["title"], medians)
    return found


def draw_panel(axes: Any, title: str, medians: dict[str, float]) -> None:
    """One workload: bars relative to our quickest mode, on a logarithmic scale when they differ tenfold."""
    unit = min(seconds for name, seconds in medians.items() if name.startswith("glassgrad"))
    ordered = sorted(medians.items(), key=lambda item: item[1], reverse=True)
    ratios = [seconds / unit for _, seconds in ordered]
    colours = [OURS if name.startswith("glassgrad") else THEIRS for name, _ in ordered]
    bars = axes.barh([name for name, _ in ordered], ratios, color=colours)
    axes.bar_label(
        bars, [f"{ratio:.2f}" if ratio < 100 else f"{ratio:,.0f}" for ratio in ratios], padding=3, fontsize=8
    )
    axes.set_title(title, loc="left", fontsize=10)
    if max(ratios) > 10 * min(ratios):
        axes.set_xscale("log")
        axes.set_xlim(min(ratios) / 2, max(ratios) * 3)
    else:
        axes.set_xlim(0, max(ratios) * 1.15)
    axes.tick_params(labelsize=8)
    axes.spines[["top", "right"]].set_visible(False)


def draw(path: Path = PICTURE, folder: Path = RECORDED) -> Path | None:
    """Draw what is recorded and return where, or None when nothing is."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    found = recorded_medians(folder)
    if not found:
        return None
    heights = [len(medians) + 1.5 for _, medians in found.values()]
    figure, panels = plt.subplots(
        len(found), 1, figsize=(8, 0.3 * sum(heights)), squeeze=False, height_ratios=heights, layout="constrained"
    )
    for axes, (title, medians) in zip(panels[:, 0], found.values(), strict=True):
        draw_panel(axes, title, medians)
    panels[-1, 0].set_xlabel("time of a step, in multiples of glassgrad's quickest mode", fontsize=8)
    figure.savefig(path, dpi=150)
    plt.close(figure)
    return path
