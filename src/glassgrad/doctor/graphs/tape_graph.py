"""The graph of a glassgrad loss, read from the tape, and operands that the tape does not keep."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

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
from glassgrad.doctor.library import Args, Array, Tensor
from glassgrad.engine.mode import MODE, WATCHED
from glassgrad.engine.saved_tensors import Watcher, computed_by
from glassgrad.ops.core import Primitive

Node = Any


class Operands(Watcher):
    """Keeps the operands of subtractions, whose derivative needs none: of a prediction and its target.

    Attributes:
        known: the operands by node.
    """

    in_parts = False  # a program that is compiled meanwhile stays as it is

    def __init__(self) -> None:
        self.known: dict[Node, Args] = {}
        self._latest: Args | None = None

    def enter(self) -> None:
        """Forget those of the last step, and begin."""
        self.known.clear()
        if self not in MODE.watchers:
            MODE.watchers = (*MODE.watchers, self)
            MODE.flags |= WATCHED

    def leave(self) -> None:
        """End; other watchers stay."""
        if self in MODE.watchers:
            MODE.watchers = tuple(one for one in MODE.watchers if one is not self)
            if not MODE.watchers:
                MODE.flags &= ~WATCHED

    def stand_in(self, prim: Primitive) -> Primitive:
        if prim.name != "subtract":
            return prim

        def evaluate(*arrays: Array, **params: object) -> object:
            self._latest = arrays
            return prim.evaluate(*arrays, **params)

        return computed_by(prim, evaluate)

    def note(self, node: Node) -> None:
        if self._latest is not None and node.prim.name == "subtract":
            self.known[node] = self._latest
        self._latest = None


def graph_of(loss: Tensor, known: Mapping[Node, Args] | None = None) -> Graph | None:
    """Return the ops of a loss; None if its history is missing, too long or freed.

    `known` holds operands that the tape does not keep.
    """
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
    return Graph(tuple(_op(node, place, known or {}) for node in order), place[root])


def _op(node: Node, place: dict[Node, int], known: Mapping[Node, Args]) -> Op:
    name = canonical(node.prim.name)
    saved = node.saved if type(node.saved) is tuple else (None,) * (len(node.parents) + 1)
    operands = known.get(node, saved[1:])
    parents = tuple(CONSTANT if parent is None else place.get(parent, LEAF) for parent in node.parents)
    shapes = tuple(_shape(parent, operand) for parent, operand in zip(node.parents, operands, strict=False))
    low, site = low_of(name, saved[0], operands), (node.code, node.lasti)
    options = node.params or {}
    entering = shapes[0] if shapes else None
    axis = axis_of(name, len(node.shape if entering is None else entering), options.get("axis"), options.get("dim"))
    constant = constant_of(name, operands, parents)
    given = tuple(one for one, parent in zip(operands, parents, strict=False) if parent == CONSTANT)
    factor = factor_of(name, given)
    labels = _labels(name, operands) or _picked(node, operands)
    reduction = str(options.get("reduction", ""))
    return Op(name, tuple(node.shape), parents, shapes, low, labels, site, axis, constant, factor, reduction)


def _picked(node: Node, operands: Args) -> Labels | None:
    """Return the class numbers of a weighted cross entropy, which is composed of several ops."""
    maker = node.parents[0] if node.prim.name == "take_along_axis" and node.parents else None
    if maker is None or not hasattr(maker, "prim") or maker.prim.name != "log_softmax" or len(operands) < 2:
        return None
    if (maker.code, maker.lasti) != (node.code, node.lasti):
        return None  # for example, the user picks the log-probabilities of actions
    logits = maker.saved[0] if type(maker.saved) is tuple and maker.saved else None
    picked = operands[1]
    known = isinstance(picked, np.ndarray) and isinstance(logits, np.ndarray) and logits.ndim == 2
    return labels_of(logits, picked.reshape(-1)) if known else None


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
    weights = operands[2] if len(operands) > 2 and isinstance(operands[2], np.ndarray) else None
    return labels_of(operands[0], operands[1], weights)
