"""The tape's walks: cotangents from outputs to leaves, youngest node first.

A node (`node.py`) is always younger than its parents, so walking by falling sequence number is a reverse topological
order; it needs no recursion and no search beforehand. The backward walk here pushes cotangents with the vjp rules;
`tangents.py` pushes tangents the other way, over the same nodes, with the jvp rules. `mode.py` says whether ops are
recorded, `writes.py` guards saved values.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from heapq import heappop, heappush
from typing import Any

import numpy as np

from glassgrad.base import provenance
from glassgrad.engine.mode import MODE, RECORDING, TRACING, enable_grad
from glassgrad.engine.node import PICK, Freed, Node, record, unpack
from glassgrad.engine.tensor import Tensor, make
from glassgrad.engine.walks import plain_walk
from glassgrad.engine.walks.plain_walk import owned, run_plain
from glassgrad.engine.writes import MUTATIONS
from glassgrad.ops import complexes, reduce, shape
from glassgrad.ops.core import Array
from glassgrad.ops.kernels import parallel
from glassgrad.ops.views import memory_owner
from glassgrad.ops.vmap import batched
from glassgrad.ops.vmap.batched import Level

# --- the backward walk ----------------------------------------------------------------------------


def match_cotangent(g: Array, like: Array) -> Array:
    """Undo broadcasting and promotion: give the cotangent the shape and dtype of its value.

    Only this function does so; rules may return cotangents of the broadcast shape.
    """
    wanted = like.shape
    if g.shape != wanted:
        extra = g.ndim - len(wanted)
        axes = tuple(range(extra)) + tuple(
            axis for axis in range(extra, g.ndim) if wanted[axis - extra] == 1 and g.shape[axis] != 1
        )
        if axes:
            g = reduce.sum_p(g, axis=axes, keepdims=False)
        if g.shape != wanted:
            g = shape.reshape_p(g, shape=wanted)
    if g.dtype != like.dtype:
        g = shape.astype_p(g, dtype=like.dtype)
    return g


class Observer:
    """Watches a backward walk; its methods change nothing in it."""

    def rule(self, node: Node, g: Array, saved: tuple[Array, ...], position: int | None) -> None:
        """A rule of `node` is about to be applied: the one for a parent's position, or the one for all of them."""

    def sent(self, target: Any, c: Array) -> None:
        """A cotangent is about to be added to the sum of a node or leaf."""

    def left(self, node: Node) -> None:
        """All rules of `node` were applied."""


_ndarray = np.ndarray
_new = object.__new__


class Kept(list[Node]):
    """The nodes that a walk would have freed, kept for a possible second walk."""

    freed: Freed | None = None

    def free(self) -> None:
        """Free them, as a walk that keeps nothing does."""
        for node in self:
            node.saved = self.freed
            node.parents = ()


class Walk:
    """One backward pass: cotangents travel from the roots to the leaves, youngest node first.

    Args:
        retain: keep the saved values for another walk.
        create_graph: call the rules with Tensors, so that the result can be differentiated again.
        wanted: nodes and leaves whose cotangents are wanted; None means every leaf.
        observer: receives every rule and every cotangent.
    """

    __slots__ = (
        "asked",
        "batched",
        "cotangents",
        "create_graph",
        "found",
        "freed",
        "given",
        "heap",
        "kept",
        "observer",
        "owned",
        "wanted",
    )

    def __init__(
        self,
        retain: bool,
        create_graph: bool,
        wanted: Iterable[Any] | None = None,
        observer: Observer | None = None,
    ) -> None:
        self.observer = observer
        self.create_graph = create_graph
        self.batched = False  # whether cotangents may carry batches of vmap
        self.wanted = None if wanted is None else set(wanted)
        self.asked: set[Any] | None = None  # nodes and leaves that get cotangents; None means all
        self.found: dict[Any, Array] = {}
        self.heap: list[tuple[float, Node]] = []
        self.cotangents: dict[Node, Any] = {}
        self.owned: set[Any] = set()
        self.given: set[int] = set()
        self.freed: Freed | None = None
        self.kept: Kept | None = None
        if not retain:
            frame = provenance.user_frame(2)
            freed = self.freed = _new(Freed)  # without calling the class, like `record`
            freed.code, freed.lasti = frame.f_code, frame.f_lasti

    @classmethod
    def begun(
        cls,
        heap: list[tuple[float, Node]],
        cotangents: dict[Node, Array],
        found: dict[Any, Array],
        given: set[int],
        freed: Freed | None,
    ) -> Walk:
        """Return a walk to all leaves that continues from this state (`plain_walk`)."""
        walk = _new(cls)  # without calling the class, like `record`
        walk.observer = walk.wanted = walk.asked = walk.kept = None
        walk.create_graph = walk.batched = False
        walk.heap, walk.cotangents, walk.found, walk.given, walk.freed = heap, cotangents, found, given, freed
        walk.owned = set()
        return walk

    def seed(self, target: Any, g: Array) -> None:
        """Add a cotangent of an output."""
        self.given.add(id(g if type(g) is _ndarray and g.base is None else memory_owner(g)))
        if (
            type(g) is _ndarray
            and type(target) is Node
            and target not in self.cotangents
            and g.dtype is target.dtype
            and g.shape == target.shape
        ):
            self.cotangents[target] = g  # like `accumulate`
            heappush(self.heap, (-target.seq, target))
        else:
            self.accumulate(target, g)

    def place(self, node: Node, at: float) -> None:
        """Schedule a visit of a node without a cotangent, between those with sequence numbers above and below `at`."""
        self.cotangents[node] = None
        heappush(self.heap, (-at, node))

    def run(self) -> dict[Any, Array]:
        """Walk; return the cotangent of every leaf reached, or of every wanted node."""
        wanted = self.wanted or ()
        needed = None if self.wanted is None else self._needed(self.wanted)
        heap, cotangents = self.heap, self.cotangents
        while heap:
            node = heappop(heap)[1]
            g = cotangents.pop(node)
            if node.hooks is not None:
                g = self.run_hooks(node, g)
            if needed is not None:
                if node in wanted:
                    self.found[node] = self._own(g)
                if node not in needed:
                    continue
            saved = node.saved
            if type(saved) is not tuple:
                saved = unpack(node)
            elif node.seq < MUTATIONS.latest:
                MUTATIONS.check(node)
            self.apply_rules(node, g, saved)
            if self.observer is not None:
                self.observer.left(node)
            if node.prim.frees or node.prim.vjps is None:
                self.release(node)
        return self.found

    def release(self, node: Node) -> None:
        """Free the saved values of a node, or keep them for a second walk."""
        if self.kept is not None:
            self.kept.append(node)
        elif self.freed is not None:
            node.saved = self.freed
            node.parents = ()

    def apply_rules(self, node: Node, g: Array, saved: tuple[Array, ...]) -> None:
        """Turn the cotangent of a node's result into those of its parents."""
        prim, parents, asked = node.prim, node.parents, self.asked
        if asked is not None:  # for example no cotangents of a layer's weights if only its input's gradient is wanted
            parents = tuple([parent if parent in asked else None for parent in parents])
        if self.create_graph:
            saved = saved_tensors(node, saved)
        observer, params = self.observer, node.params
        if observer is not None:
            observer.rule(node, g, saved, None)
        if prim.vjps is not None:
            for position, (rule, parent) in enumerate(zip(prim.vjps, parents, strict=False)):
                if parent is None or rule is None:
                    continue
                if observer is not None and len(parents) > 1:
                    observer.rule(node, g, saved, position)
                c = rule(g, *saved, **params)
                if c is not None:
                    self.accumulate(parent, c)
            return
        if prim.visit is not None and prim.visit(self, node, g) is not NotImplemented:
            return
        self._apply_joint(node, g, saved, parents)

    def _apply_joint(self, node: Node, g: Array, saved: tuple[Array, ...], parents: Sequence[Any]) -> None:
        """Apply the rule for all arguments at once; the joint rule of a fused primitive takes only plain arrays."""
        prim, needs = node.prim, [parent is not None for parent in parents]
        if prim.decompose is None or not (self.create_graph or self.batched):
            assert prim.joint_vjp is not None
            found = prim.joint_vjp(g, needs, *saved, **node.params)
        elif prim.vjp_in_ops is None or self.batched:
            self._step_decomposed(node, g, saved, parents)
            return
        else:
            found = prim.vjp_in_ops(g, needs, *saved[1:], **node.params)
        for parent, c in zip(parents, found, strict=True):
            if parent is not None and c is not None:
                self.accumulate(parent, c)

    def _step_decomposed(self, node: Node, g: Array, saved: Sequence[Array], parents: Sequence[Any]) -> None:
        """Differentiate the decomposition of a fused primitive: in tensors, so the result is differentiable again.

        `parents` are the node's, None for parents that get no cotangent.
        """
        inputs = [alias(x) for x in saved[1:]]
        with enable_grad():
            y = node.prim.decomposed(*inputs, **node.params)
        asked = [x if parent is not None else None for x, parent in zip(inputs, parents, strict=True)]
        walk = Walk(True, self.create_graph, [x.node for x in asked if x is not None], self.observer)
        if self.batched:
            walk.meet_batches()
        for part, c in zip(y, g, strict=True) if node.prim.multiple else ((y, g),):
            if c is not None and part.node is not None:
                walk.seed(part.node, c)
        found = walk.run()
        for x, parent in zip(asked, parents, strict=True):
            if x is not None and x.node in found:
                self.accumulate(parent, found[x.node])

    def deliver_pick(self, node: Node, g: Array) -> None:
        """Put the cotangent of one result of several into its slot at the common node."""
        (parent,) = node.parents
        slots = self.cotangents.get(parent)
        if slots is None:
            slots = self.cotangents[parent] = [None] * node.params["count"]
            heappush(self.heap, (-parent.seq, parent))
        position = node.params["index"]
        # Under create_graph one result may have several pick nodes.
        slots[position] = g if slots[position] is None else slots[position] + g

    def accumulate(self, target: Any, c: Array) -> None:
        """Add a cotangent to the sum that a node or leaf has accumulated."""
        if self.observer is not None:
            self.observer.sent(target, c)
        if self.batched:
            c = _without_batches(target, c)
        is_node = type(target) is Node
        like = target if is_node else target.array  # reading the properties of a Tensor would cost a call each
        if c.shape != like.shape or (c.dtype is not like.dtype and c.dtype != like.dtype):
            c = match_cotangent(c, target)
        store: dict[Any, Array] = self.cotangents if is_node else self.found
        before = store.get(target)
        if before is None:
            if is_node:
                store[target] = c
                heappush(self.heap, (-target.seq, target))
            elif type(c) is np.ndarray and c.base is None and id(c) not in self.given:
                store[target] = c  # like `_own`
                self.given.add(id(c))
            else:
                store[target] = self._own(c)
        elif target in self.owned and type(c) is np.ndarray:
            # The sum is in a buffer that only this walk uses, so it is updated in place.
            store[target] = before.__iadd__(c) if c.size < parallel.LARGE else parallel.add(before, c, before)
        else:
            large = type(c) is np.ndarray and c.size >= parallel.LARGE
            total = store[target] = parallel.add(before, c) if large else before + c
            if type(total) is np.ndarray and total.ndim:
                self.owned.add(target)
            else:
                self.owned.discard(target)

    def _own(self, g: Array) -> Array:
        """Return `g`, or a copy if its memory is a seed's or was returned before: each leaf owns its gradient."""
        if type(g) is _ndarray:
            return owned(g, self.given)
        if MODE.flags & TRACING:  # a write to the gradient of one leaf must not reach that of another
            g = shape.copy_p(g) if id(g) in self.given else g
            self.given.add(id(g))
        return g

    @staticmethod
    def is_running(level: Level) -> bool:
        """Tell whether this walk runs inside this call of vmap."""
        return level in MODE.levels

    def meet_batches(self) -> None:
        """Note that cotangents may now carry vmap batches, which `accumulate` must then match too."""
        self.batched = True

    def run_hooks(self, node: Node, g: Array) -> Array:
        """Show a complete cotangent to the hooks of its tensor, which may replace it."""
        for hook in list(node.hooks or ()):
            replaced = hook(wrap(turned(g)))
            if replaced is not None:
                g = turned(replaced if self.create_graph else unwrap(replaced))
        return g

    def _needed(self, wanted: set[Any]) -> set[Any]:
        """Return the nodes on a path from the roots to the wanted ones; record both in `asked`."""
        # A node is younger than its parents, so none that is older than all wanted ones leads to any. Without this, a
        # solver that calls `grad` in each step would search the history of all earlier steps each time.
        oldest = min((one.seq if type(one) is Node else 0 for one in wanted), default=0)
        reachable: dict[Node, None] = {}
        stack = [node for _, node in self.heap]
        while stack:
            node = stack.pop()
            if node not in reachable:
                reachable[node] = None
                if type(node.saved) is Freed:
                    unpack(node)  # raises, because its parents are no longer known
                stack.extend([one for one in node.parents if type(one) is Node and one.seq >= oldest])
        needed: set[Any] = set()
        for node in sorted(reachable, key=_sequence):
            if any(parent in needed or parent in wanted for parent in node.parents if parent is not None):
                needed.add(node)
        self.asked = needed | wanted
        return needed


plain_walk.begun = Walk.begun


def _without_batches(target: Any, c: Array) -> Array:
    """Sum a cotangent over the batches of vmap that its target does not have.

    Batches of running vmap calls are not summed: inside such a call everything, including this gradient, belongs to one
    example.
    """
    for level in levels_of(c):
        if level not in MODE.levels and level not in levels_of(target):
            c = reduce.sum_p(batched.exit_p(c, level=level, axis=0), axis=(0,), keepdims=False)
    return c


def levels_of(value: Array) -> tuple[Level, ...]:
    """Return the batches of vmap that a node's result, a tensor or an array has in addition to its shape."""
    if type(value) is Node:
        return getattr(value, "levels", ())
    return batched.levels_of(unwrap(value))


def _sequence(node: Node) -> int:
    return node.seq


# Weak references to functions that receive every walk to all leaves before it begins (`distributed/reducer.py`), and
# may return a function that receives the leaves' gradients after it.
BEFORE_WALK: list[Any] = []


def backward(
    roots: Sequence[Any],
    gradients: Sequence[Array],
    *,
    retain_graph: bool,
    create_graph: bool,
    wanted: Sequence[Any] | None = None,
    kept: Kept | None = None,
) -> dict[Any, Array]:
    """Walk back from `roots` (nodes or leaves); return {leaf or wanted node: cotangent}.

    If `kept` is given, it receives the nodes instead of freeing them; its `free` frees them later.
    """
    walk = Walk(retain_graph, create_graph, wanted, MODE.observer)
    if kept is not None:
        walk.kept, kept.freed = kept, walk.freed
    before, walk.batched = MODE.flags, bool(MODE.levels)
    # Cotangents may be Symbols during tracing, Tensors under create_graph, batches inside vmap.
    plain = wanted is None and not (create_graph or walk.batched or before & TRACING or walk.observer)
    MODE.flags = before | RECORDING if create_graph else before & ~RECORDING
    try:
        for root, g in zip(roots, gradients, strict=False):  # of equal length; checking it takes time
            if g.dtype.kind == "c":
                g = turned(g)
            walk.seed(root, wrap(g) if create_graph else g)
        begins = [held() for held in BEFORE_WALK] if BEFORE_WALK and wanted is None else ()
        ends = [begin(walk) for begin in begins if begin is not None]
        found = run_plain(walk) if plain else walk.run()
        for g in found.values():
            if g.dtype.kind == "c":
                found = {place: turned(g) for place, g in found.items()}
                break
        for end in ends:
            if end is not None:
                end(found)
        return found
    finally:
        MODE.flags = before


def turned(g: Array) -> Array:
    """Convert a cotangent between PyTorch's convention and that of the rules: the conjugate, both ways.

    For a complex z = a + ib the rules use dL/da - i dL/db, so that rules of holomorphic functions stay unchanged;
    PyTorch shows dL/da + i dL/db, the direction of steepest ascent. Real cotangents stay the same.
    """
    return complexes.conj_p(g) if g.dtype.kind == "c" else g


# --- between arrays and tensors -------------------------------------------------------------------


def wrap(array: Array) -> Array:
    """Return the array as a Tensor; Tensors pass through."""
    if isinstance(array, Tensor):
        return array
    # NumPy's rules on 0-d arrays return scalars.
    return make(np.asarray(array) if isinstance(array, np.generic) else array, None, False)


def unwrap(value: Array) -> Array:
    """Return the array of a Tensor; arrays pass through."""
    return value.array if isinstance(value, Tensor) else value


def pick(node: Node, part: Array, position: int, count: int) -> Tensor:
    """Return one of several results, with its own node, whose parent is the common one."""
    if not hasattr(part, "shape"):
        part = np.asarray(part)
    if part.dtype.kind not in "fcV":
        return make(part, None, False)
    params = {"index": position, "count": count}
    picked = record(PICK, (node,), (None, node), params, part, node.code, node.lasti)
    if type(part) is not np.ndarray:
        picked.levels = levels_of(part)
    return make(part, picked, True)


def saved_tensors(node: Node, saved: tuple[Array, ...]) -> tuple[Array, ...]:
    """Return ``(y, *x)`` of a node with Tensors instead of arrays that have a history."""
    prim = node.prim
    y = saved[0]
    if prim.saves_y and prim.decompose is None:
        if prim.multiple:
            y = tuple(pick(node, part, position, len(y)) for position, part in enumerate(y))
        else:
            y = make(y, node, True)
    if not prim.saves_x and prim.saves_from is None:
        return (y, *saved[1:])
    result = [y]
    for x, parent in zip(saved[1:], node.parents, strict=True):
        if parent is None or x is parent:  # no history, or a placeholder
            result.append(x)
        else:
            result.append(make(x, parent, True) if type(parent) is Node else parent)
    return tuple(result)


def alias(value: Array) -> Array:
    """Return a new Tensor with the same value, connected to the old one by an identity node if that has a history."""
    if not isinstance(value, Tensor):
        if not hasattr(value, "dtype") or value.dtype.kind not in "fcV":
            return value
        value = make(value, None, False)
    array = value.lifted()
    frame = provenance.user_frame(1)
    parent = (value.node if value.node is not None else value) if value._tracks else None
    node = record(shape.alias_p, (parent,), (None, parent), {}, array, frame.f_code, frame.f_lasti)
    if type(array) is not np.ndarray:
        node.levels = levels_of(array)
    return make(array, node, True)
