"""Average gradients over the ranks during a backward pass, each bucket as soon as its gradients are complete.

A backward walk visits nodes by falling sequence number, so the gradient of a leaf is complete when the walk has passed
the oldest node that reads the leaf. A node without a derivative rule is put into the walk's heap at this position; when
the walk visits it, its bucket is sent. After the walk, `finish` waits for all buckets.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from glassgrad import errors
from glassgrad.base import provenance
from glassgrad.distributed import primitives
from glassgrad.distributed.buckets import make_buckets, share_memory
from glassgrad.distributed.collectives import all_reduce
from glassgrad.distributed.reductions import ReduceOp
from glassgrad.distributed.world import ProcessGroup
from glassgrad.engine import tape
from glassgrad.engine.mode import MODE, TRACING
from glassgrad.engine.node import Node, record
from glassgrad.engine.tensor import Tensor, make
from glassgrad.ops.core import Array, Custom

Finish = Callable[[dict[Any, Any]], None]


class Reducer:
    """The gradients of some parameters, averaged over the ranks of a group in the next backward pass after `arm`.

    Args:
        named: the parameters with their names, in the same order on all ranks.
        group: the ranks.
        megabytes: the size of a bucket; see `make_buckets`.
        unused: whether a backward pass may reach only some of the parameters, different ones on each rank.
    """

    def __init__(
        self, named: Sequence[tuple[str, Tensor]], group: ProcessGroup, megabytes: float | None, *, unused: bool
    ) -> None:
        self.names = [name for name, _ in named]
        self.leaves = [leaf for _, leaf in named]
        self.group = group
        self.comm: Any = None if group.size() == 1 else group.comm.Dup()
        self.unused = unused
        self.buckets = make_buckets(
            [tuple(leaf.shape) for leaf in self.leaves], [leaf.dtype for leaf in self.leaves], megabytes
        )
        self.window = None if self.comm is None else share_memory(self.buckets, self.comm)
        self.armed = False
        self.key = primitives.register(self)
        begin = weakref.WeakMethod(self.begin)
        tape.BEFORE_WALK.append(begin)
        weakref.finalize(self, tape.BEFORE_WALK.remove, begin)

    def arm(self) -> None:
        """Average the gradients of the next backward pass."""
        self.armed = self.comm is not None

    def take_buffers(self, buffers: Sequence[Tensor]) -> None:
        """Copy the buffers of the group's first rank to all ranks."""
        if self.comm is None or not buffers:
            return
        arrays = [buffer.lifted() for buffer in buffers]
        for buffer, value in zip(buffers, primitives.broadcast_p(*arrays, owner=self.key, src=0), strict=True):
            buffer.assign(value)

    def begin(self, walk: tape.Walk) -> Finish | None:
        """Before a walk, add the nodes that start the buckets; return the function to call after it."""
        if not self.armed:
            return None
        last = _last_readers(walk, {id(leaf): leaf for leaf in self.leaves})
        if not last:
            return None
        self.armed = False
        return _Pass(self, walk, last).finish


class _Pass:
    """One backward pass: the buckets sent so far, and their contents."""

    def __init__(self, reducer: Reducer, walk: tape.Walk, last: dict[int, int]) -> None:
        self.reducer = reducer
        self.walk = walk
        self.reached = [id(leaf) in last for leaf in reducer.leaves]
        if not reducer.unused and not all(self.reached):
            missing = [name for name, there in zip(reducer.names, self.reached, strict=True) if not there]
            raise errors.UNUSED_PARAMETERS(
                rank=reducer.group.ranks[reducer.group.me], names=", ".join(missing), where=provenance.here()
            )
        self.departed = 0
        self.totals: list[list[Tensor]] = []
        # A bucket is sent when the oldest reader of its parameters has been visited, and after the buckets before it,
        # so that all ranks send in the same order.
        ends: dict[int, int] = {}
        oldest = _NEVER
        for position, bucket in enumerate(reducer.buckets):
            oldest = min(oldest, *(last.get(id(reducer.leaves[at]), _NEVER) for at in bucket.members))
            ends[oldest] = position
        for end, position in ends.items():
            if end != _NEVER:
                _visit(walk, end, self._depart_until(position))

    def _depart_until(self, position: int) -> Callable[[], None]:
        return lambda: self._depart(position)

    def _depart(self, position: int) -> None:
        """Start all buckets up to a position that have not been started."""
        while self.departed <= position:
            bucket = self.reducer.buckets[self.departed]
            totals = [self._total(at) for at in bucket.members]
            self.totals.append(totals)
            arrays = [total.array for total in totals]
            if MODE.flags & TRACING:
                primitives.start(arrays, self.reducer.key, self.departed)
            else:
                for earlier in self.reducer.buckets[: self.departed]:
                    earlier.progress()
                bucket.start(self.reducer.comm, arrays, in_place=True)
            self.departed += 1

    def _total(self, at: int) -> Tensor:
        """Return the gradient that `backward` would store: passed through the leaf's hooks, added to the old one."""
        leaf = self.reducer.leaves[at]
        g = self.walk.found.pop(leaf, None)
        before: Tensor | None = leaf._grad
        if g is None:
            return make(np.zeros(leaf.array.shape, leaf.dtype), None, False) if before is None else before
        g = tape.turned(tape.unwrap(g))
        for hook in list((leaf._extra or {}).get("hooks", ())):
            replaced = hook(tape.wrap(g))
            g = g if replaced is None else tape.unwrap(replaced)
        if before is None:
            wrapped: Tensor = tape.wrap(g)
            return wrapped
        before.array += g
        return before

    def finish(self, found: dict[Any, Any]) -> None:
        """After the walk, start the remaining buckets, wait for all, and store the averages as gradients."""
        reducer = self.reducer
        self._depart(len(reducer.buckets) - 1)
        used = self._used_somewhere()
        for position, (bucket, totals) in enumerate(zip(reducer.buckets, self.totals, strict=True)):
            if MODE.flags & TRACING:
                for total, average in zip(totals, primitives.wait(bucket, reducer.key, position), strict=True):
                    _store(total, average)
            else:
                bucket.finish(reducer.group, [total.array for total in totals])
            for at, total in zip(bucket.members, totals, strict=True):
                if used[at]:
                    reducer.leaves[at]._grad = total
        assert not any(leaf in found for leaf in reducer.leaves)

    def _used_somewhere(self) -> list[bool]:
        """Return for each parameter whether any rank has a gradient for it; otherwise no rank stores one."""
        if not self.reducer.unused:
            return self.reached
        pairs = zip(self.reached, self.reducer.leaves, strict=True)
        there = [reached or leaf._grad is not None for reached, leaf in pairs]
        flags = make(np.array(there), None, False)
        before, MODE.flags = MODE.flags, MODE.flags & ~TRACING  # tracing decides which ops the step has
        try:
            all_reduce(flags, ReduceOp.MAX, self.reducer.group)
        finally:
            MODE.flags = before
        return [bool(flag) for flag in flags.array]


_NEVER = 1 << 62


def _store(total: Tensor, average: Array) -> None:
    """Store an average in a gradient during tracing."""
    if isinstance(total.array, np.ndarray):
        total.array = average  # zeros of a parameter that this rank does not use
    else:
        total.array.write(average)  # a Symbol is memory too


def _last_readers(walk: tape.Walk, leaves: dict[int, Tensor]) -> dict[int, int]:
    """Return the sequence number of the oldest node that reads each reached leaf, by the leaf's id."""
    last: dict[int, int] = {}
    stack = [node for _, node in walk.heap]
    seen = set(stack)
    while stack:
        node = stack.pop()
        for parent in node.parents:
            if type(parent) is Node:
                if parent not in seen:
                    seen.add(parent)
                    stack.append(parent)
            elif parent is not None and id(parent) in leaves:
                last[id(parent)] = min(last.get(id(parent), node.seq), node.seq)
    for leaf in walk.found:
        if id(leaf) in leaves:  # it is the loss itself
            last.setdefault(id(leaf), _NEVER)
    return last


def _visit(walk: tape.Walk, end: int, call: Callable[[], None]) -> None:
    """Let a walk call a function after it has visited the node with this sequence number."""
    frame = provenance.user_frame(1)
    visitor = Custom("bucket", lambda _xp: None, joint_vjp=lambda *_args: None, register=False)
    visitor.visit = lambda _walk, _node, _g: call()
    node = record(visitor, (), (), {}, np.zeros(()), frame.f_code, frame.f_lasti)
    node.seq = end
    walk.place(node, end - 0.5)
