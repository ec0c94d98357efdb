"""Distributions of signed gradients, now or over the steps: a grid with one cell per parameter."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from glassgrad import errors
from glassgrad.doctor import library
from glassgrad.doctor.library import Array, Module
from glassgrad.doctor.quantities.histograms import SIGNED_BINS, signed, signed_edges
from glassgrad.doctor.quantities.statistics import Summary, summarise
from glassgrad.doctor.record import MonitorData
from glassgrad.report import sources, style
from glassgrad.report.style import Axes, Figure

_MOST = 72


def plot_signed(model: Module, parameters: Sequence[str] | str | None, owner: str) -> Figure:
    """Draw histograms of a model's current gradients, with mean and standard deviation in the titles."""
    held = {name: g for name, parameter in model.named_parameters() if (g := library.gradient(parameter)) is not None}
    if not held:
        raise errors.PICTURE_EMPTY(owner=owner, reason="no parameter has a gradient", next="call it after backward()")
    names = list(held)
    shown = [names[place] for place in sources.chosen(names, parameters, owner, "parameter")][:_MOST]
    return _grid(
        shown, "gradients", lambda axes, name: _histogram(axes, name, summarise(held[name]), signed(held[name]))
    )


def plot_signed_steps(data: MonitorData, parameters: Sequence[str] | str | None, owner: str) -> Figure:
    """Draw the histograms of a record over its steps, with the mean as a line, and one deviation below and above it."""
    if not data.gradient_signed.any():
        raise errors.PICTURE_EMPTY(
            owner=owner,
            reason="the record has no signed histograms",
            next="record with GradientMonitor, or preset='full'",
        )
    shown = sources.chosen(data.parameters, parameters, owner, "parameter")[:_MOST]
    places = {data.parameters[place]: place for place in shown}
    return _grid(
        list(places),
        "gradients over the steps; lines: their mean, and a standard deviation to either side",
        lambda axes, name: _steps(axes, name, data, places[name]),
    )


def _grid(names: Sequence[str], title: str, draw: Callable[[Any, str], None]) -> Figure:
    columns = min(len(names), max(2, math.ceil(math.sqrt(len(names)))))
    rows = math.ceil(len(names) / columns)
    with style.drawing():
        figure = style.new_figure(2.9 * columns + 0.4, 2.0 * rows + 0.5)
        grid = figure.subplots(rows, columns, squeeze=False)
        for axes, name in zip(grid.flat, names, strict=False):
            draw(axes, name)
            style.dress(axes)
            axes.tick_params(labelsize=6)
        for axes in grid.flat[len(names) :]:
            axes.set_visible(False)
        figure.suptitle(title, fontsize=10, x=0.02, ha="left")
    return figure


def _steps(axes: Axes, name: str, data: MonitorData, place: int) -> None:
    mean, std = data.gradient_mean[:, place], data.gradient_std[:, place]
    edges = common_edges(mean, std)
    samples = zip(data.gradient_signed[:, place], mean, std, strict=True)
    shares = np.stack([shared_out(counts, signed_edges(*each), edges) for counts, *each in samples])
    steps = style.cell_edges(data.steps)
    axes.pcolormesh(steps, edges, np.ma.masked_equal(shares.T, 0), cmap=style.SHARES, rasterized=True)
    for line, width in ((mean - std, 0.6), (mean + std, 0.6), (mean, 1.2)):
        axes.plot(data.steps, line, color=style.ACCENT, linewidth=width)
    axes.set_ylim(edges[0], edges[-1])
    axes.locator_params(axis="x", nbins=4)
    style.steps_axis(axes, label=False)
    axes.ticklabel_format(axis="y", scilimits=(-2, 3))
    axes.yaxis.get_offset_text().set(fontsize=6, color=style.GREY)
    axes.set_title(f"{name}\nlast mean {mean[-1]:.2g}, std {std[-1]:.2g}", fontsize=7, loc="left")


def common_edges(mean: Array, std: Array) -> Array:
    """Return edges that cover most samples; a step that is far larger than the others may exceed them."""
    known = np.isfinite(mean + std)
    if not known.any():
        return signed_edges(0.0, 0.0)
    reach = float(np.quantile(np.abs(mean[known]) + 3 * std[known], 0.95)) or 1e-12
    return np.linspace(-reach, reach, 2 * SIGNED_BINS + 1)


def shared_out(counts: Array, edges: Array, others: Array) -> Array:
    """Rebin counts: return the share of entries in other bins, assuming entries evenly spread within their old bin."""
    below = np.concatenate([[0.0], np.cumsum(counts)]) / max(int(counts.sum()), 1)
    return np.diff(np.interp(others, edges, below))


def _histogram(axes: Axes, name: str, found: Summary, histogram: tuple[Array, Array]) -> None:
    counts, edges = histogram
    axes.stairs(counts, edges, fill=True, color=style.PALE)
    axes.axvline(0, color=style.GREY, linewidth=0.6)
    axes.axvline(found.mean, color=style.ACCENT, linewidth=1)
    axes.locator_params(axis="x", nbins=4)
    bad = f", {found.nonfinite:,} NaN or infinite" if found.nonfinite else ""
    axes.set_title(f"{name}\nmean {found.mean:.2g}, std {found.std:.2g}{bad}", fontsize=7, loc="left")
