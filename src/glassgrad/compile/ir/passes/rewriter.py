"""The helper of passes: copy a graph instruction by instruction and replace some values."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from glassgrad.compile.ir.graph import Graph, Instr, Operand, Var, all_vars
from glassgrad.compile.ir.passes.rules import Letter, Pattern, Rules, fits
from glassgrad.ops.core import PRIMITIVES, Array


class Rewriter:
    """Collects the instructions of a new graph.

    Attributes:
        instrs: the new instructions so far.
        constants: the new constants.
        known: the array behind each constant Var.
        producer: the new instruction behind each Var.
        opaque: values whose producers rewrites may not inspect, because they must stay visible.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.instrs: list[Instr] = []
        self.constants: list[tuple[Var, Array]] = list(graph.constants)
        self.known: dict[Var, Array] = dict(graph.constants)
        self.producer: dict[Var, Instr] = {}
        self.opaque: set[Var] = set()
        self._instead: dict[Var, Operand] = {}
        self._shared: dict[Hashable, Var] = {}

    @cached_property
    def uses(self) -> Counter[Operand]:
        """How often each value of the old graph is read or returned."""
        found: Counter[Operand] = Counter(operand for instr in self.graph.instrs for operand in instr.reads())
        found.update(self.graph.results())
        return found

    @cached_property
    def _numbers(self) -> Iterator[int]:
        return itertools.count(1 + max((var.id for var in all_vars(self.graph)), default=-1))

    def now(self, operand: Operand) -> Operand:
        """Return the new graph's value for an operand of the old graph."""
        while isinstance(operand, Var) and operand in self._instead:
            operand = self._instead[operand]
        return operand

    def behind(self, operand: Operand) -> Instr | None:
        """Return the instruction that computes an operand, for a rewrite to inspect."""
        return self.producer.get(operand) if isinstance(operand, Var) and operand not in self.opaque else None

    def updated(self, instr: Instr) -> Instr:
        """Return an instruction of the old graph with its operands replaced by new values."""
        if self._instead.keys().isdisjoint(instr.reads()):
            return instr
        return replace(instr, inputs=tuple(map(self.now, instr.inputs)))

    def keep(self, instr: Instr) -> Instr:
        """Append an instruction of the old graph."""
        return self.append(self.updated(instr))

    def append(self, instr: Instr) -> Instr:
        """Append an instruction unchanged."""
        self.instrs.append(instr)
        for var in instr.outputs:
            self.producer[var] = instr
        return instr

    def instead(self, old: Var, new: Operand) -> None:
        """Replace a value of the old graph by `new`."""
        self._instead[old] = new
        if old in self.opaque and isinstance(new, Var):
            self.opaque.add(new)

    def apply(self, op: str, *inputs: Operand, like: Instr | None = None, **params: Any) -> Var:
        """Append a new instruction; its type follows from the primitive, its origin from `like`."""
        with np.errstate(all="ignore"):  # only the types matter, of computations on placeholders
            aval = PRIMITIVES[op].abstract(*inputs, **params)
        var = self.var(aval.shape, aval.dtype)
        self.append(Instr(op, tuple(inputs), (var,), params, None if like is None else like.where))
        return var

    # --- rules ------------------------------------------------------------------------------------

    def rewrite(self, rules: Rules, only: Callable[[Instr], bool] | None = None, *, again: bool = True) -> Rewriter:
        """Copy the graph with the rules applied to the instructions that `only` chooses, operands first; return self.

        With `again` they are also applied to their own results, until none fits.
        """
        for instr in self.graph.instrs:
            made = self.updated(instr)
            chosen = rules[instr.op] and len(made.outputs) == 1 and (only is None or only(instr))
            better = self._better(made, rules, again) if chosen else None
            if better is None:
                self.append(made)
            else:
                self.instead(made.output, self.simplest(better, rules) if again else better)
        return self

    def simplest(self, value: Operand, rules: Rules) -> Operand:
        """Return a value after all fitting rules are applied."""
        instr = self.producer.get(value) if isinstance(value, Var) else None
        while instr is not None and len(instr.outputs) == 1:
            better = self._better(instr, rules, again=True)
            if better is None:
                break
            value, instr = better, self.producer.get(better)
        return value

    def _better(self, instr: Instr, rules: Rules, again: bool) -> Var | None:
        """Return the replacement of an instruction's result by the first rule that fits."""
        for rule in rules[instr.op]:
            values: dict[str, Any] = {}
            match = rule.match
            if match is not None and not (self._may_fit(match, instr) and fits(match, instr, self.behind, values)):
                continue
            if rule.when is not None and not rule.when(self, instr):
                continue
            if callable(rule.build):
                made = rule.build(self, instr, *(instr.inputs if rule.match is None else values.values()))
            else:
                made = self._build(rule.build, values, instr, rules if again else None)
            wanted = instr.output
            if isinstance(made, Var) and made.shape == wanted.shape and made.dtype == wanted.dtype:
                return made
        return None

    def _may_fit(self, pattern: Pattern, instr: Instr) -> bool:
        """Tell whether the operands have the kinds in a pattern: a quick test that most fail."""
        for part, value in zip(pattern.args, instr.inputs, strict=False):
            if type(part) is Letter:
                continue
            if (type(part) is Pattern) is not isinstance(value, Var):
                return False
            if type(part) is Pattern:
                behind = self.behind(value)
                if behind is None or behind.op != part.op:
                    return False
        return True

    def _build(self, pattern: Any, values: Mapping[str, Operand], like: Instr, rules: Rules | None) -> Operand:
        if not isinstance(pattern, Pattern):
            return values[pattern.name] if isinstance(pattern, Letter) else pattern
        args = [self._build(arg, values, like, rules) for arg in pattern.args]
        if rules is not None:
            args = [
                self.simplest(x, rules) if type(arg) is Pattern else x
                for arg, x in zip(pattern.args, args, strict=True)
            ]
        return self.apply(pattern.op, *args, like=like, **(like.params if pattern.op == like.op else {}))

    # --- values -----------------------------------------------------------------------------------

    def var(self, shape: Sequence[int], dtype: DTypeLike, name: str | None = None) -> Var:
        """Return a new Var."""
        return Var(next(self._numbers), tuple(shape), np.dtype(dtype), name)

    def constant(self, value: Array, name: str | None = None) -> Var:
        """Return a constant; equal small arrays share one."""
        array = np.asarray(value)
        key = (array.dtype, array.shape, array.tobytes() if array.nbytes <= 4096 else id(value))
        if key not in self._shared:
            var = self._shared[key] = self.var(array.shape, array.dtype, name)
            self.constants.append((var, array))
            self.known[var] = array
        return self._shared[key]

    def finish(
        self, outputs: Sequence[Operand] | None = None, updates: Sequence[tuple[Var, Var]] | None = None
    ) -> Graph:
        """Return the new graph without unused constants; its results default to those of the old one."""
        given = self.graph.outputs if outputs is None else outputs
        written = self.graph.updates if updates is None else updates
        outputs = tuple(map(self.now, given))
        updates = tuple((target, self._var(self.now(value))) for target, value in written)
        constants = self._constants_read(outputs, updates)
        return Graph(self.graph.inputs, tuple(self.instrs), outputs, constants, updates, self.graph.name)

    def _constants_read(
        self, outputs: Sequence[Operand], updates: Sequence[tuple[Var, Var]]
    ) -> tuple[tuple[Var, Array], ...]:
        if not self.constants:
            return ()
        read = {var for instr in self.instrs for var in instr.reads()}
        read.update(out for out in outputs if isinstance(out, Var))
        read.update(value for _, value in updates)
        return tuple((var, value) for var, value in self.constants if var in read)

    def _var(self, operand: Operand) -> Var:
        return operand if isinstance(operand, Var) else self.constant(operand)


def frozen(value: object) -> Hashable:
    """Return a parameter in a hashable form."""
    if isinstance(value, np.ndarray):
        return (str(value.dtype), value.shape, value.tobytes())
    if isinstance(value, list | tuple):
        return tuple(map(frozen, value))
    if isinstance(value, Mapping):
        return tuple((key, frozen(value[key])) for key in sorted(value))
    # 1, 1.0 and True are equal as keys but differ as parameters.
    return (type(value).__name__, value)
