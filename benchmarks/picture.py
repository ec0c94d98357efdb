"""Draw the recorded step times as one picture: for each workload, the time of each peer as a multiple of ours.

A peer has one line, on which every processor has a mark of its own shape; the numbers beside it are the smallest and
the largest multiple. A library has one colour in all panels.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.results import FOLDER, RECORDED, recorded_medians, spread
from benchmarks.workloads import WORKLOADS

PICTURE = FOLDER / "results.png"
COLOURS = {"glassgrad": "#1b6ca8", "PyTorch": "#d1495b", "torch": "#d1495b", "JAX": "#3a8f5c"}
OTHER = "#6b7280"
MARKS = "osD^vP*X<>ph"  # one for each processor, in their order
COMMON = 120.0  # the end of the scale that panels share; one that needs more has its own


def colour(peer: str) -> str:
    """Return the colour of a peer's library."""
    return next((value for name, value in COLOURS.items() if peer.startswith(name)), OTHER)


def draw_panel(
    axes: Any, title: str, by_processor: Mapping[str, Mapping[str, float]], marks: Mapping[str, str]
) -> None:
    """Draw one workload, the fastest peer on top."""
    shown = {processor: _relative(medians) for processor, medians in by_processor.items()}
    ratios = {name: [one[name] for one in shown.values() if name in one] for name in _names(shown)}
    names = sorted(ratios, key=lambda name: max(ratios[name]), reverse=True)
    for place, name in enumerate(names):
        axes.plot([min(ratios[name]), max(ratios[name])], [place, place], color=colour(name), linewidth=1.5, zorder=1)
        for processor, one in shown.items():
            if name in one:
                axes.scatter(
                    one[name], place, s=22, marker=marks[processor], color=colour(name), linewidths=0, alpha=0.8
                )
        where = (max(ratios[name]), place)
        axes.annotate(
            spread(ratios[name]), where, (6, 0), textcoords="offset points", va="center", fontsize=7, color="#333333"
        )
    axes.axvline(1.0, color="#c9ced6", linewidth=0.8, zorder=0)
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(-0.6, len(names) - 0.4)
    axes.set_title(title, loc="left", fontsize=8.5)
    axes.set_xscale("log")
    most = max(map(max, ratios.values()))
    axes.set_xlim(0.8, COMMON if most < COMMON / 2 else 6 * most)
    if most < COMMON / 2:
        axes.set_xticks([1, 2, 5, 10, 20, 50, 100])
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,g}")
    axes.tick_params(labelsize=7.5)
    axes.spines[["top", "right"]].set_visible(False)


def _relative(medians: Mapping[str, float]) -> dict[str, float]:
    """Return times in multiples of our fastest mode."""
    unit = min(seconds for name, seconds in medians.items() if name.startswith("glassgrad"))
    return {name: seconds / unit for name, seconds in medians.items()}


def _names(shown: Mapping[str, Mapping[str, float]]) -> list[str]:
    return list(dict.fromkeys(name for ratios in shown.values() for name in ratios))


def draw(path: Path = PICTURE, folder: Path = RECORDED) -> Path | None:
    """Draw the records and return the path of the picture, or None without records."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt
    from matplotlib.lines import Line2D

    found = recorded_medians(folder)
    if not found:
        return None
    processors = sorted({processor for medians in found.values() for processor in medians})
    marks = {processor: MARKS[number % len(MARKS)] for number, processor in enumerate(processors)}
    heights = [1.6 + len(_names(medians)) for medians in found.values()]
    figure, panels = plt.subplots(
        len(found),
        1,
        figsize=(8, 0.21 * sum(heights) + 0.8),
        squeeze=False,
        height_ratios=heights,
        layout="constrained",
    )
    for axes, (key, medians) in zip(panels[:, 0], found.items(), strict=True):
        draw_panel(axes, WORKLOADS[key].title, medians, marks)
    panels[-1, 0].set_xlabel("time of a step, in multiples of glassgrad's quickest mode", fontsize=8)
    handles = [Line2D([], [], marker=mark, color=OTHER, linestyle="", markersize=5) for mark in marks.values()]
    figure.legend(handles, list(marks), loc="outside upper center", ncols=4, fontsize=8, frameon=False)
    figure.savefig(path, dpi=150)
    plt.close(figure)
    return path
