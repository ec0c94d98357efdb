"""The page of a step: its graph, which can be opened, played and searched, beside its program and its kernels.

`npm run build` in `web/` builds `step.js` and `step.css`; a test checks that they match their sources.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from glassgrad._version import __version__
from glassgrad.base.drawing.frame import framed_page
from glassgrad.base.drawing.graph import Graph

FOLDER = Path(__file__).parent / "step"

Tables = Sequence[tuple[str, Sequence[str], Sequence[Sequence[str]]]]


def step_page(graph: Graph, tables: Tables = (), cost: str = "") -> str:
    """Return a graph as a standalone page, with tables and a sentence below it."""
    more: dict[str, Any] = {
        "title": graph.name,
        "version": __version__,
        "made": datetime.now(UTC).isoformat(timespec="seconds"),
        "tables": [
            {"title": title, "heads": [*heads], "rows": [[*row] for row in rows]} for title, heads, rows in tables
        ],
        "cost": cost,
    }
    return framed_page(graph.name, {**page_data(graph), **more}, built("step.js"), built("step.css"))


def page_data(graph: Graph) -> dict[str, Any]:
    """Return a graph as the page expects it: `as_dict()` without empty fields, with lines and modules written once."""
    places: dict[tuple[str, str], int] = {("", ""): 0}
    paths: dict[tuple[str, ...], int] = {(): 0}
    nodes = []
    for node in graph.nodes:
        plain = _filled(node)
        for name in ("where", "source", "module"):
            plain.pop(name, None)
        plain["place"] = places.setdefault((node.where, node.source), len(places))
        plain["path"] = paths.setdefault(node.module, len(paths))
        nodes.append(plain)
    return {
        "nodes": nodes,
        "edges": [{"tail": edge.tail, "head": edge.head, **_filled(edge)} for edge in graph.edges],
        "places": [*places],
        "paths": [*paths],
        "modules": [[path, kind] for path, kind in graph.modules.items()],
        "lines": [{"text": line.text, **_filled(line)} for line in graph.lines],
        "kernels": [{"flops": 0, "bytes": 0, "ops": [], "result": "", **_filled(one)} for one in graph.kernels],
        "measured": graph.measured,
        "notes": graph.notes,
    }


def _filled(entry: Any) -> dict[str, Any]:
    """Return the non-empty fields of an entry, numbers rounded to the digits that are shown."""
    found: dict[str, Any] = {}
    for one in fields(entry):
        value = getattr(entry, one.name)
        if is_dataclass(value) and not isinstance(value, type):
            found[one.name] = _filled(value)
        elif isinstance(value, float):
            if math.isfinite(value) and (value or one.name == "number"):
                found[one.name] = float(f"{value:.5g}")
        elif value:
            found[one.name] = value
    return found


@cache
def built(name: str) -> str:
    """Return the contents of a built file of the page."""
    return (FOLDER / name).read_text(encoding="utf-8")
