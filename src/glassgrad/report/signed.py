"""How the entries of gradients are spread around zero at this moment: a grid of histograms, one a parameter."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from glassgrad import errors
from glassgrad.doctor import library, summarise
from glassgrad.doctor.quantities.histograms import signed
from glassgrad.report import sources, style

Array = Any

_MOST = 72


def plot_signed(model: Any, parameters: Sequence[str] | str | None, owner: str) -> Any:
    """Draw the histograms of a model's gradients as they are now, with mean and standard deviation in the title."""
    held = {name: g for name, parameter in model.named_parameters() if (g := library.gradient(parameter)) is not None}
    if not held:
        raise errors.PICTURE_EMPTY(owner=owner, reason="no parameter has a gradient", next="call it after backward()")
    names = list(held)
    shown = [names[place] for place in sources.chosen(names, parameters, owner, "parameter")][:_MOST]
    columns = min(len(shown), max(2, math.ceil(math.sqrt(len(shown)))))
    rows = math.ceil(len(shown) / columns)
    with style.drawing():
        figure = style.new_figure(2.9 * columns + 0.4, 2.0 * rows + 0.5)
        grid = figure.subplots(rows, columns, squeeze=False)
        for axes, name in zip(grid.flat, shown, strict=False):
            _histogram(axes, name, held[name])
        for axes in grid.flat[len(shown) :]:
            axes.set_visible(False)
        figure.suptitle("gradients", fontsize=10, x=0.02, ha="left")
    return figure


def _histogram(axes: Any, name: str, g: Array) -> None:
    found = summarise(g)
    counts, edges = signed(g)
    axes.stairs(counts, edges, fill=True, color=style.PALE)
    axes.axvline(0, color=style.GREY, linewidth=0.6)
    axes.axvline(found.mean, color=style.ACCENT, linewidth=1)
    style.dress(axes)
    axes.tick_params(labelsize=6)
    axes.locator_params(axis="x", nbins=4)
    bad = f", {found.nonfinite:,} NaN or infinite" if found.nonfinite else ""
    axes.set_title(f"{name}\nmean {found.mean:.2g}, std {found.std:.2g}{bad}", fontsize=7, loc="left")
