"""A monitor's record, layer by layer, for the page: quantities over the steps, and histograms."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from glassgrad.doctor.library import Array
from glassgrad.doctor.quantities import FIELDS
from glassgrad.doctor.quantities.histograms import SIGNED_BINS, signed_edges
from glassgrad.doctor.record import MonitorData
from glassgrad.report.page.packing import packed
from glassgrad.report.signed import common_edges, shared_out
from glassgrad.report.thinning import thinned

_CELLS = 24_000
"""The largest number of values of one quantity; with more layers, each has fewer columns."""
_COLUMNS = 48
"""Columns of a histogram."""
_MOST = 400
"""The largest number of layers shown; of a larger model, only every second, third ... layer is shown."""
_HISTOGRAMS = 60
"""The largest number of parameters with a histogram; beyond it, evenly chosen matrices have one."""


def layers_of(data: MonitorData) -> dict[str, Any]:
    """Return every quantity of a record that has any number, by layer and step."""
    parameters = _chosen(len(data.parameters), _MOST)
    activations = _chosen(len(data.activations), _MOST)
    quantities = []
    steps: Array = data.steps
    for name, what, kind, values in _quantities(data):
        rows = parameters if kind == "parameter" else activations
        shown = values[:, rows]
        if not shown.size or np.isnan(shown).all():
            continue
        steps, shown = thinned(data.steps, shown, _columns(len(parameters) + len(activations)))
        quantities.append({"name": name, "what": what, "of": kind, "values": packed(shown.T)})
    return {
        "steps": packed(steps, "f8"),
        "parameters": [data.parameters[at] for at in parameters],
        "sizes": [int(data.sizes[at]) for at in parameters],
        "activations": [f"{data.activations[at]} ({data.kinds[at]})" for at in activations],
        "quantities": quantities,
        "left_out": len(data.parameters) - len(parameters),
    }


def _quantities(data: MonitorData) -> Iterator[tuple[str, str, str, Array]]:
    yield "update ratio", "norm of the update over the norm of the weights", "parameter", data.update_ratio
    for entry in FIELDS:
        if entry.kind in ("parameter", "activation"):
            yield entry.name.replace("_", " "), entry.what, entry.kind, getattr(data, entry.name)


def _columns(layers: int) -> int:
    return int(np.clip(_CELLS // max(layers, 1), 40, 400))


def _chosen(count: int, most: int) -> list[int]:
    return np.unique(np.linspace(0, count - 1, min(count, most)).round().astype(int)).tolist() if count else []


def histograms_of(data: MonitorData, like: MonitorData | None = None) -> dict[str, Any] | None:
    """Return the histograms of gradients and weights over the steps, in shares of the entries; None if there are none.

    The bins of a parameter have equal widths and are the same in all steps, from `-reach` to `reach`; they are those of
    the samples `like`, if given.
    """
    rows = [at for at in range(len(data.parameters)) if data.dims[at] > 1] or list(range(len(data.parameters)))
    if len(data.parameters) <= _HISTOGRAMS:
        rows = list(range(len(data.parameters)))
    rows = [rows[at] for at in _chosen(len(rows), _HISTOGRAMS)]
    chosen = np.array(_chosen(len(data), _COLUMNS), int)
    like = data if like is None else like
    scale = np.array(_chosen(len(like), _COLUMNS), int)
    found: dict[str, Any] = {}
    for kind in ("gradient", "parameter"):
        counts, mean, std = (getattr(data, f"{kind}_{name}") for name in ("signed", "mean", "std"))
        if not counts.any():
            continue
        wide, deep = (getattr(like, f"{kind}_{name}")[scale] for name in ("mean", "std"))
        edges = [common_edges(wide[:, at], deep[:, at]) for at in rows]
        parts = [
            _shares(counts[chosen, at], mean[chosen, at], std[chosen, at], reach)
            for at, reach in zip(rows, edges, strict=True)
        ]
        shares = np.stack([np.ceil(share * 65535) for share, _ in parts])
        found[kind] = {"reach": packed([reach for _, reach in parts], "f8"), "shares": packed(shares, "u2")}
    if not found:
        return None
    steps = packed(data.steps[chosen], "f8")
    return {**found, "steps": steps, "parameters": [data.parameters[at] for at in rows], "bins": 2 * SIGNED_BINS}


def _shares(counts: Array, mean: Array, std: Array, edges: Array) -> tuple[Array, float]:
    """Return one parameter's shares, (bins, steps), and the reach of the bins."""
    shares = [shared_out(one, signed_edges(*each), edges) for one, *each in zip(counts, mean, std, strict=True)]
    return np.clip(np.stack(shares, axis=1), 0, 1), float(edges[-1])
