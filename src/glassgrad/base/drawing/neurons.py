"""Neurons as circles in columns, joined by their weights."""

from __future__ import annotations

from collections import Counter
from html import escape

from glassgrad.base.drawing.boxes import hint
from glassgrad.base.drawing.graph import Graph
from glassgrad.base.drawing.svg import MARGIN, wrapped

_RADIUS, _ROW, _COLUMN = 29.0, 74.0, 220.0
_LETTERED = 12
"""The largest number of weights between two layers that are drawn with their numbers."""

Places = dict[int, tuple[float, float]]


def neurons_svg(graph: Graph) -> str:
    """Draw the columns of a graph as circles."""
    tallest = max(len(column) for column in graph.columns)
    places: Places = {}
    for x, column in enumerate(graph.columns):
        for number, at in enumerate(column):
            row = number + (tallest - len(column)) / 2
            places[at] = MARGIN + _RADIUS + x * _COLUMN, MARGIN + _RADIUS + row * _ROW
    circles = [_circle(graph, at, *place) for at, place in places.items()]
    y = 2 * MARGIN + 2 * _RADIUS + (tallest - 1) * _ROW
    width = 2 * MARGIN + 2 * _RADIUS + (len(graph.columns) - 1) * _COLUMN
    notes = []
    for note in graph.notes:
        y += 15
        notes.append(f'<text class="soft" x="{MARGIN:.0f}" y="{y:.1f}">{escape(note)}</text>')
        width = max(width, 2 * MARGIN + 6.8 * len(note))
    body = "\n".join([*_weights(graph, places), *circles, *notes])
    return wrapped(body, width, y + MARGIN, f"{graph.name}: neurons")


def _weights(graph: Graph, places: Places) -> list[str]:
    """Return the lines of the weights, and their numbers on top."""
    largest = max((abs(edge.weight or 0.0) for edge in graph.edges), default=0.0) or 1.0
    column = {at: number for number, found in enumerate(graph.columns) for at in found}
    entering = Counter(column[edge.head] for edge in graph.edges)
    lines, numbers = [], []
    for edge in graph.edges:
        weight = edge.weight or 0.0
        (x, y), (to, bottom) = places[edge.tail], places[edge.head]
        x, to = x + _RADIUS, to - _RADIUS
        look = f"stroke:var(--{'forth' if weight >= 0 else 'back'});stroke-width:{0.4 + 3 * abs(weight) / largest:.2f}"
        lines.append(
            f'<path class="wire" style="{look};opacity:.75" d="M{x:.1f},{y:.1f}L{to:.1f},{bottom:.1f}">'
            f"<title>weight {weight:.4g}</title></path>"
        )
        if entering[column[edge.head]] <= _LETTERED:
            part = 0.2 + 0.2 * (edge.head % 3)  # spread, so that labels do not overlap
            place = f'x="{x + part * (to - x):.1f}" y="{y + part * (bottom - y) - 2:.1f}"'
            numbers.append(f'<text class="label" text-anchor="middle" {place}>{weight:.3g}</text>')
    return [*lines, *numbers]


def _circle(graph: Graph, at: int, x: float, y: float) -> str:
    node = graph.nodes[at]
    value = node.value.text if node.value else ""
    texts = [(node.name, "first", -8.0), (value, "", 5.0)]
    if node.gradient is not None:
        texts.append((f"∂ {node.gradient.text}", "soft", 17.0))
    lines = "".join(
        f'<text class="{kind}" style="font-size:9.5px" text-anchor="middle" y="{drop:.0f}">{escape(text)}</text>'
        for text, kind, drop in texts
    )
    title = escape("\n".join(filter(None, [hint(node), node.op and f"after {node.op}"])))
    place = f'transform="translate({x:.1f},{y:.1f})"'
    return f'<g {place}><title>{title}</title><circle r="{_RADIUS:.0f}"/>{lines}</g>'
