"""The backward rule of slices: cotangents of several parts of a tensor meet in one array.

By its rule, ``x[index]`` gives zeros of the shape of x with the cotangent added at the index, and the walk adds up one
such array for each part. Where all parts are slices, the walk keeps one array of zeros and adds every cotangent to its
own part of it: T steps through a sequence of length T take O(T) then, and not O(T^2).
"""

from __future__ import annotations

from heapq import heappush
from typing import TYPE_CHECKING, Any

import numpy as np

from glassgrad.engine.node import Node
from glassgrad.ops.core import Array
from glassgrad.ops.index import getitem_p
from glassgrad.ops.places import add_at, join_index
from glassgrad.ops.shape import permute_p

if TYPE_CHECKING:
    from glassgrad.engine.tape import Walk

_ndarray = np.ndarray


def add_to_slice(walk: Walk, node: Node, g: Array) -> Any:
    """Add the cotangent of ``x[index]`` to that of x, in place; return `NotImplemented` to leave it to the rule.

    The rule is for integer arrays as indices, leaves, what is differentiated again or batched, and cotangents that
    belong to somebody else as well.
    """
    if len(node.parents) > 1:
        return NotImplemented
    parent = node.parents[0]
    if type(parent) is not Node or type(g) is not _ndarray or walk.create_graph or walk.batched:
        return NotImplemented
    before = walk.cotangents.get(parent)
    if g.dtype is not parent.dtype or not (before is None or (type(before) is _ndarray and parent in walk.owned)):
        return NotImplemented
    spec = node.params["spec"]
    if walk.observer is not None:
        walk.observer.sent(parent, add_at(np, g, spec, (), parent.shape))
    if before is None:
        before = walk.cotangents[parent] = _zeros(parent)
        walk.owned.add(parent)
        heappush(walk.heap, (-parent.seq, parent))
    before[join_index(spec, ())] += g
    return None


def _zeros(node: Node) -> Array:
    """Return zeros for a node's cotangent; below a permutation, in the order that its input has in memory."""
    if node.prim is not permute_p:
        return np.zeros(node.shape, node.dtype)
    axes = node.params["axes"]
    shape = [0] * len(axes)
    for axis, size in zip(axes, node.shape, strict=True):
        shape[axis] = size
    return np.zeros(shape, node.dtype).transpose(axes)


getitem_p.visit = add_to_slice
