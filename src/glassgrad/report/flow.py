"""Gradient sizes by layer, one row each, and the total norm over the steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from glassgrad.doctor.library import Array
from glassgrad.doctor.record import MonitorData
from glassgrad.report import sources, style
from glassgrad.report.style import Axes, Figure


def plot_gradient_flow(source: Any, step: int | None = None, parameters: Sequence[str] | str | None = None) -> Figure:
    """Draw mean, standard deviation and maximum of |gradient| for each parameter, in the model's order, on a log scale.

    In a healthy net the dots are roughly aligned vertically. Dots that drift to the left by powers of ten towards the
    first layers show a vanishing gradient, to the right an exploding one. The first sample is drawn pale behind them.

    Args:
        source: a `GradientMonitor`, its data, the path of its file, or a model after `backward()`.
        step: draw the last sample up to this step; by default the last of all.
        parameters: names, or patterns such as "*.weight"; all by default.

    Returns:
        A matplotlib figure: `figure.savefig("flow.png")`.

    Example:
        >>> import glassgrad as gg
        >>> model = gg.nn.Sequential(gg.nn.Linear(4, 8), gg.nn.Tanh(), gg.nn.Linear(8, 1))
        >>> model(gg.randn(16, 4)).sum().backward()
        >>> figure = gg.plot_gradient_flow(model)
    """
    data = sources.data_of(source, "plot_gradient_flow")
    rows = sources.chosen(data.parameters, parameters, "plot_gradient_flow", "parameter")
    at = sources.at_step(data, step)
    with style.drawing():
        figure = style.new_figure(8, 1.3 + style.row_height(len(rows)) * len(rows))
        axes = figure.add_subplot()
        places = np.arange(len(rows))
        if at:
            _past(axes, places, data, rows)
        _present(axes, places, data, rows, at)
        _missing(axes, places, data, rows, at)
        axes.set_yticks(places, [data.parameters[row] for row in rows])
        axes.set_ylim(len(rows) - 0.4, -0.6)
        axes.set_xlabel("|gradient|", fontsize=8, color=style.GREY)
        style.dress(axes)
        text = f"gradient flow, step {data.steps[at]:,}" if len(data) > 1 else "gradient flow"
        style.headline(axes, text, "first layers on top" if len(rows) > 1 else "")
        figure.legend(loc="outside lower center", ncols=4, frameon=False, fontsize=8, labelcolor=style.GREY)
    return figure


def visualize_gradient_flow(
    source: Any, step: int | None = None, parameters: Sequence[str] | str | None = None
) -> Figure:
    """Alias of `plot_gradient_flow`, under a name that many scripts use.

    Example:
        >>> import glassgrad as gg
        >>> model = gg.nn.Sequential(gg.nn.Linear(4, 8), gg.nn.Tanh(), gg.nn.Linear(8, 1))
        >>> monitor = gg.GradientMonitor(model, every=1)
        >>> (model(gg.randn(16, 4)) ** 2).mean().backward()
        >>> monitor.update()
        >>> figure = gg.report.visualize_gradient_flow(monitor)
    """
    return plot_gradient_flow(source, step, parameters)


def _past(axes: Axes, places: Array, data: MonitorData, rows: list[int]) -> None:
    first = _positive(data.gradient_abs_mean[0, rows])
    axes.plot(
        first,
        places,
        "o",
        markerfacecolor="white",
        markeredgecolor=style.INK,
        markeredgewidth=0.8,
        markersize=4.5,
        zorder=2,
        label=f"mean, step {data.steps[0]:,}",
    )


def _present(axes: Axes, places: Array, data: MonitorData, rows: list[int], at: int) -> None:
    mean, std = _positive(data.gradient_abs_mean[at, rows]), _positive(data.gradient_std[at, rows])
    largest = _positive(data.gradient_abs_max[at, rows])
    axes.hlines(places, mean, largest, color=style.PALE, linewidth=3, zorder=1)
    axes.plot(largest, places, "|", color=style.INK, markersize=7, markeredgewidth=1.5, label="max", zorder=3)
    axes.plot(std, places, "d", color=style.ACCENT, markersize=3.5, label="standard deviation", zorder=3)
    axes.plot(mean, places, "o", color=style.INK, markersize=5, label="mean", zorder=4)
    known = np.concatenate([mean, std, largest, _positive(data.gradient_abs_mean[0, rows])])
    known = known[np.isfinite(known)]
    axes.set_xscale("log")
    if known.size:  # margins, and at least two powers of ten, so that small differences look small
        low, high = np.log10(known.min()), np.log10(known.max())
        extra = max(2 - (high - low), 0) / 2 + 0.15
        axes.set_xlim(10 ** (low - extra), 10 ** (high + extra))


def _missing(axes: Axes, places: Array, data: MonitorData, rows: list[int], at: int) -> None:
    """Label rows without a dot, and warn in rows whose dot omits non-finite entries."""
    for place, row in zip(places, rows, strict=True):
        bad = data.gradient_nonfinite[at, row]
        if np.isnan(bad):
            text = "no gradient"
        elif bad:
            text = f"{bad:,.0f} NaN or infinite"
        elif data.gradient_abs_max[at, row] == 0:
            text = "exactly zero"
        else:
            continue
        style.beside(axes, text, place, fontsize=7.5, color=style.LOST)


def _positive(values: Array) -> Array:
    """Replace zeros, which a log scale cannot show."""
    return np.where(values > 0, values, np.nan)


def plot_total_norm(source: Any) -> Figure:
    """Draw the total gradient norm over the steps, before clipping and, if known, after it.

    Args:
        source: a `GradientMonitor`, its data, or the path of its file.

    Returns:
        A matplotlib figure.

    Example:
        >>> import glassgrad as gg
        >>> model = gg.nn.Sequential(gg.nn.Linear(4, 8), gg.nn.Tanh(), gg.nn.Linear(8, 1))
        >>> monitor = gg.GradientMonitor(model, every=1)
        >>> (model(gg.randn(16, 4)) ** 2).mean().backward()
        >>> monitor.update()
        >>> figure = gg.report.plot_total_norm(monitor)
    """
    data = sources.data_of(source, "plot_total_norm")
    with style.drawing():
        figure = style.new_figure(8, 3.4)
        axes = figure.add_subplot()
        marker = "o" if len(data) < 60 else ""
        before, after = data.total_norm, data.total_norm_clipped
        clipped = np.isfinite(after)
        note = ""
        axes.plot(
            data.steps,
            before,
            color=style.INK,
            linewidth=1.1,
            marker=marker,
            markersize=3,
            zorder=3,
            label="before clipping" if clipped.any() else "all gradients",
        )
        if clipped.any():  # wider and below, since the two curves coincide where nothing was clipped
            axes.plot(data.steps, after, color=style.ACCENT, linewidth=3, alpha=0.55, label="after clipping")
            cut = after[clipped] < before[clipped] * (1 - 1e-6)
            note = f"clipped in {cut.mean():.0%} of the sampled steps"
        _bad_steps(axes, data)
        known = before[np.isfinite(before) & (before > 0)]
        if known.size and known.max() > 20 * known.min():
            style.log_axis(axes.yaxis, known.max() / known.min())
        else:
            axes.set_ylim(bottom=0)
        style.dress(axes)
        style.steps_axis(axes)
        style.headline(axes, "total gradient norm", note)
        axes.legend(frameon=False, fontsize=8, labelcolor=style.GREY, loc="best")
    return figure


def _bad_steps(axes: Axes, data: MonitorData) -> None:
    bad = data.steps[~np.isfinite(data.total_norm)]
    for place, step in enumerate(bad):
        label = f"NaN or infinite ({len(bad)})" if place == 0 else None
        axes.axvline(step, color=style.LOST, linewidth=1, linestyle=":", label=label)


__all__ = ["plot_gradient_flow", "plot_total_norm", "visualize_gradient_flow"]
