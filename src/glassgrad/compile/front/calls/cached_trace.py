"""One trace, ready to be called: matches arguments, collects inputs, returns results."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from glassgrad import errors
from glassgrad.compile.front.calls.captured import Capture, builder
from glassgrad.compile.front.calls.fast_call import Quick, Recorder, quick_call
from glassgrad.compile.front.calls.guards import Check, Guards, hooks_of
from glassgrad.compile.front.calls.parameters import Args, Kind, Kwargs, Leaves, Signature
from glassgrad.compile.front.calls.refusal import RefusedError
from glassgrad.compile.front.calls.result_gradients import connect
from glassgrad.compile.front.state.edges import is_constant
from glassgrad.compile.front.state.effects import apply
from glassgrad.compile.ir.graph import Graph
from glassgrad.engine import tree
from glassgrad.engine.mode import AUTOCAST, FINITE, KEYED, MODE, RECORDING
from glassgrad.engine.reports.float_warnings import hidden_branch
from glassgrad.engine.tensor import Tensor, base_class, make
from glassgrad.engine.writes import Writer
from glassgrad.ops.core import Array

_ndarray = np.ndarray


_WIDE = 100  # longest text of a structure that a message shows
MOVING = ("moving",)  # a float that is an input because it differed between calls


def signature(args: Args, kwargs: Kwargs, moving: Collection[int] = ()) -> tuple[Signature, Leaves]:
    """Return the arguments' signature, which selects a trace, and their leaves.

    Floats at `moving` positions are inputs; a trace depends on the values of all others.
    """
    if kwargs or any(isinstance(arg, dict | list | tuple) for arg in args):
        leaves = tree.every_leaf({"args": args, "kwargs": kwargs})
        shape = tree.map_tree(lambda leaf, path: None, {"args": args, "kwargs": kwargs})
        structure: int | str = repr(shape)
    else:
        leaves, structure = list(args), len(args)
    first: dict[int, int] = {}
    kinds = tuple(
        MOVING if at in moving and type(leaf) is float else _kind(leaf, first.setdefault(id(leaf), at))
        for at, leaf in enumerate(leaves)
    )
    return (structure, kinds, MODE.flags & KEYED), leaves


def _kind(leaf: object, first: int) -> Kind:
    if isinstance(leaf, Tensor):
        return ("tensor", leaf.array.dtype, leaf.array.shape, leaf._tracks, first, *hooks_of(leaf))
    if isinstance(leaf, _ndarray):
        return ("array", leaf.dtype, leaf.shape)
    if is_constant(leaf):
        return ("number", type(leaf), repr(leaf))
    return ("object", type(leaf), id(leaf))


def changed_floats(before: Signature, now: Signature) -> set[int]:
    """Return the positions of the floats that differ, if nothing else does."""
    if before[0] != now[0] or before[2] != now[2]:
        return set()
    found = {at for at, (old, new) in enumerate(zip(before[1], now[1], strict=True)) if old != new}
    numbers = all(kinds[1][at][:2] == ("number", float) for at in found for kinds in (before, now))
    return found if numbers else set()


def describe_difference(before: Signature, now: Signature, names: Sequence[str]) -> str:
    """Describe which argument changed, and how."""
    if before[0] != now[0]:
        return _structures(before[0], now[0])
    if before[2] != now[2]:
        if before[2] ^ now[2] == FINITE:
            return f"new weights are looked at for NaN: was {bool(before[2] & FINITE)}, now {bool(now[2] & FINITE)}"
        if before[2] ^ now[2] == AUTOCAST:
            return f"products round to bfloat16: was {bool(before[2] & AUTOCAST)}, now {bool(now[2] & AUTOCAST)}"
        return f"gradients are recorded: was {bool(before[2] & RECORDING)}, now {bool(now[2] & RECORDING)}"
    for at, (old, new) in enumerate(zip(before[1], now[1], strict=True)):
        if old != new:
            name = names[at] if at < len(names) else f"argument {at}"
            return f"{name} was {_shown(old)}, now {_shown(new)}"
    return "the arguments changed"


def _structures(before: int | str, now: int | str) -> str:
    """Describe the number of arguments before and now, or their nesting."""
    if isinstance(before, int) and isinstance(now, int):
        return f"there were {before} arguments, now {now}"
    old, new = (str(one).replace("None", "_") for one in (before, now))
    if max(len(old), len(new)) > _WIDE:
        return "the arguments have another structure"
    return f"the arguments were {old}, now {new}"


def _shown(kind: Kind) -> str:
    match kind:
        case ("tensor", dtype, shape, tracks, _, *hooks):
            hooked = f", with {len(hooks)} hooks" if hooks else ""
            return f"a tensor {dtype}{list(shape)}" + (" that requires a gradient" if tracks else "") + hooked
        case ("array", dtype, shape):
            return f"an array {dtype}{list(shape)}"
        case ("number", _, text):
            return str(text)
        case ("moving",):
            return "a number of any value"
    return f"a {kind[1].__name__}"


class TraceCall:
    """A trace with its program.

    Attributes:
        capture: the trace with its state, guards and feeds.
        program: the executable.
        key: the signature of the arguments.
        backend: the backend that made the program.
        trace_seconds, compile_seconds: the times that tracing and compiling took.
        given: weak references to the arguments of the call that was traced.
    """

    used = False
    given: Any = None
    trace_seconds = 0.0
    compile_seconds = 0.0

    def __init__(self, capture: Capture, program: Any, key: Signature, backend: str) -> None:
        self.capture = capture
        self.backend = backend
        self.program = program
        self.key = key
        replaced = [one for moved in capture.moved for one in moved.state.values()]
        self._replaced = [at for at, one in enumerate(capture.state) if one in replaced]
        self.guards = Guards(
            capture.edges,
            [(one.tensor, one.path, one.tracks, hooks_of(one.tensor)) for one in capture.state if one not in replaced],
            capture.entry,
        )
        self._tensors = [one.tensor for one in capture.state]
        self._arrays = [one.tensor.array for one in capture.state]
        self._at = capture.arguments
        self.quick: Quick | None = None
        self._recorded: Quick | None = None
        self._written = self._positions_written()
        self.owners: set[int] = set()
        self._note_owners()
        self.writer = Writer()
        self._kept: list[Array] = []

    @cached_property
    def _check(self) -> Check:
        """Tells whether all guards hold; compiled on first use, because the fast path repeats these conditions."""
        return self.guards.compiled()

    @property
    def can_fail_halfway(self) -> bool:
        """Tell whether a call can fail after it wrote to state: if Python computes ops between native kernels."""
        layout = getattr(getattr(self.program, "step", None), "layout", None)
        return layout is not None and any(host is not None for _, host in layout.segments)

    @property
    def graph(self) -> Graph:
        """The graph of the program: the trace after the passes."""
        graph: Graph = self.program.graph
        return graph

    def prepare(self, leaves: Leaves) -> None:
        """Generate the fast path for calls like this one."""
        # The key holds ids of models and other objects; keeping these alive stops their ids from being reused.
        self._kept = [leaf for leaf, kind in zip(leaves, self.key[1], strict=True) if kind[0] == "object"]
        stores = self.capture.effects or self.capture.moved
        if not stores and all(at >= len(self._at) for at in self._written):
            self.quick = quick_call(
                self.capture, self.guards, self.program, self._arrays, self.writer, self.key, leaves, self.owners
            )

    def recorded(self, leaves: Leaves, recorder: Recorder) -> Quick | None:
        """Return a fast path for calls like this one that reports each to `recorder`; None if that is impossible.

        All recorders share one fast path, which reports to the latest.
        """
        if self.quick is None:
            return None
        if self._recorded is None:
            state = self.program, self._arrays, self.writer
            self._recorded = quick_call(self.capture, self.guards, *state, self.key, leaves, self.owners, recorder)
        else:
            self._recorded.__globals__.update(lock=recorder.lock, begin=recorder.begin, record=recorder.record)
        return self._recorded

    # --- matching -------------------------------------------------------------------------------------

    def match(self, args: Args, kwargs: Kwargs) -> Leaves | None:
        """Return the leaves of the arguments if this trace can serve the call."""
        key, leaves = signature(args, kwargs, self.capture.moving)
        return leaves if key == self.key and self.fits(leaves) else None

    def fits(self, leaves: Leaves) -> bool:
        """Tell whether all guards hold, except those on the arguments' types."""
        if self.capture.once and self.used:
            return False
        here = all(leaves[at] is one for at, one in self.capture.state_arguments)
        return here and self._check() and self.look_again() and self._state_fits()

    def look_again(self) -> bool:
        """Read the current tensors of moved places; tell whether their types fit."""
        if not all(moved.read() for moved in self.capture.moved):
            return False
        for at in self._replaced:
            self._tensors[at] = self.capture.state[at].tensor
        return not self._replaced or len({id(one) for one in self._tensors}) == len(self._tensors)

    def _state_fits(self) -> bool:
        for position, (tensor, array) in enumerate(zip(self._tensors, self._arrays, strict=True)):
            now = tensor.array
            if now is not array:
                if type(now) is not _ndarray or now.shape != array.shape or now.dtype != array.dtype:
                    return False
                self._arrays[position] = now
                self._note_owners()
        return True

    def why(self, leaves: Leaves) -> str | None:
        """Explain which guard failed."""
        if self.capture.once and self.used:
            return "the first call made state that the next call reads"
        reason = self.guards.why()
        if reason is not None:
            by = next((one for one in self.capture.effects if reason.startswith(f"{one.path} was")), None)
            return reason if by is None else f"{reason}, set by the function itself{by.where}"
        for moved in self.capture.moved:
            if not moved.read():
                return f"the value of {moved.path} has another shape, dtype or structure"
        for one, array in zip(self.capture.state, self._arrays, strict=True):
            now = one.tensor.array
            if now.shape != array.shape or now.dtype != array.dtype:
                return f"{one.path} was {array.dtype}{list(array.shape)}, now {now.dtype}{list(now.shape)}"
        if any(leaves[at] is not one for at, one in self.capture.state_arguments):
            return "an argument that was part of the state is now another tensor"
        return None

    # --- shared memory --------------------------------------------------------------------------------

    def _positions_written(self) -> list[int]:
        """Return the positions of arguments and state tensors that are written in place."""
        graph = self.capture.graph
        targets = {target for target, _ in graph.updates}
        slots = len(self._at) + len(self._arrays)
        return [at for at, var in enumerate(graph.inputs[:slots]) if var in targets]

    def _note_owners(self) -> None:
        """Record the owners of the memory that is written; the fast path shares this set."""
        self.owners.clear()
        count = len(self._at)
        self.owners.update(id(owner(self._arrays[at - count])) for at in self._written if at >= count)

    def _check_shared(self, arrays: list[Array]) -> None:
        """Raise if an argument aliases memory that the step writes through another tensor."""
        count = len(self._at)
        mine = [at for at in self._written if at < count]
        if not mine and not any(id(owner(array)) in self.owners for array in arrays[:count]):
            return
        pairs = [(at, place) for place in self._written for at in range(count)]
        pairs += [(at, place) for place in mine for at in range(count, len(arrays))]
        for at, place in pairs:
            one, other = arrays[at], arrays[place]
            if at != place and owner(one) is owner(other) and np.shares_memory(one, other):
                first, second = (self.capture.graph.inputs[number].name or "a tensor" for number in (at, place))
                error = errors.TRACE_OVERLAP(first=first, second=second, written=second)
                raise RefusedError(error, certain=True, key=("in shared memory", self.key))

    # --- running --------------------------------------------------------------------------------------

    def run(self, leaves: Leaves, watch: Callable[[list[Array]], object] | None = None) -> Any:
        """Run the program on the leaves of the arguments; call `watch` with the inputs first."""
        capture = self.capture
        self.used = True
        arrays = self._inputs(leaves)
        if watch is not None:
            watch(arrays)
        results = self.program(*arrays)
        if capture.written:
            self.writer.wrote([self._arrays[at] for at in capture.written])
        self._report(results)
        for leaf, grad in capture.grads:
            leaf._grad = grad
        for at, number in capture.argument_grads.items():
            _add_grad(leaves[at], results[number])
        for call in capture.after:
            call()
        tracked = {} if capture.boundary is None else connect(capture.boundary, arrays, results, leaves)
        build = builder(results, leaves, tracked)
        result = build(capture.result)
        apply(capture.effects, build)
        return result

    def _inputs(self, leaves: Leaves) -> list[Array]:
        """Return the inputs of the program: arguments, state, and the feeds, which Python computes here."""
        arrays = []
        for at in self._at:
            leaf = leaves[at]
            if type(leaf) is float:
                leaf = np.asarray(leaf, np.float64)
            arrays.append(leaf.array if isinstance(leaf, Tensor) else base_class(leaf))
        arrays += self._arrays
        self._check_shared(arrays)
        drawn = [(feed.var, feed.draw()) for feed in self.capture.feeds]
        return [*arrays, *(array for var, array in drawn if var is not None)]

    def _report(self, results: Sequence[Array]) -> None:
        """Report the findings of the outputs that watch the program."""
        if self.capture.finite is not None:
            MODE.finite = results[self.capture.finite]
        for at, branch in self.capture.branches:
            if results[at]:
                hidden_branch(branch.op, branch.place, int(results[at]))


def owner(array: Array) -> Array:
    """Return the array that owns the memory of an array."""
    return array if array.base is None else array.base


def _add_grad(leaf: Tensor, gradient: Array) -> None:
    if leaf._grad is None:
        leaf._grad = make(gradient, None, False)
    else:
        leaf._grad = leaf._grad + make(gradient, None, False)
