"""The style of all pictures: light, with a few colours that colour-blind readers can distinguish, and legible names."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from glassgrad.doctor.library import Array
from glassgrad.errors.packages import needed

Axes = Any  # matplotlib's, which is imported only to draw
Figure = Any  # likewise

INK, ACCENT, PALE, GREY, LINE = "#22577a", "#c8553d", "#b9cfdd", "#666666", "#e6e6e6"
"""Dark blue and brick differ in lightness as well as in hue; pale blue marks the past."""

LOST = "#8e3b6f"
"""Marks broken values: NaN, infinities, missing gradients."""

SHARES = "GnBu"
"""The colour map of shares, from near white to dark blue; it stays readable in grey."""


@functools.cache
def _picture_class() -> Any:
    with needed("matplotlib", "pictures", extra="pictures"):
        from matplotlib.figure import Figure

    class Picture(Figure):
        """A figure that a notebook displays without pyplot and its global list of figures."""

        def _repr_png_(self) -> bytes:
            import io

            content = io.BytesIO()
            self.savefig(content, format="png")
            return content.getvalue()

    return Picture


@contextmanager
def drawing() -> Iterator[None]:
    """Draw in matplotlib's default style, whatever style the user has set."""
    with needed("matplotlib", "pictures", extra="pictures"):
        import matplotlib as mpl

    with mpl.rc_context():
        mpl.rcdefaults()
        yield


def new_figure(width: float, height: float, **options: Any) -> Figure:
    """Return an empty figure of a size in inches."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    figure = _picture_class()(figsize=(width, height), dpi=110, **{"layout": "constrained", **options})
    FigureCanvasAgg(figure)
    return figure


def dress(axes: Axes, grid: str = "both") -> None:
    """Remove unneeded spines and put a faint grid behind the data."""
    axes.grid(visible=True, axis=grid, color=LINE, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.tick_params(colors=GREY, labelsize=8, length=0)
    for side in ("top", "right", "left", "bottom"):
        axes.spines[side].set_visible(False)


def headline(axes: Axes, text: str, note: str = "") -> None:
    """Set a title at the left and, smaller, a note at the right."""
    axes.set_title(text, loc="left", fontsize=10, color="#222222")
    if note:
        axes.set_title(note, loc="right", fontsize=8, color=GREY)


def row_height(rows: int) -> float:
    """Return the height in inches of one of `rows` rows: smaller for many rows, but never below its text's."""
    return float(np.clip(9 / max(rows, 1), 0.155, 0.34))


def steps_axis(axes: Axes, label: bool = True) -> None:
    """Format the x axis as training steps."""
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.xaxis.get_major_locator().set_params(integer=True)
    if label:
        axes.set_xlabel("step", fontsize=8, color=GREY)


def log_axis(axis: Any, ratio: float) -> None:
    """Make an axis logarithmic with plain numbers; a short range (`ratio` of its ends) gets more of them."""
    from matplotlib.ticker import LogLocator, NullFormatter

    axis._set_axes_scale("log")
    if ratio < 1e3:
        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axis.set_major_formatter("{x:g}")
    axis.set_minor_formatter(NullFormatter())


def share_bar(figure: Figure, image: Any, label: str, **options: Any) -> None:
    """Put a colour scale beside a heat map of shares; the options give its position."""
    bar = figure.colorbar(image, **options)
    bar.ax.yaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
    bar.ax.tick_params(labelsize=7, colors=GREY, length=0)
    bar.outline.set_visible(False)
    bar.set_label(label, fontsize=8, color=GREY)


def cell_edges(steps: Array) -> Array:
    """Return the edges between the columns of a heat map, halfway between neighbouring steps."""
    steps = np.asarray(steps, float)
    if len(steps) == 1:
        return np.array([steps[0] - 0.5, steps[0] + 0.5])
    middle = (steps[1:] + steps[:-1]) / 2
    return np.concatenate([[2 * steps[0] - middle[0]], middle, [2 * steps[-1] - middle[-1]]])


def beside(axes: Axes, text: str, place: Any, *, at: float = 0.01, **look: Any) -> None:
    """Write beside a row of a picture: `at` is a fraction of the width, possibly outside of the axes."""
    axes.annotate(text, (at, place), xycoords=("axes fraction", "data"), va="center", **look)
