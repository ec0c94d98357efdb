"""A network of linear layers as neurons: each node is a number of the first example, each edge a weight."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from glassgrad import errors
from glassgrad.base.drawing.graph import Edge, Graph, Node, Numbers
from glassgrad.engine.tensor import Tensor
from glassgrad.explanation.graphs import Ops
from glassgrad.ops.core import Array, Elementwise
from glassgrad.verify.spy import Applied

_MOST = 10
"""The largest number of neurons that are drawn for a layer."""


@dataclass
class _Layer:
    name: str
    weight: Array  # (out, in)
    before: Array  # input of the layer for the first example
    after: Array
    gradient: Array
    ops: list[str]


def graph_of_neurons(ops: Ops) -> Graph:
    """Return the neurons of a chain of linear layers. Raises if there is none."""
    layers = _chain(ops)
    if not layers:
        raise errors.DRAW_NO_NEURONS(name=ops.name)
    graph = Graph(ops.name, [], [])
    columns = [_column(graph, layers[0].before, None, "x")]
    for number, layer in enumerate(layers, start=1):
        title = layer.name if number == len(layers) else f"h{number}"
        columns.append(_column(graph, layer.after, layer.gradient, title))
        _join(graph, columns[-2], columns[-1], layer)
        for at in columns[-1].values():
            graph.nodes[at].op = " ".join(layer.ops)
    graph.columns = [list(column.values()) for column in columns]
    graph.notes += _told(layers)
    return graph


def _told(layers: list[_Layer]) -> list[str]:
    notes = ["Numbers are those of the first example.", "An edge is as wide as its weight, blue above 0 and red below."]
    hidden = [str(layer.weight.shape[0]) for layer in layers if layer.weight.shape[0] > _MOST]
    return [*notes, f"Of layers of {', '.join(hidden)} neurons {_MOST} are drawn."] if hidden else notes


def _chain(ops: Ops) -> list[_Layer]:
    """Return the longest chain of linear layers, each with the elementwise ops after it."""
    known = {entry.node: entry for entry in ops.applied}
    ending: dict[Any, list[_Layer]] = {}  # chains, by the node that the last layer ends with
    best: list[_Layer] = []
    for entry in ops.applied:
        weight = _weight(entry)
        if weight is None:
            continue
        last, names = _activated(entry, known)
        seen = None if ops.seen is None else ops.seen.cotangents_of.get(last.node)
        layer = _Layer(ops.names.of[last.node], weight, _first(entry.args[0]), _first(last.value), _first(seen), names)
        if layer.before is None or layer.after is None:
            continue
        chain = ending[last.node] = [*ending.get(entry.node.parents[0], []), layer]
        best = max(best, chain, key=len)
    return best


def _weight(entry: Applied) -> Array:
    """Return the weight of a linear layer as (out, in); None for other ops."""
    if entry.node.prim.name not in {"linear", "matmul"} or len(entry.args) < 2:
        return None
    weight, parent = entry.args[1], entry.node.parents[1]
    if not isinstance(parent, Tensor) or np.ndim(weight) != 2:
        return None
    return np.asarray(weight) if entry.node.prim.name == "linear" else np.asarray(weight).T


def _activated(entry: Applied, known: dict[Any, Applied]) -> tuple[Applied, list[str]]:
    """Follow the ops that take only the result: a bias, an activation."""
    names: list[str] = []
    while True:
        readers = [other for other in known.values() if entry.node in other.node.parents]
        if len(readers) != 1 or not isinstance(readers[0].node.prim, Elementwise):
            return entry, names
        reader = readers[0]
        others = [parent for parent in reader.node.parents if parent is not entry.node]
        if reader.node.shape != entry.node.shape or any(np.ndim(other) > 1 for other in others if other is not None):
            return entry, names
        if others and reader.node.prim.name != "add":
            return entry, names
        entry = reader
        if entry.node.prim.name != "add":
            names.append(entry.node.prim.name)


def _first(array: Array) -> Array:
    """Return the vector of the first example."""
    if array is None or np.ndim(array) == 0 or np.size(array) == 0:
        return None
    array = np.asarray(array)
    return array.reshape(-1, array.shape[-1])[0]


def _column(graph: Graph, values: Array, gradients: Array, title: str) -> dict[int, int]:
    """Append the neurons of a layer; return the number of each in its layer with its node."""
    count = len(values)
    column = {}
    for at in range(min(count, _MOST)):
        name = title if count == 1 else f"{title}[{at}]"
        node = Node("neuron", name=name, value=Numbers(f"{values[at]:.3g}"))
        if gradients is not None:
            node.gradient = Numbers(f"{gradients[at]:.3g}")
        column[at] = len(graph.nodes)
        graph.nodes.append(node)
    return column


def _join(graph: Graph, left: dict[int, int], right: dict[int, int], layer: _Layer) -> None:
    for i, head in right.items():
        for j, tail in left.items():
            graph.edges.append(Edge(tail, head, weight=float(layer.weight[i, j])))
