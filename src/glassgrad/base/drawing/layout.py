"""The layout of a layered graph: columns, the order in them, heights, and the paths of the edges.

Gansner, Koutsofios, North and Vo, A technique for drawing directed graphs (1993): the column of a node and its height
are two linear programs, solved by SciPy's HiGHS, so boxes may have any size. Between the two, sweeps improve the order
in each column: they sort by the mean of the neighbours (Sugiyama, Tagawa and Toda 1981).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from glassgrad.errors.packages import needed

Size = tuple[float, float]
Point = tuple[float, float]

ROW_GAP, BEND_GAP = 16.0, 9.0
COLUMN_GAP = 46.0
_MOST_BENDS = 6000
"""The largest total number of bends; beyond it, edges are drawn straight, behind the boxes."""


@dataclass(frozen=True)
class Layout:
    """The upper left corner of each box; each edge as points, alternately a level line and a curve; and the size."""

    corners: list[Point]
    routes: list[list[Point]]
    width: float
    height: float


def arrange(sizes: Sequence[Size], edges: Sequence[tuple[int, int]], labels: Sequence[float] = ()) -> Layout:
    """Lay out an acyclic graph from left to right.

    Args:
        sizes: width and height of each box.
        edges: pairs of indices.
        labels: the width of the text at the end of each edge.
    """
    if not sizes:
        return Layout([], [], 0.0, 0.0)
    rank = ranks(len(sizes), edges)
    paths = _bent(rank, edges)
    columns = _ordered(rank, paths)
    tall = [size[1] for size in sizes] + [0.0] * (len(rank) - len(sizes))
    middles = _heights(columns, paths, tall, len(sizes))
    lefts, widths = _columns(columns, sizes, edges, rank, labels or [0.0] * len(edges))
    corners = [
        (lefts[rank[at]] + (widths[rank[at]] - width) / 2, middles[at] - height / 2)
        for at, (width, height) in enumerate(sizes)
    ]
    ends = _ends(edges, paths, corners, sizes, middles)
    routes = []
    for path, (start, end) in zip(paths, ends, strict=True):
        heights = [start[1], *(middles[point] for point in path[1:-1]), end[1]]
        sides = [
            x for point in path for x in (lefts[rank[point]], lefts[rank[point]] + widths[rank[point]])
        ]  # of every column on the way, left and right
        sides[0], sides[-1] = start[0], end[0]
        routes.append([(x, heights[at // 2]) for at, x in enumerate(sides)])
    bottom = max(y + height for (_, y), (_, height) in zip(corners, sizes, strict=True))
    return Layout(corners, routes, lefts[-1] + widths[-1], max([bottom, *middles]))


def ranks(count: int, edges: Sequence[tuple[int, int]]) -> list[int]:
    """Return the column of each node: every edge goes right, and the total length of the edges is minimal."""
    if not edges:
        return [0] * count
    cost = np.zeros(count)
    for tail, head in edges:
        cost[head] += 1
        cost[tail] -= 1
    rows = [((tail, 1.0), (head, -1.0)) for tail, head in edges]
    found = [round(value) for value in _solved(cost, rows, [-1.0] * len(edges))]
    return [value - min(found) for value in found]


def latest(count: int, edges: Sequence[tuple[int, int]]) -> list[int]:
    """Return columns in which each node is as near to its readers as possible: fast to find, but wide."""
    before: list[list[int]] = [[] for _ in range(count)]
    waiting = [0] * count
    for tail, head in edges:
        before[head].append(tail)
        waiting[tail] += 1
    found = [0] * count
    ready = [at for at in range(count) if not waiting[at]]
    while ready:
        head = ready.pop()
        for tail in before[head]:
            found[tail] = min(found[tail], found[head] - 1)
            waiting[tail] -= 1
            if not waiting[tail]:
                ready.append(tail)
    return [value - min(found) for value in found]


def _solved(cost: Any, rows: Sequence[Iterable[tuple[int, float]]], limits: Sequence[float]) -> Any:
    """Return the x of least cost with rows @ x <= limits and x >= 0."""
    with needed("scipy", "drawings of graphs"):
        from scipy.optimize import linprog
        from scipy.sparse import coo_array

    entries = [(at, column, value) for at, row in enumerate(rows) for column, value in row]
    where, column, value = zip(*entries, strict=True)
    matrix = coo_array((value, (where, column)), shape=(len(rows), len(cost)))
    return linprog(cost, A_ub=matrix, b_ub=limits, method="highs").x


def _bent(rank: list[int], edges: Sequence[tuple[int, int]]) -> list[list[int]]:
    """Return each edge as points, one per column; append the bends to `rank`."""
    paths = []
    left = _MOST_BENDS
    for tail, head in sorted(edges, key=lambda edge: rank[edge[1]] - rank[edge[0]]):
        needed = rank[head] - rank[tail] - 1
        left -= needed
        bends = list(range(len(rank), len(rank) + needed)) if left >= 0 else []
        if bends:
            rank.extend(range(rank[tail] + 1, rank[head]))
        paths.append([tail, *bends, head])
    waiting: dict[tuple[int, int], list[list[int]]] = {}
    for path in paths:
        waiting.setdefault((path[0], path[-1]), []).append(path)
    return [waiting[edge].pop() for edge in edges]


def _ordered(rank: Sequence[int], paths: Sequence[Sequence[int]]) -> list[list[int]]:
    """Order each column so that few edges cross between columns."""
    before: list[list[int]] = [[] for _ in rank]
    after: list[list[int]] = [[] for _ in rank]
    for path in paths:
        for left, right in pairwise(path):
            after[left].append(right)
            before[right].append(left)
    columns = _first_order(rank, before, after)
    place = [0] * len(rank)
    _note(columns, place)
    best, kept = _crossings(columns, after, place), [list(column) for column in columns]
    for sweep in range(24 if len(rank) < 2000 else 10):
        if not best:
            break
        beside = before if sweep % 2 == 0 else after
        for column in columns if sweep % 2 == 0 else reversed(columns):
            means = {p: sum(place[q] for q in beside[p]) / len(beside[p]) if beside[p] else place[p] for p in column}
            column.sort(key=means.__getitem__)
            _note([column], place)
        count = _crossings(columns, after, place)
        if count < best:
            best, kept = count, [list(column) for column in columns]
    return kept


def _first_order(rank: Sequence[int], before: list[list[int]], after: list[list[int]]) -> list[list[int]]:
    """Return the columns in the order in which a depth-first search meets the points."""
    columns: list[list[int]] = [[] for _ in range(max(rank) + 1)]
    seen = [False] * len(rank)
    for start in sorted(range(len(rank)), key=lambda point: rank[point]):
        waiting = [start]
        while waiting:
            point = waiting.pop()
            if not seen[point]:
                seen[point] = True
                columns[rank[point]].append(point)
                waiting += [*reversed(after[point]), *reversed(before[point])]
    return columns


def _note(columns: Iterable[Sequence[int]], place: list[int]) -> None:
    for column in columns:
        for at, point in enumerate(column):
            place[point] = at


def _crossings(columns: Sequence[Sequence[int]], after: Sequence[Sequence[int]], place: Sequence[int]) -> int:
    total = 0
    for column in columns:
        ends: list[int] = []
        for point in column:
            for end in sorted(place[other] for other in after[point]):
                at = bisect_right(ends, end)
                total += len(ends) - at
                ends.insert(at, end)
    return total


def _heights(
    columns: Sequence[Sequence[int]], paths: Sequence[Sequence[int]], heights: Sequence[float], boxes: int
) -> list[float]:
    """Return the vertical centre of each point: edges climb as little as possible, long ones least of all."""
    pieces = [
        (left, right, 1 + 3 * (left >= boxes) + 3 * (right >= boxes))
        for path in paths
        for left, right in pairwise(path)
    ]
    cost = np.concatenate([np.zeros(len(heights)), [weight for _, _, weight in pieces]])
    rows: list[tuple[tuple[int, float], ...]] = []
    limits: list[float] = []
    for at, (left, right, _) in enumerate(pieces, start=len(heights)):  # climb >= |left - right|
        rows += [((left, 1.0), (right, -1.0), (at, -1.0)), ((right, 1.0), (left, -1.0), (at, -1.0))]
        limits += [0.0, 0.0]
    for column in columns:
        for upper, lower in pairwise(column):
            gap = BEND_GAP if upper >= boxes and lower >= boxes else ROW_GAP
            rows.append(((upper, 1.0), (lower, -1.0)))
            limits.append(-(heights[upper] + heights[lower]) / 2 - gap)
    found = _solved(cost, rows, limits)[: len(heights)] if rows else np.zeros(len(heights))
    top = min(float(middle) - height / 2 for middle, height in zip(found, heights, strict=True))
    return [float(middle) - top for middle in found]


def _columns(
    columns: Sequence[Sequence[int]],
    sizes: Sequence[Size],
    edges: Sequence[tuple[int, int]],
    rank: Sequence[int],
    labels: Sequence[float],
) -> tuple[list[float], list[float]]:
    """Return the left side and the width of each column; leave room before it for the labels of entering edges."""
    widths = [max((sizes[p][0] for p in column if p < len(sizes)), default=0.0) for column in columns]
    gaps = [COLUMN_GAP] * len(columns)
    for (_, head), label in zip(edges, labels, strict=True):
        gaps[rank[head]] = max(gaps[rank[head]], label + COLUMN_GAP / 2)
    lefts = [0.0]
    for width, gap in zip(widths, gaps[1:], strict=False):
        lefts.append(lefts[-1] + width + gap)
    return lefts, widths


def _ends(
    edges: Sequence[tuple[int, int]],
    paths: Sequence[Sequence[int]],
    corners: Sequence[Point],
    sizes: Sequence[Size],
    middles: Sequence[float],
) -> list[tuple[Point, Point]]:
    """Return where each edge leaves its tail and enters its head; entering edges are spread over its left side."""
    entering: dict[int, list[int]] = {}
    for at, (_, head) in enumerate(edges):
        entering.setdefault(head, []).append(at)
    ends: list[tuple[Point, Point]] = [((0.0, 0.0), (0.0, 0.0))] * len(edges)
    for head, found in entering.items():
        found.sort(key=lambda at: middles[paths[at][-2]])
        (x, y), (_, height) = corners[head], sizes[head]
        for number, at in enumerate(found, start=1):
            tail = edges[at][0]
            start = corners[tail][0] + sizes[tail][0], corners[tail][1] + sizes[tail][1] / 2
            ends[at] = start, (x, y + height * number / (len(found) + 1))
    return ends
