"""The backward walk of training, written out in one function.

It is `Walk.run` for the case that every leaf is wanted, nobody watches and all cotangents are arrays: no call for a
node, none for a cotangent that is the first of its node. Anything special is left to the methods of `Walk`.
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

from glassgrad.engine.node import Node, unpack
from glassgrad.engine.writes import MUTATIONS

if TYPE_CHECKING:
    from glassgrad.engine.tape import Walk


_ndarray = np.ndarray
_is_some = partial(is_not, None)


def run_plain(walk: Walk) -> dict[Any, Any]:  # noqa: C901, PLR0912, PLR0915 - the hot path, written out
    """Walk; return the cotangent of every leaf reached."""
    heap, cotangents, freed, kept, accumulate = walk.heap, walk.cotangents, walk.freed, walk.kept, walk.accumulate
    found, given, batched = walk.found, walk.given, False
    while heap:
        node = heappop(heap)[1]
        g = cotangents.pop(node)
        if node.hooks is not None:
            g = walk.run_hooks(node, g)
        saved = node.saved
        if type(saved) is not tuple:
            saved = unpack(node)
        elif node.seq < MUTATIONS.latest:
            MUTATIONS.check(node)
        prim, parents = node.prim, node.parents
        rules = prim.vjps
        pairs: Iterable[tuple[Any, Any]]
        if rules is not None:
            pairs = ((parents[0], rules[0]),) if len(parents) == 1 else zip(parents, rules, strict=False)
        elif prim.visit is None or prim.visit(walk, node, g) is NotImplemented:
            needs = tuple(map(_is_some, parents))
            pairs = zip(parents, prim.joint_vjp(g, needs, *saved, **node.params), strict=True)
        else:
            pairs, batched = (), walk.batched
        for parent, c in pairs:
            if parent is None or c is None:
                continue
            if rules is not None:  # then c is the rule that gives it
                params = node.params
                c = c(g, *saved, **params) if params else c(g, *saved)
                if c is None:
                    continue
            if type(parent) is not Node:
                like = parent.array
                if parent in found or type(c) is not _ndarray or c.base is not None or id(c) in given:
                    accumulate(parent, c)
                elif c.dtype is like.dtype and c.shape == like.shape:
                    found[parent] = c  # as `accumulate` would say
                    given.add(id(c))
                else:
                    accumulate(parent, c)
            elif parent in cotangents or c.dtype is not parent.dtype:
                accumulate(parent, c)
            elif c.shape == parent.shape:
                cotangents[parent] = c
                heappush(heap, (-parent.seq, parent))
            else:
                accumulate(parent, c)
        if prim.frees or rules is None:
            if kept is not None:
                kept.append(node)
            elif freed is not None:
                node.saved = freed
                node.parents = ()
        if batched:  # a visit has led into what vmap recorded
            return walk.run()
    return found


def current(frame: FrameType) -> tuple[Node, Any]:
    """Return the node that a running `run_plain` is at, and its cotangent, from the function's frame."""
    return frame.f_locals["node"], frame.f_locals["g"]
