"""Levels of a graph that are too long to read, cut into groups of consecutive ops."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

from glassgrad.base.drawing.graph import LEAVES, Graph, Path

MOST = 40
"""The largest number of boxes on one level; more boxes are grouped by line, then in parts."""

Box = list[int]


def gather(graph: Graph, most: int = MOST) -> None:
    """Put nodes into further modules until no level has more boxes than `most`, not counting leaves.

    Each group was computed consecutively, so that groups depend on one another in one direction only.
    """
    _Gatherer(graph, most).level((), [at for at, node in enumerate(graph.nodes) if node.kind not in LEAVES])
    used = {node.module[:length] for node in graph.nodes for length in range(1, len(node.module) + 1)}
    graph.modules = {path: kind for path, kind in graph.modules.items() if path in used}


class _Gatherer:
    def __init__(self, graph: Graph, most: int) -> None:
        self.graph = graph
        self.most = most
        self.nodes = graph.nodes

    def level(self, path: Path, nodes: Sequence[int]) -> None:
        """Gather the boxes of one level, then those of the levels below it."""
        boxes = self._boxes(path, nodes)
        if len(boxes) > self.most:
            runs = [list(run) for _, run in itertools.groupby(boxes, key=lambda box: self._alike(box, path))]
            if 1 < len(runs) < len(boxes):
                self._put(path, [run for run in runs if len(run) > 1], titled=True)
                boxes = self._boxes(path, nodes)
        if len(boxes) > self.most:
            size = max(int(len(boxes) ** 0.5), -(-len(boxes) // self.most))
            self._put(path, [boxes[at : at + size] for at in range(0, len(boxes), size)], titled=False)
            boxes = self._boxes(path, nodes)
        for box in boxes:
            if self._is_below(box[0], path):
                self.level(self.nodes[box[0]].module[: len(path) + 1], box)

    def _is_below(self, at: int, path: Path) -> bool:
        return len(self.nodes[at].module) > len(path)

    def _boxes(self, path: Path, nodes: Sequence[int]) -> list[Box]:
        """Return the boxes of a level in order, each as a list of its nodes: a single op, or a whole module."""
        found: dict[object, Box] = {}
        for at in nodes:
            key: object = self.nodes[at].module[: len(path) + 1] if self._is_below(at, path) else at
            found.setdefault(key, []).append(at)
        return list(found.values())

    def _alike(self, box: Box, path: Path) -> object:
        """Return the key by which boxes are grouped: the line of an op, the class of a module."""
        node = self.nodes[box[0]]
        return self.graph.modules.get(node.module[: len(path) + 1]) if self._is_below(box[0], path) else node.where

    def _put(self, path: Path, groups: Sequence[Sequence[Box]], *, titled: bool) -> None:
        modules = self.graph.modules
        for group in groups:
            first, last = self._title(group[0], path), self._title(group[-1], path)
            source = self.nodes[group[0][0]].source if titled and not self._is_below(group[0][0], path) else ""
            name = next(one for one in numbered(source or f"{first} … {last}") if (*path, one) not in modules)
            modules[*path, name] = f"{len(group)} boxes"
            for at in itertools.chain.from_iterable(group):
                before = self.nodes[at].module
                self.nodes[at].module = (*path, name, *before[len(path) :])
                for length in range(len(path) + 1, len(before) + 1):
                    if before[:length] in modules:
                        modules[*path, name, *before[len(path) : length]] = modules[before[:length]]

    def _title(self, box: Box, path: Path) -> str:
        node = self.nodes[box[0]]
        return node.module[len(path)] if self._is_below(box[0], path) else node.name or node.op


def numbered(title: str) -> Iterator[str]:
    """Yield a title, then the title with numbers that distinguish it from others."""
    yield title
    yield from (f"{title} ({number})" for number in itertools.count(2))
