"""The backward walk of training, written out in one function.

It is `Walk.run` for the case that every leaf is wanted, nobody watches and all cotangents are arrays: no call for a
node, none for a cotangent that is the first of its node, and nothing waits in a heap along a chain. Anything special is
left to the methods of `Walk`, of which there is none until then.
`tests/engine/test_walks.py` holds that the two agree.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from heapq import heappop, heappush
from operator import is_not
from types import FrameType
from typing import TYPE_CHECKING, Any

import numpy as np

from glassgrad.engine.node import Freed, Node, unpack
from glassgrad.engine.writes import MUTATIONS
from glassgrad.ops.views import memory_owner

if TYPE_CHECKING:
    from glassgrad.engine.tape import Walk


_ndarray = np.ndarray
_is_some = partial(is_not, None)


def begun(
    heap: list[Any], cotangents: dict[Node, Any], found: dict[Any, Any], given: set[int], freed: Freed | None
) -> Walk:
    """Return a walk that has come so far; `tape`, which stands above, puts its function here."""
    raise NotImplementedError


def run_plain(  # noqa: C901, PLR0912, PLR0915 - the hot path, written out
    walk: Walk | None, node: Any = None, g: Any = None, freed: Freed | None = None
) -> dict[Any, Any]:
    """Walk; return the cotangent of every leaf reached.

    Args:
        walk: the walk, with its seeds; None to begin at `node` with the cotangent `g`, and to make a walk when needed.
        node: a root of real numbers.
        g: a cotangent of its shape and dtype.
        freed: what stands for saved values that are freed; None keeps them.
    """
    heap: list[Any] = []
    cotangents: dict[Node, Any] = {}
    found: dict[Any, Any] = {}
    kept, batched = None, False
    if walk is None:
        given = {id(g if g.base is None else memory_owner(g))}
    else:
        heap, cotangents, found, given = walk.heap, walk.cotangents, walk.found, walk.given
        freed, kept = walk.freed, walk.kept
    ahead, ahead_g = node, g  # the next node where no other waits: it takes no place in the heap
    while ahead is not None or heap:
        if ahead is not None:
            node, g, ahead, ahead_g = ahead, ahead_g, None, None
        else:
            node = heappop(heap)[1]
            g = cotangents.pop(node)
        prim = node.prim
        rules = prim.vjps
        if walk is None and ((rules is None and prim.visit is not None) or node.hooks is not None):
            walk = begun(heap, cotangents, found, given, freed)
        if node.hooks is not None:
            g = walk.run_hooks(node, g)  # type: ignore[union-attr]  # made above
        saved = node.saved
        if type(saved) is not tuple:
            saved = unpack(node)
        elif node.seq < MUTATIONS.latest:
            MUTATIONS.check(node)
        parents = node.parents
        pairs: Iterable[tuple[Any, Any]]
        if rules is not None:
            pairs = ((parents[0], rules[0]),) if len(parents) == 1 else zip(parents, rules, strict=False)
        elif prim.visit is None or prim.visit(walk, node, g) is NotImplemented:
            needs = tuple(map(_is_some, parents))
            pairs = zip(parents, prim.joint_vjp(g, needs, *saved, **node.params), strict=True)
        else:
            pairs, batched = (), walk.batched  # type: ignore[union-attr]  # made above
        for parent, c in pairs:
            if parent is None or c is None:
                continue
            if rules is not None:  # then c is the rule that gives it
                params = node.params
                if params:
                    c = c(g, *saved, **params)
                elif len(saved) == 2:  # written out: arguments from a tuple take longer
                    c = c(g, saved[0], saved[1])
                elif len(saved) == 3:
                    c = c(g, saved[0], saved[1], saved[2])
                else:
                    c = c(g, *saved)
                if c is None:
                    continue
            if type(parent) is not Node:
                if type(c) is _ndarray and c.base is None and parent not in found and id(c) not in given:
                    like = parent.array
                    if c.dtype is like.dtype and c.shape == like.shape:
                        found[parent] = c  # as `accumulate` would say
                        given.add(id(c))
                        continue
            elif c.dtype is parent.dtype and c.shape == parent.shape:
                if ahead is None and not heap:
                    ahead, ahead_g = parent, c
                    continue
                if ahead is not None:
                    heappush(heap, (-ahead.seq, ahead))
                    cotangents[ahead], ahead = ahead_g, None
                if parent not in cotangents:
                    heappush(heap, (-parent.seq, parent))
                    cotangents[parent] = c
                    continue
            if ahead is not None:
                heappush(heap, (-ahead.seq, ahead))
                cotangents[ahead], ahead = ahead_g, None
            if walk is None:
                walk = begun(heap, cotangents, found, given, freed)
            walk.accumulate(parent, c)
        if prim.frees or rules is None:
            if kept is not None:
                kept.append(node)
            elif freed is not None:
                node.saved = freed
                node.parents = ()
        if batched:  # a visit has led into what vmap recorded
            return walk.run()  # type: ignore[union-attr]  # made above
    return found


def current(frame: FrameType) -> tuple[Node, Any]:
    """Return the node that a running `run_plain` is at, and its cotangent, from the function's frame."""
    return frame.f_locals["node"], frame.f_locals["g"]
