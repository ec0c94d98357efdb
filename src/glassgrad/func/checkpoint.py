"""Checkpoints: recompute instead of store (Chen et al. 2016, "Training deep nets with sublinear memory cost").

A checkpointed call is recorded like any other, but its nodes drop their saved values. When the backward pass
needs the first of them, the function runs again and the values of that run are handed out. The tape itself is
unchanged, so higher derivatives, closures and nested checkpoints need nothing special.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from glassgrad import errors
from glassgrad.base import provenance
from glassgrad.engine import random, tree
from glassgrad.engine.mode import MODE, TRACING, WATCHED, enable_grad, is_grad_enabled
from glassgrad.engine.node import Node
from glassgrad.engine.saved_tensors import Watcher, computed_by
from glassgrad.engine.tensor import Tensor
from glassgrad.engine.tree import Nested
from glassgrad.engine.writes import MUTATIONS
from glassgrad.ops.core import REGISTRY, Array, Primitive
from glassgrad.ops.views import memory_owner

Function = Callable[..., Any]


def checkpoint(
    function: Function,
    *args: Any,
    keep: Collection[str] = (),
    preserve_rng_state: bool = True,
    use_reentrant: bool | None = None,
    **kwargs: Any,
) -> Nested:
    """Return ``function(*args, **kwargs)`` and recompute its saved values when the backward pass needs them.

    Inside a compiled function the values are recomputed in native code and random numbers are drawn once. Of nested
    calls, the outermost decides which values are kept.

    Args:
        function: called now and once more in the backward pass; it must do the same both times.
        keep: the policy: names of primitives whose results are kept, so that they run only once. Naming
            the expensive ones ("matmul", "linear", "conv2d") saves most of the time and half the memory.
        preserve_rng_state: whether the second run draws the same random numbers.
        use_reentrant: accepted for compatibility with PyTorch; there is only one variant, without restrictions.

    Returns:
        what `function` returns, with the shapes and dtypes that it gives.

    Raises:
        AutogradError: in the backward pass, if the second run differed from the first, an
            argument was overwritten in between, or both runs wrote to the same memory in place.

    Example:
        >>> import glassgrad as gg
        >>> from glassgrad.checkpoint import checkpoint
        >>> x = gg.tensor([1.0, 2.0], requires_grad=True)
        >>> checkpoint(lambda x: (x * x).sin().sum(), x).backward()
    """
    if not is_grad_enabled():
        return function(*args, **kwargs)  # nothing is stored
    unknown = set(keep) - set(REGISTRY)
    if unknown:
        raise errors.CHECKPOINT_KEEP(given=sorted(unknown), where=provenance.here())
    if MODE.flags & TRACING:
        return _traced(function, args, kwargs, frozenset(keep))
    segment = _Segment(function, args, kwargs, frozenset(keep), preserve_rng_state)
    with segment:
        return function(*args, **kwargs)


@dataclass(eq=False)
class TracedPart:
    """A checkpointed call inside a compiled function, as a mark on its instructions (`compile.plan.recompute`)."""

    keep: frozenset[str]


def _traced(function: Function, args: tuple[Any, ...], kwargs: dict[str, Any], keep: frozenset[str]) -> Nested:
    """Mark the instructions that a call adds to the program; of nested calls, the outermost decides."""
    before = MODE.part
    if before is None:
        MODE.part = TracedPart(keep | {"matmul"} if "linear" in keep else keep)
    try:
        return function(*args, **kwargs)
    finally:
        MODE.part = before


def checkpoint_sequential(
    functions: Any,
    segments: int | None = None,
    input: Array = None,
    *,
    use_reentrant: bool | None = None,
    **options: Any,
) -> Nested:
    """Apply layers one after the other, checkpointed in segments.

    There are `segments` of equal length, as in PyTorch, or by default about sqrt(2 n) of decreasing length: when
    the long first ones are recomputed, the inputs of the later ones are already freed.
    The last segment is not checkpointed. `options` go to `checkpoint`.

    Returns:
        what the last layer returns, with the shape and dtype that it gives.

    Example:
        >>> import glassgrad as gg
        >>> from glassgrad.checkpoint import checkpoint_sequential
        >>> layers = [gg.nn.Linear(4, 4) for _ in range(16)]
        >>> checkpoint_sequential(layers, None, gg.ones(2, 4)).shape
        (2, 4)
    """
    layers = list(functions.children()) if hasattr(functions, "children") else list(functions)
    lengths = _lengths(len(layers)) if segments is None else _equal_lengths(len(layers), segments)
    start = 0
    for length in lengths:
        chain = _Chain(layers[start : start + length])
        start += length
        input = chain(input) if start == len(layers) else checkpoint(chain, input, **options)
    return input


class _Chain:
    """Layers applied one after the other."""

    def __init__(self, layers: Sequence[Function]) -> None:
        self.layers = layers

    def __call__(self, x: Nested) -> Nested:
        for layer in self.layers:
            x = layer(x)
        return x


def _lengths(count: int) -> list[int]:
    """Cut `count` layers into segments of decreasing length, k, k-1, ..., 1 with k(k+1)/2 about `count`."""
    longest = math.ceil((math.sqrt(8 * count + 1) - 1) / 2)
    lengths = []
    while count > 0:
        lengths.append(min(longest, count))
        count -= lengths[-1]
        longest -= 1
    return lengths


def _equal_lengths(count: int, segments: int) -> list[int]:
    if not 1 <= segments <= max(count, 1):
        raise errors.CHECKPOINT_SEGMENTS(given=segments, count=count, where=provenance.here())
    size = count // segments
    return [size] * (segments - 1) + [count - size * (segments - 1)]


# --- one checkpointed call ----------------------------------------------------------------------------


class _Segment(Watcher):
    """One checkpointed call: the function, the state it ran in, and the nodes that it recorded."""

    def __init__(
        self,
        function: Function,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        keep: frozenset[str],
        random_state: bool,
    ) -> None:
        self.function, self.args, self.kwargs = function, args, kwargs
        self.keep = keep
        self.kept: list[Array] = []
        self.prims: list[Primitive] = []
        self.random_state = random.get_states() if random_state else {}
        self.levels = MODE.levels
        self.saved: list[Array] = []
        frame = provenance.user_frame(1)
        self.place = frame.f_code, frame.f_lasti  # a reference to the frame would keep its locals alive
        self.began = MUTATIONS.latest
        self.written: list[Array] = []

    def __exit__(self, *exception: object) -> None:
        super().__exit__(*exception)
        self.written = MUTATIONS.owners_since(self.began)

    def note(self, node: Node) -> None:
        """Replace the values that the node saves."""
        node.saved = _Later(self, len(self.prims))
        self.prims.append(node.prim)

    def stand_in(self, prim: Primitive) -> Primitive:
        """Keep the results of the primitives that the policy names."""
        if prim.name not in self.keep:
            return prim

        def evaluate(*arrays: Array, **params: Any) -> Any:
            self.kept.append(prim.evaluate(*arrays, **params))
            return self.kept[-1]

        return computed_by(prim, evaluate)

    def saved_by(self, position: int, node: Node) -> Nested:
        """Return the saved values of the node at this position, running the function again if necessary."""
        self._check_unchanged(node)
        if not self.saved or self.saved[position] is None:
            self._run_again()
        saved, self.saved[position] = self.saved[position], None  # handed out once, so that it is freed soon
        return saved

    def _run_again(self) -> None:
        again, began = _Again(self), MUTATIONS.latest
        before = MODE.levels, MODE.watchers, MODE.flags, random.get_states()
        MODE.levels, MODE.watchers = self.levels, ()
        MODE.flags &= ~WATCHED
        random.set_states(self.random_state)
        try:
            with enable_grad(), again:
                self.function(*self.args, **self.kwargs)
        finally:
            MODE.levels, MODE.watchers, MODE.flags = before[:3]
            random.set_states(before[3] if self.random_state else {})
        for reference in self.written:
            place = None if reference() is None else MUTATIONS.write_since(began, reference())
            if place is not None:
                raise errors.CHECKPOINT_WRITES(written=place, where=provenance.resolve(*self.place))
        if len(again.saved) != len(self.prims):
            raise errors.CHECKPOINT_LENGTH(
                first=len(self.prims), second=len(again.saved), where=provenance.resolve(*self.place)
            )
        self.saved = again.saved

    def _check_unchanged(self, node: Node) -> None:
        if MUTATIONS.latest <= self.began:
            return
        tensors = [leaf for leaf in tree.flatten((self.args, self.kwargs))[0] if isinstance(leaf, Tensor)]
        for x in [*tensors, *(parent for parent in node.parents if isinstance(parent, Tensor))]:
            owner = memory_owner(x.array) if isinstance(x.array, np.ndarray) else None
            written = MUTATIONS.write_since(self.began, owner)
            if written is not None:
                where = provenance.resolve(*self.place)
                raise errors.CHECKPOINT_OVERWRITTEN(shape=x.shape, written=written, where=where)


class _Later:
    """The content of `Node.saved` of a checkpointed node."""

    def __init__(self, segment: _Segment, position: int) -> None:
        self.segment = segment
        self.position = position

    def unpack(self, node: Node) -> Nested:
        """Return ``(y, *x)``."""
        return self.segment.saved_by(self.position, node)


class _Again(Watcher):
    """Collects the saved values of the second run."""

    def __init__(self, segment: _Segment) -> None:
        self.segment = segment
        self.saved: list[Array] = []
        self.kept = iter(segment.kept)

    def note(self, node: Node) -> None:
        """Collect a node's saved values after checking that it matches the node of the first run."""
        position = len(self.saved)
        expected = self.segment.prims[position] if position < len(self.segment.prims) else None
        if expected is not None and expected is not node.prim:
            raise errors.CHECKPOINT_DIFFERS(
                number=position + 1, first=expected.name, second=node.prim.name, where=node.place
            )
        self.saved.append(node.saved)

    def stand_in(self, prim: Primitive) -> Primitive:
        """Return a kept result instead of recomputing it."""
        if prim.name not in self.segment.keep:
            return prim
        return computed_by(prim, lambda *_arrays, **_params: next(self.kept))
