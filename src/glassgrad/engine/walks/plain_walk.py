"""The backward walk of training, written out in one function.

It is `Walk.run` for the case that every leaf is wanted, nothing observes the walk and all cotangents are arrays. It
makes no call per node or per first cotangent of a node, and along a chain no node waits in the heap. Special cases are
left to the methods of `Walk`; the object is made only then.
`tests/engine/test_walks.py` holds that the two agree.
"""

from __future__ import annotations

from functools import partial
from heapq import heappop, heappush
from operator import is_not
from types import FrameType
from typing import TYPE_CHECKING, Any

import numpy as np

from glassgrad.engine.node import Freed, Node, unpack
from glassgrad.engine.writes import MUTATIONS
from glassgrad.ops.core import Array
from glassgrad.ops.views import memory_owner

if TYPE_CHECKING:
    from glassgrad.engine.tape import Walk


_ndarray = np.ndarray
_is_some = partial(is_not, None)


def begun(
    heap: list[tuple[float, Node]],
    cotangents: dict[Node, Array],
    found: dict[Any, Array],
    given: set[int],
    freed: Freed | None,
) -> Walk:
    """Return a walk that continues from this state; `tape`, which imports this file, replaces this function."""
    raise NotImplementedError  # replaced at import


def run_plain(walk: Walk | None, node: Any = None, g: Array = None, freed: Any = None) -> dict[Any, Array]:  # noqa: C901, PLR0912, PLR0915 - the hot path, written out
    """Walk, or begin at `node` with its `g` and replace saved values by `freed`; return the cotangents of leaves."""
    batched, state = False, walk and (walk.heap, walk.cotangents, walk.found, walk.given, walk.freed, walk.kept)
    heap, cotangents, found, given, freed, kept = state or ([], {}, {}, {id(_owner(g))}, freed, None)
    ahead, ahead_g = node, g  # the next node if no other waits; it is not put into the heap
    while ahead is not None or heap:
        if ahead is None:
            g = cotangents.pop(node := heappop(heap)[1])
        else:
            node, g, ahead, ahead_g = ahead, ahead_g, None, None
        rules = (prim := node.prim).vjps
        if walk is None and (node.hooks is not None or (rules is None and prim.visit is not None)):
            walk = begun(heap, cotangents, found, given, freed)
        if node.hooks is not None and walk is not None:  # `begun` has made it
            g = walk.run_hooks(node, g)
        saved = node.saved
        if type(saved) is not tuple:
            saved = unpack(node)
        elif node.seq < MUTATIONS.latest and (prim.frees or rules is None):
            MUTATIONS.check(node)
        parents, params = node.parents, node.params
        if rules is not None:
            pairs: Any = ((parents[0], rules[0]),) if len(parents) == 1 else zip(parents, rules, strict=False)
        elif prim.visit is None or prim.visit(walk, node, g) is NotImplemented:
            pairs = zip(parents, prim.joint_vjp(g, tuple(map(_is_some, parents)), *saved, **params), strict=True)
        else:
            pairs, batched = (), walk is not None and walk.batched
        for parent, c in pairs:
            if parent is None or c is None:
                continue
            if rules is not None:  # c is then the rule that computes the cotangent; unpacking arguments takes longer
                c = c(g, saved[0], saved[1]) if len(saved) == 2 and not params else c(g, *saved, **params)
                if c is None:
                    continue
            like = parent if type(parent) is Node else parent.array
            if c.dtype is like.dtype and c.shape == like.shape:
                if like is not parent:
                    if parent not in found and type(c) is _ndarray:  # like `accumulate`
                        found[parent] = c = c if c.base is None and id(c) not in given else owned(c, given)
                        given.add(id(c))
                        continue
                elif ahead is None and not heap:
                    ahead, ahead_g = parent, c
                    continue
                elif parent is not ahead and parent not in cotangents:
                    ahead = ahead and _wait(ahead, ahead_g, heap, cotangents)
                    cotangents[parent] = c
                    heappush(heap, (-parent.seq, parent))
                    continue
            ahead = ahead and _wait(ahead, ahead_g, heap, cotangents)
            walk = walk or begun(heap, cotangents, found, given, freed)
            walk.accumulate(parent, c)
        if prim.frees or rules is None:
            if kept is not None:
                kept.append(node)
            elif freed is not None:
                node.saved, node.parents = freed, ()
        if batched and walk is not None:  # a visit has reached nodes that vmap recorded
            return walk.run()
    return found


def owned(g: Array, given: set[int]) -> Array:
    """Return an array, or a copy if its memory is one of those in `given`; add its owner to them."""
    owner = g
    shared = id(g) in given
    if g.base is not None:
        owner = memory_owner(g)
        # A read-only array is a broadcast; a part of a larger array would keep all of it alive.
        shared = id(owner) in given or owner.size != g.size or not g.flags.writeable
    if shared:
        g = owner = g.copy("K")
    given.add(id(owner))
    return g


def _owner(g: Array) -> Any:
    """Return the array that owns a seed's memory."""
    return g if g.base is None else memory_owner(g)


def _wait(node: Node, g: Array, heap: list[tuple[float, Node]], cotangents: dict[Node, Array]) -> Array:
    """Put a node with its cotangent into the heap."""
    cotangents[node] = g
    heappush(heap, (-node.seq, node))


def current(frame: FrameType) -> tuple[Node, Any]:
    """Return the node that a running `run_plain` is at, and its cotangent, from the function's frame."""
    return frame.f_locals["node"], frame.f_locals["g"]
