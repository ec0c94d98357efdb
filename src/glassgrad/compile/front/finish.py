"""Finish a trace: derive the program's inputs, updates and outputs from the Symbols before they are removed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from glassgrad import errors
from glassgrad.base import provenance
from glassgrad.compile.front import checks
from glassgrad.compile.front.calls.arguments import Arguments
from glassgrad.compile.front.calls.captured import Capture, Given, Output, State
from glassgrad.compile.front.calls.feeds import Feed
from glassgrad.compile.front.calls.parameters import Function
from glassgrad.compile.front.calls.result_gradients import Boundary, Continuation
from glassgrad.compile.front.finite import zero_if_finite
from glassgrad.compile.front.hidden_branch import Branch, StepTracer, counts
from glassgrad.compile.front.state import newcomers
from glassgrad.compile.front.state.edges import is_constant
from glassgrad.compile.front.state.effects import Kept, Moved, Sorted, must_hold
from glassgrad.compile.front.state.grad_watch import GRAD
from glassgrad.compile.front.state.lifted import Lifted
from glassgrad.compile.front.state.places import Places
from glassgrad.compile.front.state.reach import Reach, reach
from glassgrad.compile.front.symbol import Symbol
from glassgrad.compile.front.tracer import Tracer
from glassgrad.compile.ir.graph import Graph, Operand, Var
from glassgrad.engine import tree
from glassgrad.engine.mode import FINITE, MODE
from glassgrad.engine.node import Freed, Node
from glassgrad.engine.tensor import Tensor, make
from glassgrad.ops.core import Array


class Finish:
    """Derives inputs, updates and outputs from the Symbols before the arrays are restored."""

    def __init__(
        self,
        tracer: Tracer,
        arguments: Arguments,
        result: Any,
        found: Reach,
        places: Places,
        *,
        follow: bool,
        keep_grads: bool,
    ) -> None:
        self.tracer = tracer
        self.arguments = arguments
        self.keep_grads = keep_grads
        self.outputs: list[Operand] = []
        self.updates: dict[Var, Var] = {}
        self.slots: list[State] = []
        self.grads: list[tuple[Tensor, Tensor | None]] = []
        self.entry: list[tuple[Tensor, Tensor | None]] = []
        self.found: list[tuple[Var, Var]] = []
        self.argument_grads: dict[int, int] = {}
        self.lifted_ids = {id(entry.ref()): entry for entry in tracer.lifted if entry.ref() is not None}
        self.tracked: dict[int, Tensor] = {}
        self.follow = follow
        self._twins: dict[int, Output] = {}
        self._shared: dict[int, int] = {}
        self.result = tree.map_tree(self._leaf, result)
        self.sorted = self._stored(found, places)
        places.restore()
        self._gradients()
        for entry in tracer.lifted:
            target = entry.ref()
            if target is not None:
                self._update(entry.var, target.array, entry.path or "a tensor")
        for var, holder in arguments.holders.items():
            self._update(var, holder.array if isinstance(holder, Tensor) else holder, var.name or "an argument")
        self.watching = len(self.outputs)
        self.finite = self._finite() if MODE.flags & FINITE else None
        self.branches = self._branches()
        self.continuation = Continuation(tracer, list(self.tracked.values())) if self.tracked and follow else None

    # --- results --------------------------------------------------------------------------------------

    def _leaf(self, leaf: object, path: tree.Path) -> object:
        if isinstance(leaf, Tensor):
            return self._tensor(leaf)
        if isinstance(leaf, Symbol):
            for var, holder in self.arguments.holders.items():
                if holder is leaf:
                    return Given(self.arguments.vars[var])
            return Output(self._output(leaf), wrapped=False)
        if isinstance(leaf, np.ndarray) or is_constant(leaf):
            return Given(None, leaf)
        raise errors.COMPILE_RESULT(kind=type(leaf).__name__, path=f" at {tree.path_text(path)}" if path else "")

    def _tensor(self, leaf: Tensor) -> Output | Given:
        at = self.arguments.twins.get(id(leaf))
        if at is not None:
            return Given(at)
        if id(leaf) in self.lifted_ids:
            return Given(None, leaf)
        if not isinstance(leaf.array, Symbol):
            return Given(None, leaf)
        at = self._output(leaf.array)
        if leaf._tracks and leaf.node is not None and is_alive(leaf.node):
            if hasattr(leaf, "persistent"):  # a returned buffer: the result has its history, the buffer has none
                leaf = make(leaf.array, leaf.node, True)
            self.tracked[at] = leaf
        else:
            self._shared.setdefault(id(leaf.array), at)
        return self._twin(leaf, at)

    def _twin(self, leaf: Tensor, at: int) -> Output:
        buffer = (type(leaf), leaf.persistent) if hasattr(leaf, "persistent") else None
        alone = leaf._tracks and leaf.node is None
        found = Output(at, wrapped=True, twin=len(self._twins) + 1, buffer=buffer, tracks=alone)
        return self._twins.setdefault(id(leaf), found)

    def _output(self, symbol: Array) -> int:
        self.outputs.append(symbol.var if isinstance(symbol, Symbol) else self.tracer.constant(symbol))
        return len(self.outputs) - 1

    # --- stored values --------------------------------------------------------------------------------

    def _stored(self, found: Reach, places: Places) -> Sorted:
        """Describe the function's changes of Python objects; the values that it stored become outputs."""
        known = {id(holder.target) for holder, _ in places.before}
        changes = Sorted(list(places.changes()), found)

        def spec(value: object) -> Any:
            if id(value) in known or is_constant(value):
                return Kept(value)
            if isinstance(value, dict | list | tuple):
                return tree.map_tree(lambda leaf, path: spec(leaf), value)
            if isinstance(value, Tensor):
                return self._stored_tensor(value, changes)
            if isinstance(value, Symbol):
                return Output(self._shared_output(value), wrapped=False)
            return Given(None, value) if isinstance(value, np.ndarray) else Kept(value)

        for change in changes.changes:
            changes.add(change, spec)
        changes.changes.clear()
        return changes

    def _stored_tensor(self, leaf: Tensor, changes: Sorted) -> Any:
        if id(leaf) in self.arguments.twins:
            return Given(self.arguments.twins[id(leaf)])
        if id(leaf) in changes.entries:
            return changes.entries[id(leaf)]
        lifted = self.lifted_ids.get(id(leaf))
        if (lifted is not None and lifted.existed) or self.tracer.existed(leaf):
            return Kept(leaf)
        known = self._twins.get(id(leaf))
        if known is not None:
            return known
        if type(leaf) is not Tensor and not hasattr(leaf, "persistent"):  # buffers have it
            raise errors.TRACE_STORED_KIND(kind=type(leaf).__name__, where=provenance.here())
        plain = type(leaf) is Tensor
        if plain and self.follow and leaf._tracks and leaf.node is not None and is_alive(leaf.node):
            at = self._output(leaf.array)
            self.tracked[at] = leaf
            return self._twin(leaf, at)
        return self._twin(leaf, self._shared_output(leaf.array))

    def _shared_output(self, array: Array) -> int:
        """Return the output for an array; tensors that share the array still share it afterwards."""
        if id(array) not in self._shared:
            self._shared[id(array)] = self._output(array)
        return self._shared[id(array)]

    # --- gradients ------------------------------------------------------------------------------------

    def _gradients(self) -> None:
        for leaf, first, before in self.tracer.grads.first.values():
            after = GRAD.__get__(leaf)
            at = self.arguments.twins.get(id(leaf))
            if at is not None:
                if after is not None:
                    if at in self.arguments.inner:
                        node = self.arguments.inner[at].node
                        assert node is not None
                        raise errors.COMPILE_OUTSIDE_GRAPH(what=f"argument {at}", op=node.name, where=node.place)
                    self.argument_grads[at] = self._output(after.array)
                continue
            if id(leaf) not in self.lifted_ids:
                continue
            if first == "read":
                self.entry.append((leaf, before))
            if after is not before:
                self._gradient(leaf, before if first == "read" else None, after)

    def _gradient(self, leaf: Tensor, before: Tensor | None, after: Tensor | None) -> None:
        if after is not None:
            self.found.append((self.lifted_ids[id(leaf)].var, self._value(after.array)))
        if after is not None and before is not None and id(before) in self.lifted_ids:
            # Eager mode accumulates in place, so the old tensor gets the sum.
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

    def _value(self, array: Array) -> Var:
        return array.var if isinstance(array, Symbol) else self.tracer.constant(array)

    # --- state ----------------------------------------------------------------------------------------

    def _update(self, var: Var, array: Array, what: str) -> None:
        value = self._value(array)
        if value is var:
            return
        if value.shape != var.shape or value.dtype != var.dtype:
            before, after = (f"{one.dtype}{list(one.shape)}" for one in (var, value))
            raise errors.TRACE_STATE_CHANGED(what=what, before=before, after=after)
        self.updates.setdefault(var, value)

    def _finite(self) -> int | None:
        """Return the output that tells whether new weights, and gradients of unchanged weights, are finite."""
        weights = {entry.var for entry in self.tracer.lifted if entry.tracks} | set(self.arguments.holders)
        values = [value for var, value in self.updates.items() if var in weights]
        values += [gradient for var, gradient in self.found if var not in self.updates]
        total = zero_if_finite(self.tracer.builder, values)
        if total is None:
            return None
        self.outputs.append(total)
        return len(self.outputs) - 1

    def _branches(self) -> list[tuple[int, Branch]]:
        """Return the outputs that count cotangents that became NaN in branches not taken, with their ops."""
        found = counts(self.tracer.builder, self.tracer.branches) if isinstance(self.tracer, StepTracer) else []
        first = len(self.outputs)
        self.outputs += [number for _, number in found]
        return [(first + at, branch) for at, (branch, _) in enumerate(found)]

    # --- after all state is restored ------------------------------------------------------------------

    def capture(self, function: Function, statics: Mapping[str, object], before: Reach) -> Capture:
        """Return the capture; the tracer has restored all tensors by now."""
        tracer = self.tracer
        after = reach(function, statics, before)
        lifted = self._by_input(after)
        used = self._used()
        captured = {entry.var: entry.array for entry, state in lifted if state is None and entry.var in used}
        state = [one for _, one in lifted if one is not None and one.var in used]
        for one in state:
            if one.var.name is None and one.path:
                # The graph is not published yet, so an input can still be named by the place of its tensor.
                object.__setattr__(one.var, "name", one.path)
        state += self.slots
        feeds, late = _split(tracer.feeds)
        arguments = [var for var in self.arguments.vars if var in used]
        checks.check_overlap(state, self.updates)
        inputs = [*arguments, *(one.var for one in state), *(feed.var for feed in feeds if feed.var is not None)]
        boundary = self._boundary(inputs)
        self._check_stored()
        graph = Graph(
            tuple(inputs),
            tuple(tracer.builder.instrs),
            tuple(self.outputs),
            (*tracer.builder.constants, *captured.items()),
            tuple((var, value) for var, value in self.updates.items() if var not in captured),
            tracer.builder.name,
        )
        moved = self._moved(lifted, state)
        edges, changed = checks.settled(before, after, tracer)
        edges = [self.sorted.settled(edge) for edge in edges if self.sorted.keeps(edge)] + self.sorted.guards
        return Capture(
            graph=graph,
            arguments=[self.arguments.vars[var] for var in arguments],
            moving=frozenset(self.arguments.moving),
            state=state,
            written=[at for at, one in enumerate(state) if one.var in self.updates and one not in self.slots],
            feeds=feeds,
            after=late,
            grads=self.grads,
            argument_grads=self.argument_grads,
            result=self.result,
            edges=edges + checks.looked_at(before, tracer),
            entry=self.entry,
            cotangents=tracer.cotangents,
            nodes=tracer.nodes(),
            gradients=self.found,
            state_arguments=self.arguments.state,
            streams=tracer.generators,
            options=[options for options, _, _ in tracer.numbers.values()],
            keeps_grads=self.keep_grads,
            boundary=boundary,
            once=tracer.once or any(entry.by_function for entry, one in lifted if one is not None),
            changed=changed,
            effects=self.sorted.effects,
            moved=moved,
            finite=self.finite,
            branches=self.branches,
            watching=self.watching,
        )

    def _moved(self, lifted: list[tuple[Lifted, State | None]], state: list[State]) -> list[Moved]:
        """Return the places that every call reads again, each with the inputs that its tensors are."""
        used = {id(one) for one in state}
        inputs = {id(one.tensor): one for _, one in lifted if one is not None and id(one) in used}
        found = []
        for moved in self.sorted.moved:
            moved.state.update((at, inputs[id(leaf)]) for at, leaf in enumerate(moved.leaves) if id(leaf) in inputs)
            if any(one.tensor._tracks or one.tensor.node is not None for one in moved.state.values()):
                # Gradients flow to this tensor; a call with another tensor needs another program.
                self.sorted.guards += must_hold(moved.holder, moved.key, moved.value)
                moved.state.clear()
            else:
                found.append(moved)
            moved.value = None
        return found

    def _boundary(self, inputs: list[Var]) -> Boundary | None:
        if self.continuation is None:
            self.tracked.clear()
            return None
        parents: dict[int, Tensor | int] = {**self.arguments.twins}
        for entry in self.tracer.lifted:
            leaf = entry.ref()
            if leaf is not None:
                parents[id(leaf)] = leaf
        made = self.continuation.boundary(parents, self.outputs, list(self.tracked), inputs)
        self.tracked.clear()
        self.continuation = None
        return made

    def _by_input(self, after: Reach) -> list[tuple[Lifted, State | None]]:
        """Pair each lifted input with its state; tensors that did not outlive the trace are constants."""
        found: dict[Var, tuple[Lifted, State | None]] = {}
        made = [entry.ref for entry in self.tracer.lifted if not entry.existed]
        newcomers.free([ref for ref in made if id(ref()) not in after.tensors])
        for entry in self.tracer.lifted:
            target = entry.ref()
            known = found.get(entry.var)
            if target is not None and (known is None or known[1] is None):
                path = entry.path or checks.short_path(after.tensors.get(id(target), (None, ""))[1])
                found[entry.var] = entry, State(target, entry.var, path, entry.tracks)
            elif known is None:
                found[entry.var] = entry, None
        return list(found.values())

    def _used(self) -> set[Var]:
        used = {var for instr in self.tracer.builder.instrs for var in instr.reads()}
        if self.continuation is not None:
            used.update(var for instr in self.continuation.instrs for var in instr.reads())
        used.update(out for out in self.outputs if isinstance(out, Var))
        used.update(self.updates)
        used.update(self.updates.values())
        return used

    def _check_stored(self) -> None:
        """Raise if a traced value outlives the trace, because later calls would not update it."""
        tracer = self.tracer
        tracer._arrays.clear()
        tracer.grads.first.clear()
        for entry in tracer.lifted:
            entry.symbol = None
        self.arguments.holders.clear()
        newcomers.free(tracer.symbols)
        for ref in tracer.symbols:
            left = ref()
            if left is not None:
                raise errors.TRACE_STORED(what=left.described(), origin=left.history(), holder=checks.holder(left))


def is_alive(node: object) -> bool:
    """Tell whether the whole graph is alive: no backward pass has freed a part of it."""
    seen, waiting = set(), [node]
    while waiting:
        one = waiting.pop()
        if isinstance(one, Node) and id(one) not in seen:
            seen.add(id(one))
            if type(one.saved) is Freed:
                return False
            waiting.extend(one.parents)
    return True


def _split(feeds: list[Feed]) -> tuple[list[Feed], list[Callable[[], object]]]:
    """Separate feeds that run after the program from those that must run before it."""
    last = max((at for at, feed in enumerate(feeds) if feed.var is not None), default=-1)
    return feeds[: last + 1], [feed.draw for feed in feeds[last + 1 :]]
