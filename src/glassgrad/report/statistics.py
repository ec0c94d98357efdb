"""Mean, standard deviation and norm of gradients and weights over the steps: one line per parameter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from glassgrad import errors
from glassgrad.doctor.library import Array
from glassgrad.report import sources, style
from glassgrad.report.style import Axes, Figure

_WHAT = (("mean", "mean"), ("std", "standard deviation"), ("norm", "norm"))


def plot_statistics(source: Any, parameters: Sequence[str] | str | None = None) -> Figure:
    """Draw mean, standard deviation and norm of the gradients, and below them of the weights, over the steps.

    Args:
        source: a `GradientMonitor`, its data, or the path of its file.
        parameters: names, or patterns such as "*.weight"; by default all, or some matrices if there are more than 12.

    Returns:
        A matplotlib figure.

    Example:
        >>> import glassgrad as gg
        >>> model = gg.nn.Linear(4, 2)
        >>> monitor = gg.GradientMonitor(model)
        >>> for step in range(3):
        ...     model.zero_grad()
        ...     model(gg.randn(8, 4)).square().mean().backward()
        ...     monitor.update()
        >>> figure = gg.plot_statistics(monitor)
        >>> len(figure.axes)
        6
    """
    owner = "plot_statistics"
    data = sources.data_of(source, owner)
    if len(data) < 2:
        raise errors.PICTURE_EMPTY(
            owner=owner, reason="one sample makes no line", next="watch more steps, or use plot_gradient_flow"
        )
    rows = sources.chosen(data.parameters, parameters, owner, "parameter")
    if parameters is None:
        rows = sources.evenly(sources.matrices_of_many(data, rows, named=False), sources.FEW)
    with style.drawing():
        figure = style.new_figure(11, 5.4)
        grid = figure.subplots(2, 3, sharex=True)
        for kind, line in zip(("gradient", "parameter"), grid, strict=True):
            for (name, title), axes in zip(_WHAT, line, strict=True):
                _lines(axes, data.steps, getattr(data, f"{kind}_{name}")[:, rows], name)
                style.dress(axes)
                style.headline(axes, f"{title} of the {'gradients' if kind == 'gradient' else 'weights'}")
        for axes in grid[1]:
            style.steps_axis(axes)
        labels = [data.parameters[row] for row in rows]
        figure.legend(
            grid[0, 0].lines[: len(rows)],
            labels,
            loc="outside lower center",
            ncols=6,
            frameon=False,
            fontsize=7,
            labelcolor=style.GREY,
        )
    return figure


def _lines(axes: Axes, steps: Array, values: Array, name: str) -> None:
    import matplotlib as mpl

    colours = mpl.colormaps["viridis"](np.linspace(0, 0.9, values.shape[1]))
    for column, colour in zip(values.T, colours, strict=True):
        axes.plot(steps, column, color=colour, linewidth=1)
    known = values[np.isfinite(values) & (values > 0)]
    if name != "mean" and known.size and known.max() > 20 * known.min():
        style.log_axis(axes.yaxis, float(known.max() / known.min()))


__all__ = ["plot_statistics"]
