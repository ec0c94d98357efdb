"""The tape: what was computed, and the walks over it.

A `Node` is one application of a primitive that somebody may want the derivative of. Its parents are
other nodes or leaf tensors, never the tensors in between, so values that no rule saves are freed at
once and no reference cycle exists. Nodes carry a sequence number; since a node is always younger than
its parents, walking by falling number is a reverse topological order and needs no recursion and no
search beforehand.

The backward walk pushes cotangents from outputs to leaves with the vjp rules; `forward_walk` pushes
tangents the other way, over the same nodes, with the jvp rules.
"""

from __future__ import annotations

import functools
import heapq
import itertools
import threading
import weakref
from collections.abc import Callable, Iterable, Sequence
from types import CodeType
from typing import Any, TypeVar

import numpy as np

from glassgrad import errors, provenance
from glassgrad.ops import core, reduce, shape
from glassgrad.ops.core import Array, Primitive

_Function = TypeVar("_Function", bound=Callable[..., Any])

next_sequence = itertools.count(1).__next__


# --- the mode of the thread -----------------------------------------------------------------------

RECORDING = 1  # ops on tensors that require a gradient are recorded
TRACING = 2  # a compiler's tracer is running: tensors are lifted to Symbols at first touch


class _Mode(threading.local):
    """What the current thread does with ops; one read of `flags` decides in the hot path."""

    flags = RECORDING
    lift: Callable[[Any], None] | None = None  # tensor -> its array becomes a Symbol
    lift_number: Callable[[dict[str, Any], str], Any] | None = None  # an option -> a Symbol


MODE = _Mode()


class _Switch:
    """A context manager and decorator that sets whether ops are recorded in this thread."""

    recording: bool

    def __init__(self, mode: bool | None = None) -> None:
        if mode is not None:
            self.recording = bool(mode)
        self._before: list[int] = []

    def __enter__(self) -> None:
        self._before.append(MODE.flags)
        MODE.flags = MODE.flags | RECORDING if self.recording else MODE.flags & ~RECORDING

    def __exit__(self, *_exception: object) -> None:
        MODE.flags = self._before.pop()

    def __call__(self, function: _Function) -> _Function:
        switch = type(self)

        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            with switch(self.recording):
                return function(*args, **kwargs)

        return wrapped  # type: ignore[return-value]  # the wrapper has the signature of what it wraps


class no_grad(_Switch):  # noqa: N801 - PyTorch's name
    """Ops inside are not recorded: a context manager and a decorator, for the current thread only.

    Example:
        >>> import glassgrad as gg
        >>> w = gg.ones(2, requires_grad=True)
        >>> with gg.no_grad():
        ...     print((w * 2).requires_grad)
        False
    """

    recording = False

    def __new__(cls, *args: Any) -> Any:
        # `@no_grad` without brackets is accepted too.
        if args and callable(args[0]):
            return super().__new__(cls).__call__(args[0])
        return super().__new__(cls)


class enable_grad(_Switch):  # noqa: N801 - PyTorch's name
    """Ops inside are recorded again, also within `no_grad`."""

    recording = True


class set_grad_enabled(_Switch):  # noqa: N801 - PyTorch's name
    """Set recording on or off, at once and, as a context manager, until the block ends."""

    def __init__(self, mode: bool) -> None:
        super().__init__(mode)
        self._outer = MODE.flags
        super().__enter__()
        self._before = [self._outer]

    def __enter__(self) -> None:
        return None


def is_grad_enabled() -> bool:
    """Tell whether ops on tensors that require gradients are recorded in this thread."""
    return bool(MODE.flags & RECORDING)


# --- nodes ----------------------------------------------------------------------------------------


class Node:
    """One recorded application of a primitive.

    `saved` is ``(y, *x)`` as the rules take it, with placeholders for what `prim` does not save, or a
    `Freed` once a backward walk has used it up. `code` and `lasti` say where in the user's code.
    """

    __slots__ = (
        "__weakref__",
        "code",
        "dtype",
        "hooks",
        "lasti",
        "params",
        "parents",
        "prim",
        "saved",
        "seq",
        "shape",
    )

    hooks: list[Callable[[Any], Any]] | None

    def __init__(
        self,
        prim: Primitive,
        parents: tuple[Any, ...],
        saved: Any,
        params: dict[str, Any],
        result: Array,
        code: CodeType,
        lasti: int,
    ) -> None:
        self.prim = prim
        self.parents = parents
        self.saved = saved
        self.params = params
        self.shape: tuple[int, ...] = result.shape
        self.dtype: np.dtype[Any] = result.dtype
        self.code = code
        self.lasti = lasti
        self.hooks = None
        self.seq: int = next_sequence()

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def place(self) -> provenance.Place:
        """Where in the user's code the op was called."""
        return provenance.resolve(self.code, self.lasti)

    @property
    def name(self) -> str:
        return self.prim.name

    @property
    def next_functions(self) -> tuple[tuple[Any, int], ...]:
        """The parents, in the form PyTorch gives them."""
        return tuple((parent, 0) for parent in self.parents)

    def __repr__(self) -> str:
        place = self.place
        return f"<{self.prim.name} at {place}: {place.source}>"


class Freed:
    """Stands in `Node.saved` after the graph was freed: knows which backward() call did it."""

    def __init__(self, code: CodeType, lasti: int) -> None:
        self.code = code
        self.lasti = lasti

    @property
    def place(self) -> provenance.Place:
        return provenance.resolve(self.code, self.lasti)


def _pick_vjp(*_args: Any, **_params: Any) -> None:
    """`pick` has no arithmetic; the walks recognise the primitive itself."""


PICK = core.Custom(
    "pick",
    lambda _xp, *parts, index: parts[index],
    joint_vjp=_pick_vjp,
    formula="(x1, x2, ...)[index]",
    notes="selects one result of a primitive that has several",
)


def describe(tensor: Any, node: Node | None = None) -> str:
    """Name a tensor for a message: the user's variable if known, else what made it."""
    node = node if node is not None else tensor.node
    if node is None:
        return f"the tensor of shape {tuple(tensor.shape)}"
    variable = node.place.variable
    return f"'{variable}'" if variable else f"the result of {node.prim.name}"


# --- in-place writes ------------------------------------------------------------------------------


class _Mutations:
    """The log of in-place writes: which memory, when, where.

    Saved arrays are checked against it only when some write is younger than the oldest node of a walk,
    so a training loop, whose writes all happen between the steps, pays one comparison.
    """

    def __init__(self) -> None:
        self.latest = 0
        self.log: dict[int, tuple[Any, int, CodeType, int]] = {}

    def record(self, *arrays: Any, frame: Any = None) -> None:
        """Note that the memory of `arrays` is being overwritten from the user's current line."""
        frame = frame or provenance.user_frame(1)
        code, lasti = frame.f_code, frame.f_lasti
        self.latest = latest = next_sequence()
        log = self.log
        if len(log) > 4096:
            self.log = log = {key: entry for key, entry in log.items() if entry[0]() is not None}
        for array in arrays:
            owner = array if array.base is None else memory_owner(array)
            known = log.get(id(owner))
            if known is not None and known[0]() is owner:
                log[id(owner)] = (known[0], latest, code, lasti)
            else:
                log[id(owner)] = (weakref.ref(owner), latest, code, lasti)

    def check(self, node: Node) -> None:
        """Raise when something that `node` saved was overwritten after it was saved."""
        for position, array in enumerate(node.saved):
            if not isinstance(array, np.ndarray):
                continue
            owner = memory_owner(array)
            entry = self.log.get(id(owner))
            if entry is None or entry[1] < node.seq or entry[0]() is not owner:
                continue
            written = provenance.resolve(entry[2], entry[3])
            operands = node.place.operands
            if position == 0:
                what = describe(None, node)
            elif position <= len(operands):
                what = f"'{operands[position - 1]}'"
            else:
                what = f"argument {position} of {node.prim.name}"
            name = what.strip("'") if what.startswith("'") else "h"
            raise errors.SAVED_OVERWRITTEN(
                what=what, op=node.prim.name, saved=node.place, written=written, hint=f"{name} = {name} + ..."
            )


def memory_owner(array: Any) -> Any:
    """Return the array that owns the memory which `array` is a view of."""
    while isinstance(getattr(array, "base", None), np.ndarray):
        array = array.base
    return array


MUTATIONS = _Mutations()


# --- the backward walk ----------------------------------------------------------------------------


def match_cotangent(g: Array, like: Any) -> Array:
    """Undo broadcasting and promotion: give the cotangent the shape and dtype of what it belongs to.

    This is the one place where it happens; rules may return cotangents of the broadcast shape.
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


class Walk:
    """One backward pass: cotangents travel from the roots to the leaves, youngest node first.

    Args:
        retain: keep the saved values for another walk.
        create_graph: call the rules with Tensors, so that the result can be differentiated again.
        wanted: nodes and leaves whose cotangents are asked for; None means every leaf.
    """

    def __init__(self, retain: bool, create_graph: bool, wanted: Iterable[Any] | None = None) -> None:
        self.retain = retain
        self.create_graph = create_graph
        self.wanted = None if wanted is None else set(wanted)
        self.found: dict[Any, Any] = {}
        self.heap: list[tuple[int, Node]] = []
        self.cotangents: dict[Node, Any] = {}
        self.owned: set[Any] = set()
        frame = provenance.user_frame(1)
        self.freed = Freed(frame.f_code, frame.f_lasti)

    def seed(self, target: Any, g: Array) -> None:
        """Add a cotangent of an output."""
        self._accumulate(target, g)

    def run(self) -> dict[Any, Any]:
        """Walk; return the cotangent of every leaf reached, or of what was wanted."""
        needed = None if self.wanted is None else self._needed()
        heap, cotangents = self.heap, self.cotangents
        while heap:
            node = heapq.heappop(heap)[1]
            g = cotangents.pop(node)
            if node.hooks is not None:
                g = self._run_hooks(node, g)
            if needed is not None:
                if node in self.wanted:  # type: ignore[operator]  # wanted is a set here
                    self.found[node] = g
                if node not in needed:
                    continue
            if type(node.saved) is Freed:
                raise errors.BACKWARD_TWICE(what=describe(None, node), built=node.place, freed=node.saved.place)
            if node.seq < MUTATIONS.latest:
                MUTATIONS.check(node)
            self._step(node, g)
            if not self.retain:
                node.saved = self.freed
                node.parents = ()
        self._separate()
        return self.found

    def _step(self, node: Node, g: Array) -> None:
        prim = node.prim
        saved = node.saved
        if prim is PICK:
            self._deliver_pick(node, g)
            return
        if self.create_graph:
            if prim.decompose is not None:
                self._step_decomposed(node, g)
                return
            saved = saved_tensors(node)
        params = node.params
        rules = prim.vjps
        if rules is not None:
            for position, parent in enumerate(node.parents):
                if parent is not None:
                    rule = rules[position]
                    if rule is not None:
                        c = rule(g, *saved, **params)
                        if c is not None:
                            self._accumulate(parent, c)
            return
        assert prim.joint_vjp is not None
        needs = tuple(parent is not None for parent in node.parents)
        for parent, c in zip(node.parents, prim.joint_vjp(g, needs, *saved, **params), strict=True):
            if parent is not None and c is not None:
                self._accumulate(parent, c)

    def _step_decomposed(self, node: Node, g: Array) -> None:
        """Differentiate the decomposition of a fused primitive, so that the result is differentiable."""
        inputs = [alias(x) for x in saved_tensors(node)[1:]]
        with enable_grad():
            y = node.prim.decompose(*inputs, **node.params)  # type: ignore[misc]  # fused: it has one
        asked = [x if parent is not None else None for x, parent in zip(inputs, node.parents, strict=True)]
        walk = Walk(True, True, [x.node for x in asked if x is not None])
        for part, c in zip(y, g, strict=True) if node.prim.multiple else ((y, g),):
            if c is not None and part.node is not None:
                walk.seed(part.node, c)
        found = walk.run()
        for x, parent in zip(asked, node.parents, strict=True):
            if x is not None and x.node in found:
                self._accumulate(parent, found[x.node])

    def _deliver_pick(self, node: Node, g: Array) -> None:
        (parent,) = node.parents
        slots = self.cotangents.get(parent)
        if slots is None:
            slots = self.cotangents[parent] = [None] * node.params["count"]
            heapq.heappush(self.heap, (-parent.seq, parent))
        position = node.params["index"]
        # Under create_graph one result may have several pick nodes.
        slots[position] = g if slots[position] is None else slots[position] + g

    def _accumulate(self, target: Any, c: Array) -> None:
        if c.shape != target.shape or c.dtype != target.dtype:
            c = match_cotangent(c, target)
        is_node = type(target) is Node
        store: dict[Any, Any] = self.cotangents if is_node else self.found
        before = store.get(target)
        if before is None:
            store[target] = c
            if is_node:
                heapq.heappush(self.heap, (-target.seq, target))
        elif target in self.owned:
            # The sum lives in a buffer that only this walk knows, so it may grow in place.
            before += c
            store[target] = before
        else:
            store[target] = before + c
            if type(before) is np.ndarray and before.ndim:
                self.owned.add(target)

    def _run_hooks(self, node: Node, g: Array) -> Array:
        for hook in list(node.hooks or ()):
            replaced = hook(wrap(g))
            if replaced is not None:
                g = replaced if self.create_graph else unwrap(replaced)
        return g

    def _needed(self) -> set[Any]:
        """Return the nodes on a path from the roots to what is wanted."""
        wanted = self.wanted or set()
        reachable: dict[Node, None] = {}
        stack = [node for _, node in self.heap]
        while stack:
            node = stack.pop()
            if node not in reachable:
                reachable[node] = None
                stack.extend(parent for parent in node.parents if type(parent) is Node)
        needed: set[Any] = set()
        for node in sorted(reachable, key=_sequence):
            if any(parent in needed or parent in wanted for parent in node.parents if parent is not None):
                needed.add(node)
        return needed

    def _separate(self) -> None:
        """Copy cotangents that share memory, so that each leaf owns its gradient."""
        seen: set[int] = set()
        for target, g in self.found.items():
            if type(g) is np.ndarray and (id(g) in seen or g.base is not None or not g.flags.writeable):
                g = self.found[target] = g.copy()
            seen.add(id(g))


def _sequence(node: Node) -> int:
    return node.seq


def backward(
    roots: Sequence[Any],
    gradients: Sequence[Array],
    *,
    retain_graph: bool,
    create_graph: bool,
    wanted: Sequence[Any] | None = None,
) -> dict[Any, Any]:
    """Walk back from `roots` (nodes or leaves); return {leaf or wanted node: cotangent}."""
    walk = Walk(retain_graph, create_graph, wanted)
    seeds = {id(g) for g in gradients}
    if not create_graph:
        for root, g in zip(roots, gradients, strict=True):
            walk.seed(root, g)
        with no_grad():
            found = walk.run()
    else:
        with enable_grad():
            for root, g in zip(roots, gradients, strict=True):
                walk.seed(root, g)
            found = walk.run()
    for target, g in found.items():
        if id(g) in seeds and type(g) is np.ndarray:
            found[target] = g.copy()
    return found


# --- the forward walk -----------------------------------------------------------------------------


def forward_walk(outputs: Sequence[Any], inputs: dict[Any, Array]) -> list[Any]:
    """Push tangents of `inputs` (nodes or leaves) through the tape; return the tangents of `outputs`.

    The jvp of recorded computation: nodes are visited oldest first. Tangents of outputs that do not
    depend on the inputs are None.
    """
    reachable: set[Node] = set()
    stack = [node for node in outputs if type(node) is Node]
    while stack:
        node = stack.pop()
        if node in reachable or node in inputs:
            continue
        if type(node.saved) is Freed:
            raise errors.BACKWARD_TWICE(what=describe(None, node), built=node.place, freed=node.saved.place)
        reachable.add(node)
        stack.extend(parent for parent in node.parents if type(parent) is Node)
    tangents: dict[Any, Any] = dict(inputs)
    for node in sorted(reachable, key=_sequence):
        incoming = [None if parent is None else tangents.get(parent) for parent in node.parents]
        if any(t is not None for t in incoming):
            tangents[node] = _jvp_of(node, incoming)
    return [tangents.get(node) for node in outputs]


def _jvp_of(node: Node, incoming: list[Any]) -> Any:
    prim = node.prim
    if prim is PICK:
        return incoming[0][node.params["index"]]
    if prim.decompose is not None:
        return _jvp_decomposed(node, incoming)
    saved = saved_tensors(node)
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


def _jvp_decomposed(node: Node, incoming: list[Any]) -> Any:
    inputs = [alias(x) for x in saved_tensors(node)[1:]]
    with enable_grad():
        y = node.prim.decompose(*inputs, **node.params)  # type: ignore[misc]  # fused: it has one
    seeds = {x.node: t for x, t in zip(inputs, incoming, strict=True) if t is not None}
    parts = list(y) if node.prim.multiple else [y]
    tangents = forward_walk([part.node for part in parts], seeds)
    return tangents if node.prim.multiple else tangents[0]


# --- between arrays and tensors -------------------------------------------------------------------
# tensor.py, which stands above this file, fills these in.


def wrap(array: Array) -> Any:
    """Return the array as a Tensor; Tensors pass through."""
    return HOOKS.wrap(array)


def unwrap(value: Any) -> Array:
    """Return the array of a Tensor; arrays pass through."""
    return HOOKS.unwrap(value)


def saved_tensors(node: Node) -> list[Any]:
    """Return ``(y, *x)`` of a node with Tensors in place of the arrays that have a history."""
    result: list[Any] = [node.saved[0]]
    if node.prim.saves_y and node.prim.decompose is None and not node.prim.multiple:
        result[0] = HOOKS.tensor_of(node.saved[0], node)
    elif node.prim.multiple and node.prim.saves_y and node.prim.decompose is None:
        result[0] = HOOKS.outputs_of(node)
    for x, parent in zip(node.saved[1:], node.parents, strict=True):
        if parent is None or not node.prim.saves_x:
            result.append(x)
        else:
            result.append(HOOKS.tensor_of(x, parent) if type(parent) is Node else parent)
    return result


def alias(value: Any) -> Any:
    """Return a new Tensor with the same value, connected to the old one by an identity node."""
    return HOOKS.alias(value)


class _Hooks:
    wrap: Callable[[Any], Any]
    unwrap: Callable[[Any], Any]
    tensor_of: Callable[[Any, Node], Any]
    outputs_of: Callable[[Node], tuple[Any, ...]]
    alias: Callable[[Any], Any]


HOOKS = _Hooks()
