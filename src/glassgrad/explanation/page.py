"""The page of a function: its graph with values and cotangents, its program, its kernels, and the tables below."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from glassgrad.base.drawing.graph import Graph
from glassgrad.base.drawing.step_page import step_page
from glassgrad.errors import CompileError
from glassgrad.explanation import render
from glassgrad.explanation.graphs import graph_of, of_call
from glassgrad.explanation.record import as_leaves, record
from glassgrad.ops.core import Array


def page_of(function: Callable[..., Any], args: Sequence[Array], options: Mapping[str, Any]) -> str:
    """Return one call of a function as a page."""
    explained = record(function, args, options)
    tables = [(table.title, table.heads, table.rows) for table in render.tables(explained)]
    return step_page(_graph(function, args, options), tables, render.cost_text(explained))


def _graph(function: Callable[..., Any], args: Sequence[Array], options: Mapping[str, Any]) -> Graph:
    from glassgrad.compile.backends import chosen
    from glassgrad.compile.view.show import step_graph

    function = getattr(function, "__compiled_function__", function)
    named = as_leaves(function, args, options)
    given = tuple(named.values())[: len(args)], dict(list(named.items())[len(args) :])
    try:
        return step_graph(function, *given, backend=chosen("auto"))
    except CompileError as error:
        ops, _ = of_call(function, args, options)
        graph = graph_of(ops)
        graph.notes.append(f"Recorded during its run, without program and kernels; it cannot be traced: {error}")
        graph.measured = "Not compiled."
        return graph
