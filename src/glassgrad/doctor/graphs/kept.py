"""The losses and graphs of backward passes, from each pass to the optimizer's step that uses it."""

from __future__ import annotations

import math
from dataclasses import replace

from glassgrad.doctor.graphs.graph import UNKNOWN, Graph, Labels
from glassgrad.doctor.observers.loss_record import LossRecord
from glassgrad.doctor.observers.structure import Structure
from glassgrad.doctor.run import Calls

_GRAPHS = 2  # sampled steps whose graph is kept; the graphs of later steps are the same


class Kept:
    """Keeps the last loss and graph before each step: earlier ones may belong to other models.

    Attributes:
        loss, graph: those of the last backward pass, None after the step.
        graphs, labels: (step, graph) and (step, class numbers) of sampled steps.
    """

    def __init__(self, losses: LossRecord, structure: Structure) -> None:
        self._losses, self._structure = losses, structure
        self.loss: float | None = None
        self.graph: Graph | None = None
        self.graphs: list[tuple[int, Graph]] = []
        self.labels: list[tuple[int, Labels]] = []
        self._lows: list[float] = []

    @property
    def first(self) -> Graph:
        """The first graph, with the least operand of each op over all sampled steps."""
        graph = self.graphs[0][1] if self.graphs else UNKNOWN
        if not self._lows:
            return graph
        return replace(graph, ops=tuple(replace(op, low=low) for op, low in zip(graph.ops, self._lows, strict=True)))

    def drop(self) -> None:
        """Forget the last pass."""
        self.loss = self.graph = None

    def commit(self, calls: Calls) -> None:
        """Record the last loss before a step as the loss of the step."""
        loss, graph, step = self.loss, self.graph, calls.steps
        self.drop()
        if loss is not None:
            self._losses.add(step, loss)
        if graph is None:
            return
        if self.graphs:
            self._lows = _least(self._lows, graph, self.graphs[0][1])
        if len(self.graphs) < _GRAPHS:
            self.graphs.append((step, graph))
            site = graph.ops[graph.loss].site
            if site is not None:
                calls.sites.setdefault("loss", site)
        for labels in [op.labels for op in graph.losses() if op.labels is not None][:1]:
            self.labels.append((step, labels))
            self._structure.learns(labels)
        self._structure.compares(graph)


def _least(lows: list[float], graph: Graph, first: Graph) -> list[float]:
    """Return the least operands so far, of graphs that are as the first one; they do not count those that are NaN."""
    if len(graph.ops) != len(first.ops):
        return lows
    before = lows or [op.low for op in first.ops]
    pairs = zip(before, (op.low for op in graph.ops), strict=True)
    return [one if math.isnan(other) else other if math.isnan(one) else min(one, other) for one, other in pairs]
