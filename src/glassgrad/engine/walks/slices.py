"""The backward rule of slices: cotangents of several parts of a tensor meet in one array.

By its rule, ``x[index]`` gives zeros of the shape of x with the cotangent added at the index, and the walk sums one
such array per part. If all parts are slices, the walk keeps one array of zeros and adds every cotangent to its own part
of the array: T steps through a sequence of length T then take O(T) instead of O(T^2). If a rule, such as that of
attention, has already put the cotangents of all parts into one array, that array becomes the cotangent of x.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any

import numpy as np

from glassgrad.engine.node import Node
from glassgrad.ops.core import Array
from glassgrad.ops.index import getitem_p
from glassgrad.ops.kernels import interleaved
from glassgrad.ops.places import add_at, join_index
from glassgrad.ops.shape import permute_p

if TYPE_CHECKING:
    from glassgrad.engine.tape import Walk

_ndarray = np.ndarray


def add_to_slice(walk: Walk, node: Node, g: Array) -> Any:
    """Add the cotangent of ``x[index]`` to that of x, in place; return `NotImplemented` to leave it to the rule.

    The rule handles integer arrays as indices, leaves, values that are differentiated again or batched, and cotangents
    that are shared.
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
        whole = _whole(walk, node, g)
        heappush(walk.heap, (-parent.seq, parent))
        if whole is not None:
            walk.cotangents[parent] = whole  # must not be changed, like any rule's result
            return None
        before = walk.cotangents[parent] = _laid(parent, np.zeros)
        walk.owned.add(parent)
    before[join_index(spec, ())] += g
    return None


def _laid(node: Node, make: Callable[[Any, Any], Array]) -> Array:
    """Make an array for a node's cotangent; below a permutation, in the order that its input has in memory."""
    if node.prim is not permute_p:
        return make(node.shape, node.dtype)
    axes = node.params["axes"]
    shape = [0] * len(axes)
    for axis, size in zip(axes, node.shape, strict=True):
        shape[axis] = size
    return make(shape, node.dtype).transpose(axes)


def _whole(walk: Walk, node: Node, g: Array) -> Array | None:
    """Return the array that contains the cotangents of all slices of x, each at its place; None if there is none.

    The other slices must be the next nodes of the walk, so their cotangents are complete. They are then marked as done.
    """
    parent, base = node.parents[0], g.base
    if type(base) is not _ndarray or not base.size > g.size > 0 or base.size != math.prod(parent.shape):
        return None
    if base.dtype is not g.dtype or not base.flags.c_contiguous or walk.wanted is not None:
        return None
    if walk.observer is not None or node.hooks is not None:
        return None
    whole = _laid(parent, lambda shape, _dtype: base.reshape(shape))
    start = _start_of_part(whole, node, g)
    if start is None:
        return None
    nodes, starts = _next_slices(walk, node, whole, g)
    starts.append(start)
    if len(starts) * g.size == base.size and interleaved.distance(g, sorted(starts)) is not None:
        for one in nodes:
            del walk.cotangents[one]
            walk.release(one)
        return whole
    for one in nodes:
        heappush(walk.heap, (-one.seq, one))
    return None


def _next_slices(walk: Walk, node: Node, whole: Array, g: Array) -> tuple[list[Node], list[int]]:
    """Take the next nodes from the heap, while they are slices of the same array with cotangents in `whole`.

    The parts are like `g`; also return where they begin.
    """
    nodes: list[Node] = []
    starts: list[int] = []
    heap, most = walk.heap, whole.size // g.size - 1
    while heap and len(nodes) < most:
        other = heap[0][1]
        if other.prim is not getitem_p or other.parents != node.parents or other.hooks is not None:
            break
        part = walk.cotangents[other]
        if type(other.saved) is not tuple or type(part) is not _ndarray or part.base is not g.base:
            break
        start = _start_of_part(whole, other, part) if part.shape == g.shape and part.strides == g.strides else None
        if start is None:
            break
        heappop(heap)
        nodes.append(other)
        starts.append(start)
    return nodes, starts


def _start_of_part(whole: Array, node: Node, g: Array) -> int | None:
    """Return the address of a slice's cotangent if it is the same memory as the slice of `whole`."""
    own = whole[join_index(node.params["spec"], ())]
    if type(own) is not _ndarray or own.shape != g.shape or own.strides != g.strides:
        return None
    start = interleaved.address(g)
    return start if start == interleaved.address(own) else None


getitem_p.visit = add_to_slice
