"""One call of a function, traced and then evaluated: every value, every cotangent, and the modules they belong to."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from glassgrad.base.drawing.graph import Path
from glassgrad.compile.front.calls.captured import Capture
from glassgrad.compile.front.calls.parameters import Args, Function, Kwargs, parameter_names
from glassgrad.compile.front.capture import TRACING_LOCK, capture
from glassgrad.compile.front.tracer import Tracer
from glassgrad.compile.ir.evaluate import evaluate
from glassgrad.compile.ir.graph import Operand, Var
from glassgrad.compile.source.readable import ByTape, arrays_of
from glassgrad.engine.mode import MODE
from glassgrad.engine.scope import ModuleCalls, Scope
from glassgrad.ops.core import Array


@dataclass
class Seen:
    """A traced call.

    Attributes:
        captured: the trace.
        gradients: inputs and their gradients; a gradient that depends on nothing is an array.
        values: every value of the graph; empty where the call was not evaluated.
        arrays: the inputs of the graph.
        modules: the calls of modules in which an instruction was applied, by the identity of its origin.
        kinds: the class of each module, by path.
    """

    captured: Capture
    gradients: list[tuple[Var, Array]]
    values: dict[Var, Array] = field(default_factory=dict)
    arrays: list[Array] = field(default_factory=list)
    modules: dict[int, Path] = field(default_factory=dict)
    kinds: dict[Path, str] = field(default_factory=dict)

    def value(self, operand: Operand) -> Array | None:
        """Return the array of a value, if the call was evaluated; a number is its own."""
        return self.values.get(operand) if isinstance(operand, Var) else operand


def see(function: Function, args: Args, kwargs: Kwargs) -> Seen:
    """Trace a call and compute everything in it; state, gradients and random numbers are restored afterwards.

    If the function returns a loss and does not compute its gradient, the backward pass is added.

    Raises:
        CompileError: when the function cannot be traced as it is written.
    """
    options = dict(kwargs)
    named = dict(zip(parameter_names(function), args, strict=False)) | options
    calls = _TracedCalls(Scope.of_call(function, named).modules)
    by_tape = ByTape()
    # Undo the trace while modules are still hooked: undoing restores attributes that the trace has seen.
    with TRACING_LOCK, calls.seen():
        captured = capture(
            function, args, options, names=parameter_names(function), follow_results=False, after=by_tape
        )
        modules, kinds = calls.modules(), dict(calls.kinds)  # undoing the trace empties the records it made
        try:
            arrays = arrays_of(captured, args, options)
        finally:
            if captured.undo is not None:
                captured.undo()
    held = [arrays[var] for var in captured.graph.inputs]
    values = evaluate(captured.graph, held)
    gradients = [*captured.gradients, *by_tape.gradients]
    return Seen(captured, gradients, values, held, modules, kinds)


def from_trace(captured: Capture) -> Seen:
    """Return a trace without values, for a call whose arguments no longer exist."""
    return Seen(captured, list(captured.gradients))


class _TracedCalls(ModuleCalls):
    """Notes the number of instructions at the begin and the end of every module call."""

    def __init__(self, modules: list[tuple[str, Any]]) -> None:
        super().__init__(modules)
        self._tracer: Tracer | None = None
        self._changes: list[tuple[int, Path]] = []

    def changed(self) -> None:
        if isinstance(MODE.observer, Tracer):
            self._tracer = MODE.observer
            self._changes.append((len(self._tracer.builder.instrs), self.path))

    def modules(self) -> dict[int, Path]:
        """Return the calls in which each instruction was applied, by the identity of its origin."""
        found: dict[int, Path] = {}
        if self._tracer is None:
            return found
        instrs = self._tracer.builder.instrs
        ends = [at for at, _ in self._changes[1:]] + [len(instrs)]
        for (begin, path), end in zip(self._changes, ends, strict=True):
            found.update((id(instr.where), path) for instr in instrs[begin:end])
        return found
