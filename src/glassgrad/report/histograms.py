"""Distributions of gradient magnitudes over the steps: one heat map per parameter."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from glassgrad.doctor.monitor import GradientMonitor
from glassgrad.doctor.record import MonitorData
from glassgrad.errors.packages import needed
from glassgrad.report import sources, style
from glassgrad.report.signed import plot_signed, plot_signed_steps
from glassgrad.report.style import Axes, Figure

_MOST = 72


def plot_gradient_histograms(
    source: Any, parameters: Sequence[str] | str | None = None, *, signed: bool = False
) -> Figure:
    """Draw the distribution of |gradient| over the steps, a heat map for each parameter, on a log scale.

    A column is one sample: the darker a bin, the larger its share of the entries. A sinking band shows a layer with a
    vanishing gradient; a splitting band shows units that get no gradient. The share of exact zeros, which the log scale
    cannot show, is in the corner.

    Args:
        source: a `GradientMonitor`, a `Watch` of preset "full", their data, the path of a file, or a model.
        parameters: names, or patterns such as "*.weight"; by default all, or only the matrices if there are more than
            12.
        signed: draw the signed gradients instead: over the steps, mean and standard deviation as lines; for a model, or
            a monitor without samples, histograms of the current gradients.

    Returns:
        A matplotlib figure.

    Example:
        >>> import glassgrad as gg
        >>> model = gg.nn.Sequential(gg.nn.Linear(4, 8), gg.nn.Tanh(), gg.nn.Linear(8, 1))
        >>> monitor = gg.GradientMonitor(model, every=1)
        >>> (model(gg.randn(16, 4)) ** 2).mean().backward()
        >>> monitor.update()
        >>> figure = gg.report.plot_gradient_histograms(monitor)
    """
    owner = "plot_gradient_histograms"
    if signed:
        fresh = isinstance(source, GradientMonitor) and not len(source.data)
        model = source.model if fresh else source
        if hasattr(model, "named_parameters"):
            return plot_signed(model, parameters, owner)
        return plot_signed_steps(sources.data_of(source, owner), parameters, owner)
    data = sources.data_of(source, owner)
    places = sources.chosen(data.parameters, parameters, owner, "parameter")
    shown = sources.matrices_of_many(data, places, parameters is not None)
    note = "weight matrices only" if parameters is None and len(places) > sources.FEW else ""
    if len(shown) > _MOST:
        note = f"{_MOST} of {len(shown)} parameters, evenly chosen"
    shown = sources.evenly(shown, _MOST)
    with style.drawing():
        return _drawn(data, shown, note)


def _drawn(data: MonitorData, shown: list[int], note: str) -> Figure:
    with needed("matplotlib", "pictures", extra="pictures"):
        from matplotlib.colors import PowerNorm

    columns = min(len(shown), max(2, math.ceil(math.sqrt(len(shown) * 0.8))))
    rows = math.ceil(len(shown) / columns)
    small = columns > 3
    width, height = 0.7 + (10 if small else 7) + 0.9, 0.5 + (1.3 if small else 2.3) * rows + 0.45
    figure = style.new_figure(width, height, layout=None)
    norm = PowerNorm(0.6, 0, _densest(data, shown))
    # Positions in inches: automatic layout takes seconds for a large grid.
    grid = figure.subplots(
        rows,
        columns,
        sharex=True,
        sharey=True,
        squeeze=False,
        gridspec_kw={
            "left": 0.7 / width,
            "right": 1 - 0.9 / width,
            "top": 1 - 0.5 / height,
            "bottom": 0.45 / height,
            "wspace": 0.08,
            "hspace": 0.28 if small else 0.18,
        },
    )
    image = None
    for axes, place in zip(grid.flat, shown, strict=False):
        image = _map(axes, data, place, norm, small)
    _ticks(grid[0, 0], data, shown, rows * 4 if small else 8)
    for axes in grid.flat[len(shown) :]:
        axes.set_visible(False)
    for place in range(max(len(shown) - columns, 0), len(shown)):  # the lowest map of each column
        style.steps_axis(grid.flat[place])
        grid.flat[place].tick_params(labelbottom=True)
    figure.supylabel("|gradient|", fontsize=8, color=style.GREY, x=0.01)
    title = "distribution of gradients" + (f" ({note})" if note else "")
    figure.suptitle(title, fontsize=10, x=0.7 / width, ha="left", y=1 - 0.12 / height, va="top")
    beside = figure.add_axes((1 - 0.75 / width, 0.45 / height, 0.13 / width, min(2.4, height - 1.0) / height))
    style.share_bar(figure, image, "share of entries", cax=beside)
    return figure


def _ticks(axes: Axes, data: MonitorData, shown: list[int], most: int) -> None:
    """Set the common range of the maps and label powers of ten, since the axis is in logarithms."""
    low, high = np.log10(_range(data, shown))
    apart = max(1, math.ceil((high - low) / min(most, 8)))
    powers = np.arange(math.ceil(low), math.floor(high) + 1, apart)
    axes.set_ylim(low, high)
    axes.set_yticks(powers, [f"$10^{{{power}}}$" for power in powers])


def _share(data: MonitorData, place: int) -> np.ma.MaskedArray[Any, Any]:
    counts = data.gradient_counts[:, place, 1:-1].astype(float)
    return np.ma.masked_less_equal(counts / max(int(data.sizes[place]), 1), 0)


def _densest(data: MonitorData, shown: list[int]) -> float:
    """Return the share that gets the darkest colour; few bins exceed it."""
    fullest = [np.quantile(_share(data, place).filled(0).max(-1), 0.95) for place in shown]
    return max(float(max(fullest)), 0.01)


def _map(axes: Axes, data: MonitorData, place: int, norm: Any, small: bool) -> Any:
    image = axes.pcolormesh(
        style.cell_edges(data.steps),
        np.log10(data.bin_edges),
        _share(data, place).T,
        cmap=style.SHARES,
        norm=norm,
        rasterized=True,
    )
    style.dress(axes)
    axes.tick_params(labelsize=6 if small else 8)
    axes.locator_params(axis="x", nbins=2 if small else 5)
    name = _shortened(data.parameters[place], 20 if small else 40)
    axes.set_title(name, fontsize=7 if small else 9, loc="left", pad=2)
    remarks = _remarks(data, place)
    if remarks:
        size = 6 if small else 8
        paper = {"facecolor": "white", "alpha": 0.8, "linewidth": 0, "pad": 1}
        axes.text(
            0.98, 0.04, remarks, transform=axes.transAxes, ha="right", fontsize=size, color=style.LOST, bbox=paper
        )
    return image


def _remarks(data: MonitorData, place: int) -> str:
    if not data.gradient_counts[:, place].any() and np.isnan(data.gradient_zeros[:, place]).all():
        return "no gradient"
    parts = []
    zeros = np.nanmean(data.gradient_zeros[:, place])
    if zeros > 0.005:
        parts.append(f"{zeros:.0%} exactly 0")
    below = data.gradient_counts[:, place, 0].sum() / max(data.gradient_counts[:, place].sum(), 1) - zeros
    if below > 0.005:
        parts.append(f"{below:.0%} below {data.bin_edges[0]:.0e}")
    if np.nansum(data.gradient_nonfinite[:, place]) > 0:
        parts.append("NaN or infinite")
    return ", ".join(parts)


def _range(data: MonitorData, shown: list[int]) -> tuple[float, float]:
    """Return the range of the shown data without its thinnest tails, so that the bands fill the maps."""
    counts = data.gradient_counts[:, shown, 1:-1].sum((0, 1)).astype(float)
    if not counts.any():
        return 1e-6, 1.0
    share = np.cumsum(counts) / counts.sum()
    low, high = int(np.searchsorted(share, 0.01)), int(np.searchsorted(share, 1 - 1e-6))
    return float(data.bin_edges[max(low - 1, 0)]), float(data.bin_edges[min(high + 2, len(data.bin_edges) - 1)])


def _shortened(name: str, length: int) -> str:
    """Keep the end of a long name: the beginning is the same for whole blocks of layers."""
    return name if len(name) <= length else "…" + name[1 - length :]


__all__ = ["plot_gradient_histograms"]
