"""boundary.png: a classifier's output over the plane, and its training points."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from glassgrad.data.plane import PlaneData
from glassgrad.errors.packages import needed

Array = np.ndarray

_COLOURS = ("#22577a", "#d1495b")
_POINTS_A_SIDE = 240
_MARGIN = 0.12


def draw_boundary(picture: Path, probability: Callable[[Array], Array], data: PlaneData, title: str) -> None:
    """Draw to a PNG file where `probability`, the probability of class 1 at points (n, 2), exceeds one half.

    Raises `OSError`.
    """
    with needed("matplotlib", "pictures", extra="pictures"):
        import matplotlib as mpl
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.colors import LinearSegmentedColormap
        from matplotlib.figure import Figure

    points = np.concatenate([data.train_points, data.test_points]).astype(np.float64)
    low, high = points.min(axis=0), points.max(axis=0)
    room = _MARGIN * np.maximum(high - low, 1e-3)
    sides = [np.linspace(a, b, _POINTS_A_SIDE) for a, b in zip(low - room, high + room, strict=True)]
    grid = np.stack(np.meshgrid(*sides), axis=-1)
    shares = probability(grid.reshape(-1, 2)).reshape(grid.shape[:2])
    with mpl.rc_context():
        mpl.rcdefaults()  # ignore the user's style
        width, height = high - low + 2 * room
        figure = Figure(figsize=(6.5, min(max(5.4 * height / width, 2.5), 8) + 1), dpi=110, layout="constrained")
        FigureCanvasAgg(figure)
        axes = figure.add_subplot()
        colours = LinearSegmentedColormap.from_list("classes", [_COLOURS[0], "#ffffff", _COLOURS[1]])
        drawn = axes.contourf(*sides, shares, levels=np.linspace(0, 1, 21), cmap=colours, alpha=0.55)
        if shares.min() < 0.5 < shares.max():
            axes.contour(*sides, shares, levels=[0.5], colors="#222222", linewidths=1.4)
        _points(axes, data)
        figure.colorbar(drawn, ax=axes, ticks=[0, 0.5, 1], label="probability of class 1", shrink=0.8)
        axes.set_title(title, loc="left", fontsize=11)
        axes.set_aspect("equal")
        figure.legend(*axes.get_legend_handles_labels(), frameon=False, fontsize=8, ncols=4, loc="outside lower center")
        figure.savefig(picture)


def _points(axes: Any, data: PlaneData) -> None:
    parts = (
        (data.train_points, data.train_labels, "training", "o", 14),
        (data.test_points, data.test_labels, "test", "D", 20),
    )
    for points, labels, name, marker, size in parts:
        for number, colour in enumerate(_COLOURS):
            own = points[labels == number]
            axes.scatter(
                own[:, 0],
                own[:, 1],
                s=size,
                marker=marker,
                color=colour,
                linewidths=0.7,
                edgecolors="white" if name == "training" else "#222222",
                label=f"class {number}, {name}",
            )
