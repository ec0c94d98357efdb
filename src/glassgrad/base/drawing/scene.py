"""One level of a graph, laid out: the boxes of a module or of the whole graph; open modules are drawn in place."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace

from glassgrad.base.drawing import layout
from glassgrad.base.drawing.boxes import LETTER, Box, box_of, cut, module_box
from glassgrad.base.drawing.graph import LEAVES, Edge, Graph, Path, Sweep

SIDE, TOP = 18.0, 30.0  # from the frame of an open module to its contents
_FAR = 3  # columns after which a leaf is drawn a second time instead of joined by a long edge
_LONGEST_LABEL = 20
_PROSE = re.compile(r"[a-z]{2,} [a-z]{2,}")  # a derivative in words instead of a formula


@dataclass
class Thing:
    """A box with its position; for a module also its path, and its contents if it is open."""

    box: Box
    x: float
    y: float
    width: float
    height: float
    module: Path = ()
    inside: Scene | None = None
    port: str = ""  # for an edge from or to the outside: its direction and the node

    def port_height(self, way: str, node: int) -> float | None:
        """Return the height in an open module at which an edge from or to the outside crosses its frame."""
        for thing in self.inside.things if self.inside is not None else ():
            if thing.port == f"{way} {node}":
                return TOP + thing.y + thing.height / 2
        return None


@dataclass
class Wire:
    """An edge: its points, the text at its end, the text on hover, the things it joins, and the node it starts from."""

    points: list[layout.Point]
    label: str
    hint: str
    tail: int
    head: int
    node: int
    kind: str = ""


@dataclass
class Scene:
    """A level that is laid out."""

    path: Path
    things: list[Thing] = field(default_factory=list)
    wires: list[Wire] = field(default_factory=list)
    width: float = 0.0
    height: float = 0.0

    def count(self) -> int:
        """Count the boxes, including those in open modules."""
        return sum(1 if thing.inside is None else thing.inside.count() for thing in self.things)


@dataclass
class _Arrow:
    tail: int
    head: int
    node: int
    label: str = ""
    hint: str = ""
    kind: str = ""


def scene(graph: Graph, opened: Collection[Path] = (), sweep: Sweep | None = None, path: Path = ()) -> Scene:
    """Lay out the direct contents of a module, with open modules expanded; the empty path is the top level."""
    level = _Level(graph, opened, sweep, path)
    level.draw_leaves_again()
    level.make_room()
    labels = [LETTER * len(arrow.label) for arrow in level.arrows]
    found = layout.arrange(
        [(thing.width, thing.height) for thing in level.things],
        [(arrow.tail, arrow.head) for arrow in level.arrows],
        labels,
    )
    for thing, (x, y) in zip(level.things, found.corners, strict=True):
        thing.x, thing.y = x, y
    wires = [
        Wire(
            _joined(points, arrow, level.things),
            arrow.label,
            arrow.hint,
            arrow.tail,
            arrow.head,
            arrow.node,
            arrow.kind,
        )
        for arrow, points in zip(level.arrows, found.routes, strict=True)
    ]
    return Scene(path, level.things, wires, found.width, found.height)


def _joined(points: list[layout.Point], arrow: _Arrow, things: list[Thing]) -> list[layout.Point]:
    """Let an edge end where it continues inside an open module."""
    tail, head = things[arrow.tail], things[arrow.head]
    leaves, enters = tail.port_height("out", arrow.node), head.port_height("in", arrow.node)
    first = points[0][1] if leaves is None else tail.y + leaves
    last = points[-1][1] if enters is None else head.y + enters
    return [*((x, first) for x, _ in points[:2]), *points[2:-2], *((x, last) for x, _ in points[-2:])]


def paths_of(graph: Graph) -> list[Path]:
    """Return the paths of all modules that are not empty, outer ones first."""
    found = {node.module[:depth] for node in graph.nodes for depth in range(1, len(node.module) + 1)}
    return sorted(found, key=lambda path: (len(path), path))


class _Level:
    """The things and arrows of one level before layout."""

    def __init__(self, graph: Graph, opened: Collection[Path], sweep: Sweep | None, path: Path) -> None:
        self.graph, self.opened, self.sweep, self.path = graph, opened, sweep, path
        self.things: list[Thing] = []
        self.arrows: list[_Arrow] = []
        self._index: dict[object, int] = {}
        self._again: dict[int, object] = {}  # leaves, and the functions that make their boxes
        for at, node in enumerate(graph.nodes):
            if node.module[: len(path)] == path:
                self._place(at)
        self._connect()

    def _place(self, at: int) -> int:
        """Return the thing that represents a node at this level: its own box, or the module that contains it."""
        module = self.graph.nodes[at].module
        if module == self.path:
            return self._add(at, lambda: self._box(box_of(self.graph.nodes[at], self.sweep, at, self.path)))
        child = module[: len(self.path) + 1]
        return self._add(child, lambda: self._module(child))

    def _add(self, key: object, make: Callable[[], Thing]) -> int:
        if key not in self._index:
            self._index[key] = len(self.things)
            self.things.append(make())
        return self._index[key]

    @staticmethod
    def _box(box: Box) -> Thing:
        width, height = box.size
        return Thing(box, 0.0, 0.0, width, height)

    def _module(self, child: Path) -> Thing:
        inner = [node for node in self.graph.nodes if node.module[: len(child)] == child]
        leaving = {edge.tail for edge in self.graph.edges if not self._within(edge.head, child)}
        own = [(at, node) for at, node in enumerate(self.graph.nodes) if self._within(at, child)]
        last = [node for at, node in own if at in leaving or node.root]
        box = module_box(self.graph, child, sum(node.kind not in LEAVES for node in inner), last[-1] if last else None)
        thing = self._box(box)
        thing.module = child
        if child in self.opened:
            thing.inside = scene(self.graph, self.opened, self.sweep, child)
            title = LETTER * len("  ".join(box.lines[:2])) + SIDE
            thing.width = max(thing.inside.width + 2 * SIDE, title)
            thing.height = thing.inside.height + TOP + SIDE
        return thing

    def _within(self, at: int, path: Path) -> bool:
        return self.graph.nodes[at].module[: len(path)] == path

    def _connect(self) -> None:
        seen = set()
        for edge in self.graph.edges:
            inside = self._within(edge.tail, self.path), self._within(edge.head, self.path)
            if not any(inside):
                continue
            tail = self._place(edge.tail) if inside[0] else self._port("in", edge.tail)
            head = self._place(edge.head) if inside[1] else self._port("out", edge.tail)
            if tail == head:
                continue
            plain = not self.things[tail].module and not self.things[head].module and all(inside)
            if not plain and (tail, head, edge.tail) in seen:
                continue  # a bundle of arguments between two boxes is one arrow
            seen.add((tail, head, edge.tail))
            label, hint = told(self.graph, edge) if inside[1] and not self.things[head].module else ("", "")
            kind = "leaf" if self.graph.nodes[edge.tail].kind in LEAVES else ""
            if self.sweep is not None:
                reached = {edge.tail, edge.head} <= self.sweep.values.keys()
                kind = ("back" if self.sweep.backward else "forth") if reached else "asleep"
            self.arrows.append(_Arrow(tail, head, edge.tail, label, hint, kind))

    def _port(self, way: str, at: int) -> int:
        node = self.graph.nodes[at]
        text = cut(node.name or node.op or node.kind, 14)
        made = self._add((way, at), lambda: self._box(Box((text,), "port", f"{way}: {text}")))
        self.things[made].port = f"{way} {at}"
        return made

    def make_room(self) -> None:
        """Enlarge the boxes of ops with many arguments, so that the text at the edges stays readable."""
        for at, count in Counter(arrow.head for arrow in self.arrows).items():
            thing = self.things[at]
            if not thing.module:
                thing.box = replace(thing.box, entering=count)
                thing.width, thing.height = thing.box.size

    def draw_leaves_again(self) -> None:
        """Draw a parameter, a constant or an input once more near readers that are far from its nearest one."""
        rank = layout.latest(len(self.things), [(arrow.tail, arrow.head) for arrow in self.arrows])
        nearest: dict[int, int] = {}
        heads = {arrow.head for arrow in self.arrows}
        for arrow in self.arrows:
            nearest[arrow.tail] = min(nearest.get(arrow.tail, len(rank)), rank[arrow.head])
        copies: dict[tuple[int, int], int] = {}
        for arrow in self.arrows:
            tail = arrow.tail
            if tail in heads or self.things[tail].module or rank[arrow.head] - nearest[tail] <= _FAR:
                continue
            key = tail, rank[arrow.head] // _FAR
            if key not in copies:
                copies[key] = len(self.things)
                self.things.append(self._box(self.things[tail].box))
            arrow.tail = copies[key]


def told(graph: Graph, edge: Edge) -> tuple[str, str]:
    """Return the text at the end of an edge, and the text on hover."""
    label = edge.local
    if edge.number is not None:
        value = f"{edge.number:.4g}"
        label = value if edge.local in {"", value} else f"{edge.local} = {value}"
    tail, head = graph.nodes[edge.tail], graph.nodes[edge.head]
    names = head.name or head.op, tail.name or tail.op or tail.kind
    lines = [f"d {names[0]} / d {names[1]}: {label}"] if label else []
    if edge.sent is not None:
        lines.append(f"sends back {edge.sent.long}")
    if len(label) > _LONGEST_LABEL or _PROSE.search(label):
        label = "" if edge.number is None else f"{edge.number:.4g}"
    return label, "\n".join(lines)
