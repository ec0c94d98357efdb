"""Write the graph of a run's step as a separate page in the run directory; the report links to it, to stay small."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from glassgrad import errors
from glassgrad.base.drawing.graph import Graph
from glassgrad.data.atomic import write_atomically
from glassgrad.train.kept.rundir import GRAPH
from glassgrad.train.learners.learner import Learner
from glassgrad.train.show.display import PlainDisplay

_OWNER = "self."


def write_graph(run: Path, learner: Learner, batch: Sequence[Any]) -> Path:
    """Write the graph of a learner's step on a batch, without making the step.

    Raises:
        errors.InputError: the step is written by hand or cannot be traced, or the file cannot be written.
    """
    from glassgrad.base.drawing.step_page import step_page
    from glassgrad.compile.view.show import step_graph

    if not hasattr(learner, "one_step"):
        raise errors.GRAPH_BY_HAND(run=run)
    function, args, backend = learner.one_step(*batch)
    try:
        graph = step_graph(function, args, {}, backend=backend)
    except errors.CompileError as error:
        raise errors.GRAPH_NOT_TRACED(run=run, reason=error) from None
    _name_as_users_do(graph)
    graph.name = f"{run.resolve().name}, a step"
    target = run / GRAPH
    try:
        write_atomically(target, step_page(graph).encode())
    except OSError as error:
        raise errors.PAGE_NOT_WRITTEN(path=target, reason=error.strerror or error) from None
    return target


def write_graph_if_possible(run: Path, learner: Learner, batch: Sequence[Any]) -> None:
    """Write the graph, or print the reason why not: the page of the run is useful without it."""
    try:
        write_graph(run, learner, batch)
    except errors.InputError as error:
        PlainDisplay(sys.stderr).say(str(error))


def _name_as_users_do(graph: Graph) -> None:
    """Remove the learner from names: ``self.model.weight`` is the weight of the model."""
    for node in graph.nodes:
        node.name, node.formula = node.name.removeprefix(_OWNER), node.formula.replace(_OWNER, "")
        node.module = _path(node.module)
    for edge in graph.edges:
        edge.local = edge.local.replace(_OWNER, "")
    graph.modules = {_path(path): kind for path, kind in graph.modules.items()}


def _path(path: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(part.removeprefix(_OWNER) for part in path)
