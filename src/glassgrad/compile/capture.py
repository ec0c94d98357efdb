"""From a finished trace to a program: what its inputs are, what it writes, what it returns.

`capture` runs the function under a tracer and puts everything back; the `Capture` it returns knows how to take
the inputs of a call and where the results belong. Nothing in it refers to the tracer.
"""

from __future__ import annotations

import gc
import random
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from glassgrad import errors
from glassgrad.compile import trees
from glassgrad.compile.graph import Graph, Operand, Var
from glassgrad.compile.origin import Origin
from glassgrad.compile.reach import Edge, Reach, is_constant, reach
from glassgrad.compile.symbol import Symbol
from glassgrad.compile.trace import _GRAD, Feed, Lifted, Tracer
from glassgrad.tape import Freed
from glassgrad.tensor import Tensor, make


@dataclass(frozen=True)
class Output:
    """A leaf of the result that the program computes: output number `at`, as a Tensor or as an array."""

    at: int
    wrapped: bool


@dataclass(frozen=True)
class Given:
    """A leaf of the result that is an argument, or something that exists already, handed back."""

    leaf: int | None
    value: Any = None


@dataclass(eq=False)
class State:
    """A tensor that the program reads or writes: its array is passed, and written in place.

    Attributes:
        tensor: the tensor.
        var: its input.
        path: how the user would write it.
        tracks: whether it required a gradient in the trace.
    """

    tensor: Tensor
    var: Var
    path: str
    tracks: bool


@dataclass(eq=False)
class Capture:
    """A traced function as a program with its surroundings.

    Attributes:
        graph: inputs in the order arguments, state, feeds.
        arguments: which leaf of the arguments each argument input is.
        state: the tensors behind the state inputs, gradients that stay behind among them.
        feeds: what is drawn before each call.
        after: Python code to run again after each call.
        grads: leaves and the gradient tensors (or None) they have after a call.
        argument_grads: leaf of the arguments -> number of the output that is its gradient.
        result: the result with `Output` and `Given` for leaves.
        edges: what has to be as it was, with the paths for messages.
        entry: leaves whose gradient before the call matters, and what it was.
        cotangents: forward value -> cotangent, for printing.
        state_arguments: leaves of the arguments that are state, and which tensor.
        changed: places of Python values that the function itself changes.
    """

    graph: Graph
    arguments: list[int]
    state: list[State]
    feeds: list[Feed]
    after: list[Callable[[], Any]]
    grads: list[tuple[Tensor, Tensor | None]]
    argument_grads: dict[int, int]
    result: Any
    edges: list[Edge]
    entry: list[tuple[Tensor, Tensor | None]]
    cotangents: dict[Var, Var]
    state_arguments: list[tuple[int, Tensor]]
    changed: list[tuple[Edge, Any]] = field(default_factory=list)


def capture(
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    *,
    names: Sequence[str] = (),
    finish: Callable[[Any], None] | None = None,
    keep_grads: bool = True,
) -> Capture:
    """Trace one call.

    Args:
        function, args, kwargs: the call.
        names: names of the positional arguments.
        finish: called with the result while the trace is still running.
        keep_grads: let leaves have their gradients after a call, as in eager mode.

    Raises:
        CompileError: when the function cannot be compiled as it is. Everything is as before then.
    """
    tracer = Tracer(getattr(function, "__name__", type(function).__name__))
    arguments = _Arguments(names)
    statics = arguments.static(args, kwargs)
    found = reach(function, statics)
    hidden = [("random", random._inst), ("np.random", np.random.mtrand._rand)]  # type: ignore[attr-defined]
    streams = [(path, stream, _state_of(stream)) for path, stream in [*found.streams, *hidden]]
    try:
        with tracer.active():
            for tensor, path in found.tensors.values():
                tracer.lift(tensor, path=path)
            traced_args, traced_kwargs = arguments.traced(tracer, args, kwargs)
            result = function(*traced_args, **traced_kwargs)
            if finish is not None:
                finish(result)
            finished = _Finish(tracer, arguments, result, keep_grads)
    except BaseException:
        _put_back(found.edges)
        raise
    finally:
        tracer.restore()
    del result, traced_args, traced_kwargs
    try:
        _check_streams(streams)
        _check_numbers(tracer)
        return finished.capture(function, statics, found)
    except BaseException:
        _put_back(found.edges)
        raise


def _put_back(edges: list[Edge]) -> None:
    """Undo what a failed trace did to Python numbers that it could reach."""
    for edge in edges:
        if not is_constant(edge.value) or edge.holds():
            continue
        if edge.kind == "cell":
            edge.holder.cell_contents = edge.value
        elif edge.kind == "item" and isinstance(edge.holder, dict):
            edge.holder[edge.key] = edge.value


# --- arguments ------------------------------------------------------------------------------------


class _Arguments:
    """The arguments of the traced call: leaves that are data become inputs, the rest stays as it is."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names = names
        self.vars: dict[Var, int] = {}
        self.twins: dict[int, int] = {}
        self.state: list[tuple[int, Tensor]] = []
        self.holders: dict[Var, Any] = {}

    def name_of(self, path: trees.Path) -> str:
        first, *rest = path[1:] if path[0] == "args" else path[1:]
        name = self.names[first] if path[0] == "args" and first < len(self.names) else str(first)
        name = name if name.isidentifier() else f"arg{name}"
        return "_".join([name, *(str(part) for part in rest)])

    def static(self, args: Any, kwargs: Any) -> dict[str, Any]:
        """Return the arguments that are no data: models, optimizers, options."""
        found: dict[str, Any] = {}

        def collect(leaf: Any, path: trees.Path) -> Any:
            if not is_data(leaf) and not is_constant(leaf):
                found[self.name_of(path)] = leaf
            return leaf

        trees.map_tree(collect, {"args": args, "kwargs": kwargs})
        return found

    def traced(self, tracer: Tracer, args: Any, kwargs: Any) -> tuple[Any, Any]:
        """Return the arguments with inputs in the place of data."""
        count = -1
        shared: dict[int, Tensor] = {}

        def replace(leaf: Any, path: trees.Path) -> Any:
            nonlocal count
            count += 1
            if isinstance(leaf, Tensor):
                if type(leaf.array) is Symbol:  # a parameter passed as an argument: it is state
                    self.state.append((count, leaf))
                    return leaf
                if id(leaf) not in shared:
                    shared[id(leaf)] = self._tensor(tracer, leaf, count, path)
                return shared[id(leaf)]
            if isinstance(leaf, np.ndarray):
                symbol = tracer.argument(leaf, self.name_of(path))
                self.vars[symbol.var] = count
                self.holders[symbol.var] = symbol
                return symbol
            return leaf

        whole = trees.map_tree(replace, {"args": args, "kwargs": kwargs})
        return whole["args"], whole["kwargs"]

    def _tensor(self, tracer: Tracer, leaf: Tensor, count: int, path: trees.Path) -> Tensor:
        if leaf._tracks and leaf.node is not None:
            raise errors.COMPILE_OUTSIDE_GRAPH(what=self.name_of(path), op=leaf.node.name, where=leaf.node.place)
        symbol = tracer.argument(leaf.array, self.name_of(path))
        self.vars[symbol.var] = count
        twin = make(symbol, None, leaf._tracks)
        self.twins[id(twin)] = count
        self.holders[symbol.var] = twin
        return twin


def is_data(leaf: Any) -> bool:
    """Tell whether an argument is data: an input of the program rather than a part of the function."""
    return isinstance(leaf, Tensor | np.ndarray)


# --- the end of a trace ---------------------------------------------------------------------------


class _Finish:
    """Reads everything off the Symbols while they are still in place."""

    def __init__(self, tracer: Tracer, arguments: _Arguments, result: Any, keep_grads: bool) -> None:
        self.tracer = tracer
        self.arguments = arguments
        self.keep_grads = keep_grads
        self.outputs: list[Operand] = []
        self.updates: dict[Var, Var] = {}
        self.slots: list[State] = []
        self.grads: list[tuple[Tensor, Tensor | None]] = []
        self.entry: list[tuple[Tensor, Tensor | None]] = []
        self.argument_grads: dict[int, int] = {}
        self.lifted_ids = {id(entry.ref()): entry for entry in tracer.lifted if entry.ref() is not None}
        self.result = trees.map_tree(self._leaf, result)
        self._gradients()
        for entry in tracer.lifted:
            target = entry.ref()
            if target is not None:
                self._update(entry.var, target.array, entry.path or "a tensor")
        for var, holder in arguments.holders.items():
            self._update(var, holder.array if isinstance(holder, Tensor) else holder, var.name or "an argument")

    # --- results --------------------------------------------------------------------------------------

    def _leaf(self, leaf: Any, path: trees.Path) -> Any:
        if isinstance(leaf, Tensor):
            return self._tensor(leaf)
        if isinstance(leaf, Symbol):
            return Output(self._output(leaf), wrapped=False)
        if isinstance(leaf, np.ndarray) or is_constant(leaf):
            return Given(None, leaf)
        raise errors.COMPILE_RESULT(kind=type(leaf).__name__, path=f" at {trees.path_text(path)}" if path else "")

    def _tensor(self, leaf: Tensor) -> Any:
        at = self.arguments.twins.get(id(leaf))
        if at is not None:
            return Given(at)
        if id(leaf) in self.lifted_ids:
            return Given(None, leaf)
        if not isinstance(leaf.array, Symbol):
            return Given(None, leaf)
        if leaf._tracks and leaf.node is not None and type(leaf.node.saved) is not Freed:
            raise errors.COMPILE_TRACKED_RESULT(what=leaf.array.described())
        return Output(self._output(leaf.array), wrapped=True)

    def _output(self, symbol: Any) -> int:
        self.outputs.append(symbol.var if isinstance(symbol, Symbol) else self.tracer.constant(symbol))
        return len(self.outputs) - 1

    # --- gradients ------------------------------------------------------------------------------------

    def _gradients(self) -> None:
        for leaf, first, before in self.tracer.grads.first.values():
            after = _GRAD.__get__(leaf)
            at = self.arguments.twins.get(id(leaf))
            if at is not None:
                if after is not None:
                    self.argument_grads[at] = self._output(after.array)
                continue
            if id(leaf) not in self.lifted_ids:
                continue
            if first == "read":
                self.entry.append((leaf, before))
            if after is not before:
                self._gradient(leaf, before if first == "read" else None, after)

    def _gradient(self, leaf: Tensor, before: Tensor | None, after: Tensor | None) -> None:
        if after is not None and before is not None and id(before) in self.lifted_ids:
            # Added to in place in eager mode: the old tensor gets the sum.
            self.updates[self.lifted_ids[id(before)].var] = self._value(after.array)
            self.grads.append((leaf, before))
            return
        if after is None or not self.keep_grads:
            self.grads.append((leaf, None))
            return
        path = self.lifted_ids[id(leaf)].path
        slot = make(np.zeros(after.array.shape, after.array.dtype), None, False)
        var = self.tracer.builder.input(slot.array.shape, slot.array.dtype, f"{path}.grad" if path else None)
        self.slots.append(State(slot, var, f"{path}.grad", tracks=False))
        self.updates[var] = self._value(after.array)
        self.grads.append((leaf, slot))

    def _value(self, array: Any) -> Var:
        return array.var if isinstance(array, Symbol) else self.tracer.constant(array)

    # --- state ----------------------------------------------------------------------------------------

    def _update(self, var: Var, array: Any, what: str) -> None:
        value = self._value(array)
        if value is var:
            return
        if value.shape != var.shape or value.dtype != var.dtype:
            before, after = (f"{one.dtype}{list(one.shape)}" for one in (var, value))
            raise errors.TRACE_STATE_CHANGED(what=what, before=before, after=after)
        self.updates.setdefault(var, value)

    # --- after everything is put back -----------------------------------------------------------------

    def capture(self, function: Callable[..., Any], statics: Mapping[str, Any], before: Reach) -> Capture:
        """Return the capture; the tracer has restored all tensors by now."""
        tracer = self.tracer
        after = reach(function, statics)
        lifted = self._by_input(after)
        used = self._used()
        captured = {entry.var: entry.array for entry, state in lifted if state is None and entry.var in used}
        state = [one for _, one in lifted if one is not None and one.var in used]
        state += self.slots
        feeds, late = _split(tracer.feeds)
        arguments = [var for var in self.arguments.vars if var in used]
        _check_overlap(state, self.updates)
        self._check_stored()
        graph = Graph(
            tuple([*arguments, *(one.var for one in state), *(feed.var for feed in feeds if feed.var is not None)]),
            tuple(tracer.builder.instrs),
            tuple(self.outputs),
            tuple([*tracer.builder.constants, *captured.items()]),
            tuple((var, value) for var, value in self.updates.items() if var not in captured),
            tracer.builder.name,
        )
        edges, changed = _settled(before, after, tracer)
        return Capture(
            graph, [self.arguments.vars[var] for var in arguments], state, feeds, late, self.grads,
            self.argument_grads, self.result, edges, self.entry, tracer.cotangents, self.arguments.state, changed,
        )  # fmt: skip

    def _by_input(self, after: Reach) -> list[tuple[Lifted, State | None]]:
        """Pair each lifted input with its state; tensors that did not outlive the trace are constants."""
        found: dict[Var, tuple[Lifted, State | None]] = {}
        collected = False
        for entry in self.tracer.lifted:
            target = entry.ref()
            if target is not None and not entry.existed and id(target) not in after.tensors:
                if not collected:
                    del target
                    gc.collect()
                    collected = True
                target = entry.ref()
            known = found.get(entry.var)
            if target is not None and (known is None or known[1] is None):
                path = entry.path or after.tensors.get(id(target), (None, ""))[1]
                found[entry.var] = entry, State(target, entry.var, path, entry.tracks)
            elif known is None:
                found[entry.var] = entry, None
        return list(found.values())

    def _used(self) -> set[Var]:
        used = {var for instr in self.tracer.builder.instrs for var in instr.reads()}
        used.update(out for out in self.outputs if isinstance(out, Var))
        used.update(self.updates)
        used.update(self.updates.values())
        return used

    def _check_stored(self) -> None:
        """Raise when a traced value outlives the trace: a later call would leave it as it is."""
        tracer = self.tracer
        tracer._arrays.clear()
        tracer.grads.first.clear()
        for entry in tracer.lifted:
            entry.symbol = None
        self.arguments.holders.clear()
        if any(ref() is not None for ref in tracer.symbols):
            gc.collect()
        for ref in tracer.symbols:
            left = ref()
            if left is not None:
                raise errors.TRACE_STORED(what=left.described(), origin=left.history(), holder=_holder(left))


def _holder(left: Symbol) -> str:
    """Say, as well as the garbage collector knows, what holds on to a traced value."""
    referrers = gc.get_referrers(left)
    for tensor in referrers:
        if not isinstance(tensor, Tensor):
            continue
        for holder in gc.get_referrers(tensor):
            found = "" if holder is referrers else _named(holder, tensor)
            if found:
                return found
    return "an object that outlives the function"


def _named(holder: Any, tensor: Tensor) -> str:
    if isinstance(holder, types.CellType):
        return "a variable of the enclosing function"
    if isinstance(holder, list | set | tuple):
        return f"a {type(holder).__name__}"
    if not isinstance(holder, dict):
        return ""
    name = ""
    for key, value in holder.items():
        if value is tensor:
            name = str(key)
    for owner in gc.get_referrers(holder):
        if getattr(owner, "__dict__", None) is holder:
            return f"{type(owner).__name__}.{name}"
    return f"a dictionary, under {name!r}"


# --- checks ---------------------------------------------------------------------------------------


def _state_of(stream: Any) -> Any:
    if hasattr(stream, "get_state") and not isinstance(stream, np.random.RandomState):
        return stream.get_state()
    if hasattr(stream, "getstate"):
        return stream.getstate()
    return repr(stream.bit_generator.state if hasattr(stream, "bit_generator") else stream.get_state())


def _check_streams(streams: list[tuple[str, Any, Any]]) -> None:
    for path, stream, before in streams:
        if _state_of(stream) != before:
            raise errors.TRACE_RANDOM(what=f"{path} ({type(stream).__name__})")


def _check_numbers(tracer: Tracer) -> None:
    for options, name, before in tracer.numbers.values():
        if options[name] != before:
            after, options[name] = options[name], before
            raise errors.TRACE_NUMBER_CHANGED(name=name, before=before, after=after)


def _check_overlap(state: list[State], updates: Mapping[Var, Var]) -> None:
    """Raise when two inputs share memory and one of them is written to."""
    spans = sorted(
        ((*np.lib.array_utils.byte_bounds(one.tensor.array), one) for one in state if one.tensor.array.size),
        key=lambda span: span[0],
    )
    for (_, end, first), (start, _, second) in zip(spans, spans[1:], strict=False):
        written = next((one for one in (first, second) if one.var in updates), None)
        if start < end and written is not None and np.shares_memory(first.tensor.array, second.tensor.array):
            raise errors.TRACE_OVERLAP(first=first.path, second=second.path, written=written.path)


def _settled(before: Reach, after: Reach, tracer: Tracer) -> tuple[list[Edge], list[tuple[Edge, Any]]]:
    """Return the places to guard, and the Python values that the function itself changed."""
    fed = {(id(options), name) for options, name, _ in tracer.numbers.values()}
    changed = []
    unsteady = set()
    for edge in before.edges:
        if is_constant(edge.value) and edge.kind != "length" and not edge.holds():
            try:
                now = edge.now()
            except (LookupError, AttributeError):
                continue
            unsteady.add((id(edge.holder), edge.key))
            if (id(edge.holder), edge.key) not in fed:
                changed.append((edge, now))
    kept = {}
    for edge in after.edges:
        place = (id(edge.holder), edge.key)
        if place not in fed and place not in unsteady:
            kept[(edge.kind, *place)] = edge
    return list(kept.values()), changed


def _split(feeds: list[Feed]) -> tuple[list[Feed], list[Callable[[], Any]]]:
    """Separate the Python code that comes after the last input from what must run before the program."""
    last = max((at for at, feed in enumerate(feeds) if feed.var is not None), default=-1)
    return feeds[: last + 1], [feed.draw for feed in feeds[last + 1 :]]


def where_text(where: Any) -> str:
    """Return the place of an instruction for a table or a message."""
    return str(where.place) if isinstance(where, Origin) else ""
