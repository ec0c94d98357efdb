"""The forward walk: tangents pushed from inputs to outputs along a recorded tape.

Forward mode needs no separate interpreter: the function is recorded as for a backward walk, and the same nodes are
visited oldest first with the jvp rules of their primitives.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from glassgrad import errors
from glassgrad.engine.mode import enable_grad, no_grad
from glassgrad.engine.node import PICK, Node, unpack
from glassgrad.engine.tape import alias, saved_tensors, wrap
from glassgrad.engine.writes import MUTATIONS
from glassgrad.ops import shape
from glassgrad.ops.core import Array


def forward_walk(outputs: Sequence[Array], inputs: Mapping[Any, Array], *, create_graph: bool = True) -> list[Array]:
    """Push tangents of `inputs` through the tape; return the tangents of `outputs`.

    Both are nodes or leaf tensors. The tangent of an output that does not depend on the inputs is None.
    With `create_graph` the rules are called with Tensors, so that the tangents can be differentiated with respect to
    the given tangents and the recorded inputs; without, with plain arrays.
    """
    tangents: dict[Array, Array] = {target: wrap(t) if create_graph else t for target, t in inputs.items()}
    with enable_grad() if create_graph else no_grad():
        for node in _between(outputs, inputs):
            incoming = [None if parent is None else tangents.get(parent) for parent in node.parents]
            if any(t is not None for t in incoming):
                t = _tangent(node, incoming, create_graph)
                if t is not None:
                    tangents[node] = t
    return [tangents.get(output) for output in outputs]


def _between(outputs: Sequence[Array], inputs: Mapping[Any, Array]) -> list[Node]:
    """Return the nodes that lead to `outputs`, oldest first, without going beyond `inputs`."""
    reachable: set[Node] = set()
    stack = [node for node in outputs if type(node) is Node]
    while stack:
        node = stack.pop()
        if node not in reachable and node not in inputs:
            reachable.add(node)
            stack.extend(parent for parent in node.parents if type(parent) is Node)
    return sorted(reachable, key=lambda node: node.seq)


def _tangent(node: Node, incoming: list[Array], create_graph: bool) -> Array:
    prim = node.prim
    if prim is PICK:
        return incoming[0][node.params["index"]]
    saved = unpack(node)
    if saved is node.saved and node.seq < MUTATIONS.latest:
        MUTATIONS.check(node, traced=True)
    if create_graph or prim.decompose is not None:
        saved = saved_tensors(node, saved)
    if prim.decompose is not None:
        return _through_decomposition(node, incoming, saved, create_graph)
    if prim.jvps is None:
        if prim.joint_jvp is None:
            raise errors.NO_FORWARD_RULE(op=prim.name, where=node.place)
        result = prim.joint_jvp(incoming, *saved, **node.params)
        return result if prim.multiple else match_tangent(result, node)
    total = None
    for t, rule in zip(incoming, prim.jvps, strict=True):
        if t is not None and rule is not None:
            part = rule(t, *saved, **node.params)
            total = part if total is None else total + part
    return None if total is None else match_tangent(total, node)


def match_tangent(t: Array, node: Node) -> Array:
    """Give a tangent the shape and dtype of the output it belongs to."""
    if t.shape != node.shape:
        t = shape.broadcast_to_p(t, shape=node.shape)
    if t.dtype != node.dtype:
        t = shape.astype_p(t, dtype=node.dtype)
    return t


def _through_decomposition(node: Node, incoming: list[Array], saved: Sequence[Array], create_graph: bool) -> Array:
    inputs = [alias(x) for x in saved[1:]]
    with enable_grad():
        y = node.prim.decomposed(*inputs, **node.params)
    seeds = {x.node: t for x, t in zip(inputs, incoming, strict=True) if t is not None}
    parts = list(y) if node.prim.multiple else [y]
    tangents = forward_walk([part.node for part in parts], seeds, create_graph=create_graph)
    return tangents if node.prim.multiple else tangents[0]
