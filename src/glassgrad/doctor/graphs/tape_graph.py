"""The graph of a glassgrad loss, read from the tape."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from glassgrad.doctor.graphs.graph import CONSTANT, LEAF, Graph, Labels, Op, canonical

Node = Any

MOST = 20_000
"""Longer graphs are not read: a recurrent net over a long text repeats the same ops."""


def graph_of(loss: Any) -> Graph | None:
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
    return Op(
        name, tuple(node.shape), parents, shapes, _low(name, saved), _labels(name, operands), (node.code, node.lasti)
    )


def _shape(parent: Any, operand: Any) -> tuple[int, ...] | None:
    for known in (operand, parent):
        if isinstance(known, int | float):
            return ()
        if known is not None and hasattr(known, "shape"):
            return tuple(known.shape)
    return None


def low_of(name: str, y: Any, operands: tuple[Any, ...]) -> float:
    """Return the smallest value of the operand that must not be 0, from arrays; NaN if unknown."""
    with np.errstate(all="ignore"):
        if name in {"log", "log2", "log10", "rsqrt", "sqrt"} and operands and _is_array(operands[0]):
            return float(np.min(operands[0]))
        if name == "sqrt" and _is_array(y):
            # After a root, a negative operand shows only as NaN.
            return -math.inf if np.isnan(y).any() else float(np.min(y))
        if name == "divide" and len(operands) > 1 and _is_array(operands[1]):
            return float(np.min(np.abs(operands[1])))
    return math.nan


def _low(name: str, saved: tuple[Any, ...]) -> float:
    return low_of(name, saved[0], saved[1:])


def _is_array(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.size > 0 and value.dtype.kind == "f"


def labels_of(logits: Any, labels: Any) -> Labels | None:
    """Describe class numbers and the outputs that they belong to."""
    if not isinstance(labels, np.ndarray) or labels.dtype.kind not in "iu" or labels.ndim != 1 or not labels.size:
        return None
    classes = int(logits.shape[1]) if getattr(logits, "ndim", 0) > 1 else 0
    ordered = bool((labels[1:] >= labels[:-1]).all())
    return Labels(int(labels.size), len(np.unique(labels)), ordered, classes)


def _labels(name: str, operands: tuple[Any, ...]) -> Labels | None:
    if name != "cross_entropy" or len(operands) < 2:
        return None
    return labels_of(operands[0], operands[1])
