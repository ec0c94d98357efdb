"""Figures of a run for papers: the curves, maps and histograms of its page, drawn by Matplotlib, one function each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from glassgrad import errors
from glassgrad.doctor import MonitorData, Run
from glassgrad.report import sources, style
from glassgrad.report.histograms import plot_gradient_histograms
from glassgrad.report.statistics import plot_statistics
from glassgrad.train.show.diagnosis import run_of

_ROUGH = 100  # records of the loss above which it is smoothed
FORMATS = ("png", "svg", "pdf")


def write_figures(run: str | Path, folder: str | Path, format: str = "png") -> list[Path]:
    """Draw the figures of a run directory into a folder: its losses and, if it was watched, its layers.

    The figures of the layers are a map of gradient norms over layers and steps, update ratios, norms of gradients and
    weights, and signed histograms of the gradients.

    Args:
        run: a run directory.
        folder: the folder for the figures; created if missing.
        format: "png", "svg" or "pdf".

    Returns:
        The paths of the figures.

    Raises:
        errors.InputError: a directory without a run, a folder that cannot be written to.
        errors.ArgumentError: another format.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp())
        >>> _ = path.joinpath("metrics.jsonl").write_text('{"event": "train", "step": 1, "loss": 2.5}')
        >>> [figure.name for figure in write_figures(path, path / "figures", format="svg")]
        ['loss.svg']
    """
    if format not in FORMATS:
        raise errors.FIGURE_FORMAT(given=format, known=", ".join(FORMATS))
    target = Path(folder)
    written = []
    try:
        for name, draw in _figures(run_of(run)):
            target.mkdir(parents=True, exist_ok=True)
            path = target / f"{name}.{format}"
            draw().savefig(path, dpi=200)
            written.append(path)
    except OSError as error:
        raise errors.FIGURE_NOT_WRITTEN(path=target, reason=error.strerror or error) from None
    return written


def _figures(run: Run) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Yield the figures for which a run has records, each with its name."""
    if len(run.losses):
        yield "loss", lambda: plot_losses(run)
    data = run.data
    if data is None:
        return
    yield "layers", lambda: plot_layer_map(data)
    if np.isfinite(data.update_ratio).any():
        yield "update_ratios", lambda: plot_update_ratios(data)
    if len(data) > 1:
        yield "norms", lambda: plot_statistics(data)
    if data.gradient_signed.any():
        yield "histograms", lambda: plot_gradient_histograms(data, signed=True)


def plot_losses(run: Run, smoothing: float | None = None) -> Any:
    """Draw the training losses of a run and those of its validations over the steps.

    Args:
        run: a run.
        smoothing: draw running means over this many records on top of the losses; 0 for none. By default a fiftieth of
            all records, for runs of more than 100.
    """
    losses = run.losses
    window = smoothing if smoothing is not None else len(losses) / 50 if len(losses) > _ROUGH else 0.0
    with style.drawing():
        figure = style.new_figure(6, 3.6)
        axes = figure.add_subplot()
        if window > 1:
            axes.plot(*losses.T, color=style.INK, linewidth=0.6, alpha=0.3)
            axes.plot(
                losses[:, 0], smoothed(losses[:, 1], window), color=style.INK, linewidth=1.4, label="training, smoothed"
            )
        else:
            axes.plot(*losses.T, color=style.INK, linewidth=1.2, label="training")
        if len(run.held_out):
            axes.plot(*run.held_out.T, color=style.ACCENT, linewidth=1.2, marker="o", markersize=3, label="held out")
        if len(run.held_out) or window > 1:
            axes.legend(frameon=False, fontsize=8)
        style.dress(axes)
        style.headline(axes, "loss")
        style.steps_axis(axes)
    return figure


def smoothed(values: np.ndarray, window: float) -> np.ndarray:
    """Return exponential means over about `window` values; non-finite values are skipped.

    The first means use the values so far, so the curve does not start at zero.

    Example:
        >>> smoothed(np.array([1.0, 3.0]), 2.0)
        array([1.        , 2.33333333])
    """
    found = np.full(len(values), np.nan)
    total = weight = 0.0
    keep = 1 - 1 / window
    for at, value in enumerate(values):
        if np.isfinite(value):
            total, weight = keep * total + value, keep * weight + 1
        if weight:
            found[at] = total / weight
    return found


def plot_layer_map(data: MonitorData, quantity: str = "gradient_norm") -> Any:
    """Draw a quantity of every parameter over the steps as a logarithmic map; empty cells are unknown or 0."""
    from matplotlib.colors import LogNorm

    values = np.asarray(getattr(data, quantity), np.float64).T
    known = np.where(np.isfinite(values) & (values > 0), values, np.nan)
    rows = len(data.parameters)
    with style.drawing():
        figure = style.new_figure(7, 1 + rows * style.row_height(rows))
        axes = figure.add_subplot()
        low, high = (np.nanmin(known), np.nanmax(known)) if np.isfinite(known).any() else (0.1, 1.0)
        norm = LogNorm(low, high if high > low else 10 * low)
        image = axes.pcolormesh(style.cell_edges(data.steps), np.arange(rows + 1), known, cmap="viridis", norm=norm)
        axes.set_yticks(np.arange(rows) + 0.5, data.parameters)
        axes.invert_yaxis()
        style.dress(axes)
        axes.grid(visible=False)
        style.headline(axes, quantity.replace("_", " "))
        style.steps_axis(axes)
        figure.colorbar(image).outline.set_visible(False)
    return figure


def plot_update_ratios(data: MonitorData) -> Any:
    """Draw the size of each step relative to the norm of the matrices; healthy training is around a thousandth."""
    places = sources.evenly(sources.matrices_of_many(data, list(range(len(data.parameters))), named=False), sources.FEW)
    with style.drawing():
        import matplotlib as mpl

        figure = style.new_figure(7, 3.8)
        axes = figure.add_subplot()
        colours = mpl.colormaps["viridis"](np.linspace(0, 0.9, len(places)))
        for place, colour in zip(places, colours, strict=True):
            axes.plot(data.steps, data.update_ratio[:, place], color=colour, linewidth=1, label=data.parameters[place])
        axes.axhline(1e-3, color=style.GREY, linewidth=0.8, linestyle=":")
        axes.set_yscale("log")
        style.dress(axes)
        axes.tick_params(which="minor", length=0)
        style.headline(axes, "update ratio", "norm of the update over the norm of the weights")
        style.steps_axis(axes)
        figure.legend(loc="outside lower center", ncols=4, frameon=False, fontsize=7, labelcolor=style.GREY)
    return figure


__all__ = ["write_figures"]
