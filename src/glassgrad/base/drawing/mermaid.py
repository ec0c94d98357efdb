"""A graph in Mermaid's language, which many sites render in Markdown."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from glassgrad.base.drawing.boxes import box_of
from glassgrad.base.drawing.graph import Graph
from glassgrad.base.drawing.scene import told
from glassgrad.base.drawing.svg import LIGHT
from glassgrad.base.tables import pairs

_COLOURS = pairs(
    """
    input=leaf parameter=par constant=con op=op neuron=op cut=con result=res update=res
    """
)


def mermaid(graph: Graph) -> str:
    """Return the text: a node for every value, an arrow for every argument, with the local derivative."""
    out, kinds = ["graph LR"], {}
    for at, node in enumerate(graph.nodes):
        box = box_of(node)
        first = f"{box.lines[0]} ({box.after})" if box.after else box.lines[0]
        out.append(f'  v{at}["{_text([first, *box.lines[1:]])}"]:::{box.kind}')
        kinds[box.kind] = _COLOURS[box.kind]
    for edge in graph.edges:
        label, _ = told(graph, edge)
        arrow = f'-->|"{_text([label])}"|' if label else "-->"
        out.append(f"  v{edge.tail} {arrow} v{edge.head}")
    for kind, colour in kinds.items():
        dashes = ",stroke-dasharray:4 3" if kind == "cut" else ""
        out.append(f"  classDef {kind} fill:{LIGHT[colour]},stroke:{LIGHT[f'{colour}-edge']}{dashes}")
    return "\n".join(out) + "\n"


def _text(lines: Iterable[str]) -> str:
    # Mermaid's own escapes are a # with a number or a name; an HTML & before one would be read as part of it.
    plain = (line.replace("#", "#35;").replace('"', "#quot;") for line in lines)
    return "<br/>".join(escape(line, quote=False) for line in plain)
