"""The recorded step times as one picture: for each workload, bars that say how many times our time a peer takes.

A workload that was measured on several processors has a bar for each, the first one the darkest.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.results import FOLDER, RECORDED, recorded_medians
from benchmarks.workloads import WORKLOADS

PICTURE = FOLDER / "results.png"
OURS = "#1b6ca8"
THEIRS = "#b9bec7"


FADED = 0.55  # how strongly the next processor's bars are drawn


def draw_panel(axes: Any, title: str, by_processor: Mapping[str, Mapping[str, float]]) -> None:
    """One workload: bars relative to our quickest mode, on a logarithmic scale when they differ tenfold."""
    shown = {processor: _relative(medians) for processor, medians in by_processor.items()}
    worst = {name: max(ratios.get(name, 0.0) for ratios in shown.values()) for name in _names(shown)}
    places = {name: place for place, name in enumerate(sorted(worst, key=worst.__getitem__, reverse=True))}
    height = 0.8 / len(shown)
    for number, (processor, ratios) in enumerate(shown.items()):
        strength = FADED**number
        bars = axes.barh(
            [places[name] + (len(shown) / 2 - number - 0.5) * height for name in ratios],
            list(ratios.values()),
            height,
            color=[(OURS if name.startswith("glassgrad") else THEIRS, strength) for name in ratios],
        )
        labels = [f"{ratio:.2f}" if ratio < 100 else f"{ratio:,.0f}" for ratio in ratios.values()]
        axes.bar_label(bars, [f"{label}  {processor}" for label in labels], padding=3, fontsize=6.5)
    axes.set_yticks(list(places.values()), list(places))
    axes.set_title(title, loc="left", fontsize=9)
    widest = max(worst.values())
    if widest > 10:
        axes.set_xscale("log")
        axes.set_xlim(0.5, widest * 5)
    else:
        axes.set_xlim(0, widest * 1.25)
    axes.tick_params(labelsize=8)
    axes.spines[["top", "right"]].set_visible(False)


def _relative(medians: Mapping[str, float]) -> dict[str, float]:
    """Return times in multiples of our quickest mode."""
    unit = min(seconds for name, seconds in medians.items() if name.startswith("glassgrad"))
    return {name: seconds / unit for name, seconds in medians.items()}


def _names(shown: Mapping[str, Mapping[str, float]]) -> list[str]:
    return list(dict.fromkeys(name for ratios in shown.values() for name in ratios))


def draw(path: Path = PICTURE, folder: Path = RECORDED) -> Path | None:
    """Draw what is recorded and return where, or None when nothing is."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    found = recorded_medians(folder)
    if not found:
        return None
    heights = [1.5 + len(_names(medians)) * (0.4 + 0.6 * len(medians)) for medians in found.values()]
    figure, panels = plt.subplots(
        len(found), 1, figsize=(8, 0.3 * sum(heights)), squeeze=False, height_ratios=heights, layout="constrained"
    )
    for axes, (key, medians) in zip(panels[:, 0], found.items(), strict=True):
        draw_panel(axes, WORKLOADS[key].title, medians)
    panels[-1, 0].set_xlabel("time of a step, in multiples of glassgrad's quickest mode", fontsize=8)
    figure.savefig(path, dpi=150)
    plt.close(figure)
    return path
