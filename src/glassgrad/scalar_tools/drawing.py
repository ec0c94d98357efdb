"""The graph of a Value as SVG (also inline in notebooks) or Mermaid, without external programs.

The layout is the classical one for layered graphs (Sugiyama, Tagawa, Toda 1981): a column per rank, long
edges broken into pieces of one rank each, and a few sweeps that move every box to the mean height of its
neighbours.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from html import escape
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from glassgrad import errors

if TYPE_CHECKING:
    from glassgrad.scalar import Value

WIDTH, HEIGHT = 132, 56  # size of a box in pixels
COLUMN_GAP, ROW_GAP, BEND_HEIGHT, MARGIN = 56, 14, 10, 12
SWEEPS = 8
# The style of an inline SVG applies to the whole page around it, so every rule starts with our own class.
STYLE = "".join(
    f".ggvalues {rule}"
    for rule in (
        "text{font:12px ui-monospace,Menlo,Consolas,monospace;fill:#1f2933}",
        ".name{font-weight:600}",
        ".edge{fill:none;stroke:#9aa5b1;stroke-width:1.3}",
        ".leaf{fill:#e3f2e6;stroke:#3f9142}",
        ".inner{fill:#fff;stroke:#627d98}",
        ".root{fill:#fff3c4;stroke:#cb6e17}",
        ".cut{fill:#f0f0f0;stroke:#9aa5b1;stroke-dasharray:4 3}",
    )
)


@dataclass(frozen=True)
class Drawing:
    """A drawn graph. `svg` and `mermaid` are text; a notebook shows the SVG."""

    svg: str
    mermaid: str

    def _repr_html_(self) -> str:
        return self.svg

    def save(self, path: str | Path) -> None:
        """Write the drawing to a file; the suffix decides: .svg, .mmd or .md (Mermaid in a code fence)."""
        path = Path(path)
        texts = {".svg": self.svg, ".mmd": self.mermaid, ".md": f"```mermaid\n{self.mermaid}```\n"}
        if path.suffix not in texts:
            raise errors.DRAWING_SUFFIX(path=path, expected=", ".join(texts))
        path.write_text(texts[path.suffix], encoding="utf-8", newline="\n")


def draw(value: Value, max_values: int = 200) -> Drawing:
    """Draw the graph that computed `value`, with data and grad of every value.

    Inputs are on the left, the result is on the right. If the graph has more than `max_values` values, those
    nearest to the result are drawn, and dashed boxes mark where it continues.

        >>> from glassgrad.scalar import Value
        >>> a, b = Value(2.0, label="a"), Value(-3.0, label="b")
        >>> (a * b).backward()
        >>> print(draw(a * b).mermaid.splitlines()[0])
        graph LR
    """
    graph = _Graph.around(value, max_values)
    return Drawing(_svg(graph), _mermaid(graph))


@dataclass
class _Graph:
    """The values to draw, oldest first, and the edges between them as pairs of indices."""

    values: list[Value]
    edges: list[tuple[int, int]]
    cut: set[int]  # indices of values whose own arguments are left out

    @classmethod
    def around(cls, root: Value, max_values: int) -> _Graph:
        chosen, frontier = {root}, [root]
        while frontier and len(chosen) < max_values:
            found = [arg for value in frontier for arg in value._args]
            frontier = [arg for arg in dict.fromkeys(found) if arg not in chosen][: max_values - len(chosen)]
            chosen.update(frontier)
        values = sorted(chosen, key=lambda value: value._seq)
        index = {value: i for i, value in enumerate(values)}
        edges = [(index[arg], i) for i, value in enumerate(values) for arg in value._args if arg in index]
        cut = {i for i, value in enumerate(values) if any(arg not in index for arg in value._args)}
        return cls(values, edges, cut)

    def kind(self, i: int) -> str:
        if i in self.cut:
            return "cut"
        if i == len(self.values) - 1:
            return "root"
        return "inner" if self.values[i]._args else "leaf"

    def lines(self, i: int) -> tuple[str, str, str]:
        """The three lines of a box: name and op, data, grad."""
        value = self.values[i]
        op = f"… {value._op}" if i in self.cut else value._op
        name = f"{value.label} ({op})" if value.label and op else value.label or op
        return name or "value", f"data {value.data:.4g}", f"grad {value.grad:.4g}"


# --- Mermaid ------------------------------------------------------------------------------------


def _mermaid(graph: _Graph) -> str:
    out = ["graph LR"]
    for i in range(len(graph.values)):
        text = "<br/>".join(escape(line).replace("#", "#35;") for line in graph.lines(i))
        out.append(f'  v{i}["{text}"]:::{graph.kind(i)}')
    out += [f"  v{tail} --> v{head}" for tail, head in graph.edges]
    out += [
        "  classDef leaf fill:#e3f2e6,stroke:#3f9142",
        "  classDef inner fill:#ffffff,stroke:#627d98",
        "  classDef root fill:#fff3c4,stroke:#cb6e17",
        "  classDef cut fill:#f0f0f0,stroke:#9aa5b1,stroke-dasharray:4 3",
    ]
    return "\n".join(out) + "\n"


# --- SVG ----------------------------------------------------------------------------------------


@dataclass
class _Layout:
    """Columns of points. A point below `boxes` is a box, every other one a bend of a long edge."""

    boxes: int
    rank: list[int]
    paths: list[list[int]]  # each edge as the points that it runs through
    columns: list[list[int]] = field(default_factory=list)
    centre: dict[int, float] = field(default_factory=dict)  # the y coordinate of each point, downwards

    @property
    def size(self) -> tuple[float, float]:
        bottom = max(self.centre[p] + self.height(p) / 2 for p in self.centre)
        return self.left(len(self.columns) - 1) + WIDTH + MARGIN, bottom + MARGIN

    def height(self, point: int) -> int:
        return HEIGHT if point < self.boxes else BEND_HEIGHT

    @staticmethod
    def left(column: int) -> float:
        return MARGIN + column * (WIDTH + COLUMN_GAP)


def _ranks(graph: _Graph) -> list[int]:
    """Rank values by one more than the highest rank of their arguments; leaves move right, next to their first user."""
    rank = [0] * len(graph.values)
    for tail, head in graph.edges:  # edges are ordered by head, so the tail's rank is final
        rank[head] = max(rank[head], rank[tail] + 1)
    nearest: dict[int, int] = {}
    for tail, head in graph.edges:
        nearest[tail] = min(nearest.get(tail, rank[head]), rank[head])
    heads = {head for _, head in graph.edges}
    return [nearest[i] - 1 if i in nearest and i not in heads else rank[i] for i in range(len(rank))]


def _lay_out(graph: _Graph) -> _Layout:
    rank = _ranks(graph)
    layout = _Layout(len(rank), rank, [])
    for tail, head in dict.fromkeys(graph.edges):
        bends = range(len(rank), len(rank) + rank[head] - rank[tail] - 1)
        layout.paths.append([tail, *bends, head])
        rank.extend(range(rank[tail] + 1, rank[head]))
    layout.columns = [[] for _ in range(max(rank) + 1)]
    for point, column in enumerate(rank):
        layout.columns[column].append(point)
    _place(layout)
    return layout


def _place(layout: _Layout) -> None:
    neighbours: dict[int, list[int]] = defaultdict(list)
    for path in layout.paths:
        for left, right in pairwise(path):
            neighbours[left].append(right)
            neighbours[right].append(left)
    wanted = {point: float(i * HEIGHT) for column in layout.columns for i, point in enumerate(column)}
    for sweep in range(SWEEPS):
        columns = layout.columns if sweep % 2 == 0 else layout.columns[::-1]
        for column in columns:
            for point in column:
                around = [wanted[other] for other in neighbours[point]]
                wanted[point] = sum(around) / len(around) if around else wanted[point]
            column.sort(key=wanted.__getitem__)
            _spread(layout, column, wanted)
    top = min((wanted[p] - layout.height(p) / 2 for p in wanted), default=0.0)
    layout.centre = {point: wanted[point] - top + MARGIN for point in wanted}


def _spread(layout: _Layout, column: list[int], wanted: dict[int, float]) -> None:
    """Push the points of a column apart until none overlap, keeping their mean height."""
    mean = sum(wanted[p] for p in column) / len(column)
    edge = float("-inf")
    for point in column:
        half = layout.height(point) / 2
        wanted[point] = max(wanted[point], edge + half)
        edge = wanted[point] + half + ROW_GAP
    shift = mean - sum(wanted[p] for p in column) / len(column)
    for point in column:
        wanted[point] += shift


def _curve(layout: _Layout, path: list[int]) -> str:
    """One cubic per rank, level at both ends, so that the pieces of a long edge join smoothly."""
    points = [(layout.left(layout.rank[p]), layout.centre[p]) for p in path]
    x, y = points[0]
    x += WIDTH
    parts = [f"M{x:.1f},{y:.1f}"]
    for i, (left, centre) in enumerate(points[1:], start=1):
        middle = (x + left) / 2
        parts.append(f"C{middle:.1f},{y:.1f} {middle:.1f},{centre:.1f} {left:.1f},{centre:.1f}")
        x, y = left, centre
        if i < len(points) - 1:  # across the column of a bend
            x += WIDTH
            parts.append(f"H{x:.1f}")
    return "".join(parts)


def _svg(graph: _Graph) -> str:
    layout = _lay_out(graph)
    width, height = layout.size
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="ggvalues" role="img" aria-label="{len(graph.values)} values"',
        f'width="{width:.0f}" height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}">',
        f"<style>{STYLE}</style>",
    ]
    out += [f'<path class="edge" d="{_curve(layout, path)}"/>' for path in layout.paths]
    for i in range(len(graph.values)):
        left, top = layout.left(layout.rank[i]), layout.centre[i] - HEIGHT / 2
        name, data, grad = (escape(line) for line in graph.lines(i))
        out += [
            f'<g transform="translate({left:.1f},{top:.1f})">',
            f'<rect class="{graph.kind(i)}" width="{WIDTH}" height="{HEIGHT}" rx="5"/>',
            f'<text class="name" x="8" y="17">{name}</text>',
            f'<text x="8" y="33">{data}</text><text x="8" y="48">{grad}</text></g>',
        ]
    return "\n".join([*out, "</svg>\n"])
