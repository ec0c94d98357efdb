"""Outputs of the layers, with their dead and saturated units."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from glassgrad import errors
from glassgrad.doctor.library import Array
from glassgrad.doctor.record import MonitorData
from glassgrad.report import sources, style
from glassgrad.report.style import Axes, Figure


def plot_activations(source: Any, activations: Sequence[str] | str | None = None) -> Figure:
    """Draw mean and spread of each activation's output, and the fraction of dead or saturated units by step.

    A unit of a ReLU is dead if it is zero for the whole batch; an entry of tanh, sigmoid and similar functions is
    saturated if it is so close to a bound that hardly any gradient passes. In a healthy net the map stays light.

    Args:
        source: a `GradientMonitor` that watches activations, its data, or the path of its file.
        activations: names of modules, or patterns; by default all activation functions, or all modules if there are
            none.

    Returns:
        A matplotlib figure.

    Example:
        >>> import glassgrad as gg
        >>> model = gg.nn.Sequential(gg.nn.Linear(4, 8), gg.nn.Tanh(), gg.nn.Linear(8, 1))
        >>> monitor = gg.GradientMonitor(model, every=1)
        >>> (model(gg.randn(16, 4)) ** 2).mean().backward()
        >>> monitor.update()
        >>> figure = gg.report.plot_activations(monitor)
    """
    owner = "plot_activations"
    data = sources.data_of(source, owner)
    if not data.activations:
        raise errors.PICTURE_EMPTY(
            owner=owner,
            reason="no activations were recorded",
            next="watch the model with activations=True, and call it as a module; for a compiled step use observe()",
        )
    rows = sources.chosen(data.activations, activations, owner, "activation")
    lost = _lost(data)
    if activations is None and np.isfinite(lost).any():
        rows = [row for row in rows if np.isfinite(lost[:, row]).any()]
    with style.drawing():
        figure = style.new_figure(10, 1.7 + style.row_height(len(rows)) * len(rows))
        left, right = figure.subplots(1, 2, sharey=True, width_ratios=[1, 1.4])
        _spread(left, data, rows)
        image = _shares(right, data, rows, lost)
        if image is not None:
            shrink = min(0.95, 2.4 / figure.get_figheight())
            style.share_bar(figure, image, "", ax=right, shrink=shrink, aspect=20, pad=0.06)
    return figure


def _lost(data: MonitorData) -> Array:
    dead, saturated = data.activation_dead, data.activation_saturated
    return np.where(np.isnan(dead), saturated, np.fmax(dead, saturated))


def _spread(axes: Axes, data: MonitorData, rows: list[int]) -> None:
    places = np.arange(len(rows))
    mean, std = data.activation_mean[-1, rows], data.activation_std[-1, rows]
    axes.hlines(places, mean - std, mean + std, color=style.PALE, linewidth=4, label="mean ± standard deviation")
    axes.plot(mean, places, "o", color=style.INK, markersize=4)
    if len(data) > 1:
        first = data.activation_mean[0, rows], data.activation_std[0, rows]
        for sign in (-1, 1):
            label = f"the same in step {data.steps[0]:,}" if sign > 0 else None
            axes.plot(first[0] + sign * first[1], places, "|", color=style.ACCENT, markersize=6, label=label)
    labels = [_label(data, row) for row in rows]
    axes.set_yticks(places, labels)
    axes.set_ylim(len(rows) - 0.5, -0.5)
    for place, row in zip(places, rows, strict=True):
        bad = data.activation_nonfinite[-1, row]
        if bad > 0:
            style.beside(axes, f"{bad:,.0f} NaN or infinite", place, fontsize=7.5, color=style.LOST)
    style.dress(axes)
    style.headline(axes, f"output, step {data.steps[-1]:,}")
    below = -0.8 / max(len(rows), 9)
    axes.legend(
        frameon=False, fontsize=7, labelcolor=style.GREY, loc="upper center", bbox_to_anchor=(0.5, below), ncols=2
    )


def _label(data: MonitorData, row: int) -> str:
    name, kind = data.activations[row], data.kinds[row]
    return name if " before " in name else f"{name} {kind}"


def _shares(axes: Axes, data: MonitorData, rows: list[int], lost: Array) -> Any:
    shares = lost[:, rows]
    style.dress(axes, grid="x")
    axes.grid(visible=False)
    if not np.isfinite(shares).any():
        nothing = "no activation functions among these"
        axes.text(0.5, 0.5, nothing, ha="center", transform=axes.transAxes, color=style.GREY)
        axes.set_xticks([])
        return None
    edges = np.arange(len(rows) + 1) - 0.5
    image = axes.pcolormesh(
        style.cell_edges(data.steps),
        edges,
        np.ma.masked_invalid(shares.T),
        cmap=style.SHARES,
        vmin=0,
        vmax=1,
        rasterized=True,
    )
    for edge in edges:
        axes.axhline(edge, color="white", linewidth=0.8)
    kinds = [
        word
        for word, values in (("dead", data.activation_dead), ("saturated", data.activation_saturated))
        if np.isfinite(values[:, rows]).any()
    ]
    axes.tick_params(labelleft=False)
    style.steps_axis(axes)
    what = {"dead": "dead units", "saturated": "saturated outputs"}
    style.headline(axes, "share of " + " or ".join(what[kind] for kind in kinds))
    for place, row in enumerate(rows):
        share = lost[-1, row]
        if np.isfinite(share):
            style.beside(axes, f"{share:.0%}", place, at=1.01, fontsize=7, color=style.GREY)
    return image


__all__ = ["plot_activations"]
