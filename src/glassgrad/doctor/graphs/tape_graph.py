"""The graph of a glassgrad loss, read from the tape."""

from __future__ import annotations

from typing import Any

from glassgrad.doctor.graphs.graph import (
    CONSTANT,
    LEAF,
    MOST,
    Graph,
    Labels,
    Op,
    axis_of,
    canonical,
    constant_of,
    factor_of,
    labels_of,
    low_of,
)
from glassgrad.doctor.library import Tensor

Node = Any


def graph_of(loss: Tensor) -> Graph | None:
    """Return the ops of a loss; None if its history is missing, too long or freed."""
    root = getattr(loss, "node", None)
    if root is None:
        return None
    nodes = {root}
    waiting = [root]
    while waiting:
        for parent in waiting.pop().parents:
            if hasattr(parent, "prim") and parent not in nodes:
                nodes.add(parent)
                waiting.append(parent)
        if len(nodes) > MOST:
            return None
    order = sorted(nodes, key=lambda node: node.seq)
    place = {node: at for at, node in enumerate(order)}
    return Graph(tuple(_op(node, place) for node in order), place[root])


def _op(node: Node, place: dict[Node, int]) -> Op:
    name = canonical(node.prim.name)
    saved = node.saved if type(node.saved) is tuple else (None,) * (len(node.parents) + 1)
    operands = saved[1:]
    parents = tuple(CONSTANT if parent is None else place.get(parent, LEAF) for parent in node.parents)
    shapes = tuple(_shape(parent, operand) for parent, operand in zip(node.parents, operands, strict=False))
    low, site = low_of(name, saved[0], operands), (node.code, node.lasti)
    options = node.params or {}
    entering = shapes[0] if shapes else None
    axis = axis_of(name, len(node.shape if entering is None else entering), options.get("axis"), options.get("dim"))
    constant = constant_of(name, operands, parents)
    known = tuple(one for one, parent in zip(operands, parents, strict=False) if parent == CONSTANT)
    factor = factor_of(name, known)
    return Op(name, tuple(node.shape), parents, shapes, low, _labels(name, operands), site, axis, constant, factor)


def _shape(parent: Any, operand: Any) -> tuple[int, ...] | None:
    for known in (operand, parent):
        if isinstance(known, int | float):
            return ()
        if known is not None and hasattr(known, "shape"):
            return tuple(known.shape)
    return None


def _labels(name: str, operands: tuple[Any, ...]) -> Labels | None:
    if name != "cross_entropy" or len(operands) < 2:
        return None
    return labels_of(operands[0], operands[1])
