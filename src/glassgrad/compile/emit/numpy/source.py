"""The body of a readable program: forward lines as the user wrote them, backward lines as on a blackboard."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from glassgrad import errors
from glassgrad.compile.emit.numpy import text
from glassgrad.compile.emit.numpy.differentiate import Derived
from glassgrad.compile.emit.numpy.names import Namer, identifier
from glassgrad.compile.emit.numpy.reading import READING
from glassgrad.compile.emit.numpy.recognise import FORMULAS
from glassgrad.compile.emit.numpy.runs import Run, assigned, forward_runs
from glassgrad.compile.emit.numpy.templates import HELPERS
from glassgrad.compile.emit.numpy.text import Text
from glassgrad.compile.graph import Graph, Instr, Operand, Var
from glassgrad.compile.origin import FORWARD, GATHER, Origin
from glassgrad.ops.core import REGISTRY
from glassgrad.ops.places import IndexArray

_LARGE = 16  # an expression of more operations than this is not put into another one


@dataclass(eq=False)
class Line:
    """One assignment of the program (some take two lines of Python).

    Attributes:
        code: the Python, without indentation.
        comment: shape, or the forward line and rule it belongs to.
        section: "forward", "backward", or "update".
        instr: the instruction it ends with.
    """

    code: list[str]
    comment: str
    section: str
    instr: Instr | None = None


@dataclass(eq=False)
class Body:
    """The lines of a program.

    Attributes:
        names: the names of all values that have one.
        helpers: functions of `helpers.py` that it calls.
        large: constants that have to be passed in.
    """

    lines: list[Line] = field(default_factory=list)
    names: dict[Var, str] = field(default_factory=dict)
    helpers: set[str] = field(default_factory=set)
    large: dict[Var, Any] = field(default_factory=dict)


class BodyWriter:
    """Writes the lines of a program with a forward and a backward pass, in the order of its instructions."""

    def __init__(self, derived: Derived, input_names: Mapping[Var, str], *, aliases: bool = True) -> None:
        self.derived = derived
        self.with_aliases = aliases
        self.graph: Graph = derived.graph
        self.body = Body(names=dict(input_names))
        self.namer = Namer(input_names.values())
        self.constants = dict(self.graph.constants)
        self.users = self.graph.users()
        self.uses = Counter(operand for instr in self.graph.instrs for operand in instr.reads())
        self.uses.update(self.graph.results())
        self.producer = self.graph.producers()
        self.targets = {value: target for target, value in self.graph.updates}
        self.inline: dict[Var, Text] = {}
        self.written: set[Var] = set()
        self.size: dict[Var, int] = {}
        self.given: set[Var] = set()
        self.run_of: dict[Instr, Run] = {}

    def write(self) -> Body:
        """Return the lines."""
        forward = [instr for instr in self.graph.instrs if role_of(instr) == FORWARD]
        backward = [instr for instr in self.graph.instrs if role_of(instr) != FORWARD]
        self._name_forward(forward_runs(forward))
        for instr in backward:
            made = self.derived.forward_of(instr)
            if made is not None and made in self.run_of:
                self.run_of[instr] = self.run_of[made]
        self._name_backward()
        self._write_lines(set(backward))
        self._write_updates()
        return self.body

    def _write_lines(self, backward: set[Instr]) -> None:
        begun: set[Run] = set()
        section = "forward"
        for instr in self.graph.instrs:
            if instr not in backward:
                section = "forward" if section == "forward" else "update"
                self._line(instr, section, self._shape_comment(instr))
                continue
            section = "backward"
            run = self.run_of.get(instr)
            if self.with_aliases and run is not None and run not in begun:
                begun.add(run)
                self._aliases(run)
            self._line(instr, section, self._rule_comment(instr))

    # --- names ----------------------------------------------------------------------------------------

    def _name_forward(self, runs: Sequence[Run]) -> None:
        first = self.graph.outputs[0] if self.graph.outputs else None
        for run in runs:
            for instr in run.instrs:
                self.run_of[instr] = run
            for var, name in assigned(run, self.users).items():
                if var not in self.targets:
                    self.given.add(var)
                    # What the function itself returns gets no name from whoever called it.
                    self.body.names[var] = self.namer.take("loss" if var is first and run.statement.returns else name)
            last = run.instrs[-1].outputs[0]
            if run.statement.returns and last is first and last not in self.body.names:
                self.body.names[last] = self.namer.take("loss")

    def _name_backward(self) -> None:
        for value, total in self.derived.cotangents.items():
            if value in self.body.names:
                self._name_total(total, self.body.names[value])
        for leaf, gradient in self.derived.gradients:
            self._name_total(gradient, self.body.names.get(leaf) or leaf.name or "input")

    def _name_total(self, total: Var, of: str) -> None:
        """Name a cotangent and the partial sums that lead up to it."""
        if total in self.body.names or total in self.constants:
            return
        name = self.namer.take(f"d{of}")
        self.body.names[total] = name
        instr = self.producer.get(total)
        while instr is not None and role_of(instr) == GATHER and instr.op == "add":
            partial = instr.inputs[0]
            if not isinstance(partial, Var) or partial in self.body.names or self.uses[partial] != 1:
                return
            self.body.names[partial] = name
            instr = self.producer.get(partial)

    def name(self, var: Var, instr: Instr) -> str:
        """Return the name of a value, made up if nobody gave it one."""
        if var not in self.body.names:
            self.body.names[var] = self.namer.take(identifier(self._hint(var, instr)))
        return self.body.names[var]

    def _hint(self, var: Var, instr: Instr) -> str:
        where = instr.where
        run = self.run_of.get(instr)
        if var in self.targets:
            return f"new_{self.body.names.get(self.targets[var], 'state')}"
        if role_of(instr) != FORWARD:
            return f"d_{where.rule}"
        inner = where.inner_variable if isinstance(where, Origin) else None
        if inner is not None and inner.isidentifier() and len(inner) > 1:
            return inner
        return f"{run.statement.targets[0]}_arg" if run is not None and run.statement.targets else instr.op

    def _aliases(self, run: Run) -> None:
        """Give cotangents that passed through unchanged the name of what they belong to now."""
        for instr in run.instrs:
            for var in instr.outputs:
                total = self.derived.cotangents.get(var)
                name = self.body.names.get(var)
                if total is None or name is None or total not in self.written or var not in self.given:
                    continue
                before, wanted = self.body.names[total], f"d{name}"
                if before != wanted and self.namer.free(wanted):
                    self.body.names[total] = self.namer.take(wanted)
                    self.body.lines.append(Line([f"{wanted} = {before}"], self._passed_through(var), "backward"))

    def _passed_through(self, var: Var) -> str:
        users = [user for user in self.users.get(var, ()) if role_of(user) == FORWARD and user in self.run_of]
        return f"{self.run_of[users[0]].text}   [passes through]" if users else ""

    # --- lines ----------------------------------------------------------------------------------------

    def _line(self, instr: Instr, section: str, comment: str) -> None:
        out = instr.outputs[0]
        if instr.op == "put_add":
            self.written.add(out)
            self.body.lines.append(Line(self._scatter(instr), comment, section, instr))
            return
        written = self.expression(instr)
        # Counted in operations, not characters, so that every layer is cut up alike.
        self.size[out] = 1 + sum(self.size[operand] for operand in instr.reads() if operand in self.inline)
        if len(instr.outputs) == 1 and self._goes_inline(instr):
            self.inline[out] = written
            return
        targets = ", ".join(self.name(var, instr) for var in instr.outputs)
        self.written.update(instr.outputs)
        self.body.lines.append(Line([self._assignment(instr, targets, written)], comment, section, instr))

    def _assignment(self, instr: Instr, target: str, written: Text) -> str:
        if role_of(instr) == GATHER and instr.op == "add" and isinstance(instr.inputs[0], Var):
            before = instr.inputs[0]
            if self.body.names.get(before) == target and before not in self.inline and self._owns(before):
                return f"{target} += {self.operand(instr.inputs[1]).code}"
        return f"{target} = {written.code}"

    def _owns(self, var: Var) -> bool:
        """Tell whether a value has memory of its own, so that adding to it in place changes nothing else."""
        instr = self.producer.get(var)
        return instr is not None and not REGISTRY[instr.op].is_view and instr.op not in {"getitem", "astype"}

    def _goes_inline(self, instr: Instr) -> bool:
        out = instr.outputs[0]
        if out in self.body.names or self.uses[out] != 1 or self.size[out] > _LARGE:
            return False
        if out in self.targets:
            return not self._reads_other_state(out, self.targets[out])
        users = self.users.get(out, [])
        if len(users) != 1:
            return False
        return users[0].op == "put_add" or self.run_of.get(instr) is self.run_of.get(users[0])

    def _reads_other_state(self, value: Var, own: Var) -> bool:
        """Tell whether an expression reads state that is written before it would be, at the end of the program."""
        written = {target for target, _ in self.graph.updates if target is not own}
        stack, seen = [value], set()
        while stack:
            var = stack.pop()
            instr = self.producer.get(var)
            if var in seen or instr is None or (var is not value and var not in self.inline):
                if var in written:
                    return True
                continue
            seen.add(var)
            stack.extend(instr.reads())
        return False

    def _scatter(self, instr: Instr) -> list[str]:
        """Zeros, and adding to them: `+=` where no place is met twice, np.add.at elsewhere."""
        g, *arrays = map(self.operand, instr.inputs)
        spec, shape = instr.params["spec"], instr.params["shape"]
        target = self.name(instr.output, instr)
        key = text.index(spec, arrays)
        first = f"{target} = np.zeros({text.literal(tuple(shape))}, {text.literal(instr.output.dtype)})"
        if not arrays or self._distinct(instr):
            return [first, f"{target}[{key}] += {g.code}"]
        place = arrays[0].code if len(spec) == 1 else f"np.index_exp[{key}]"
        return [first, f"np.add.at({target}, {place}, {g.code})"]

    def _distinct(self, instr: Instr) -> bool:
        """Tell whether one of the index arrays counts up, so that no place comes twice."""
        if any(type(part) is not IndexArray for part in instr.params["spec"]):
            return False
        known = [self.constants.get(operand) for operand in instr.inputs[1:] if isinstance(operand, Var)]
        return any(array is not None and array.ndim == 1 and np.unique(array).size == array.size for array in known)

    def _write_updates(self) -> None:
        for target, value in self.graph.updates:
            name = self.body.names[target]
            made = self.producer.get(value)
            if value in self.inline and made is not None and made.op in _IN_PLACE and made.inputs[0] is target:
                code = f"{name} {_IN_PLACE[made.op]}= {self.operand(made.inputs[1]).code}"
            else:
                code = f"{name}[...] = {self.operand(value).code}"
            self.body.lines.append(Line([code], str(target.shape) if target.shape else "scalar", "write back", made))

    # --- expressions ----------------------------------------------------------------------------------

    def expression(self, instr: Instr) -> Text:
        """Return an instruction as an expression."""
        template = READING.get(instr.op)
        if template is None:
            place = instr.where.place if isinstance(instr.where, Origin) else "an unknown line"
            raise errors.NO_SOURCE(op=instr.op, where=place)
        written = template(instr, [self.operand(operand) for operand in instr.inputs])
        called = written.code.partition("(")[0]
        if called in HELPERS:
            self.body.helpers.add(called)
        return written

    def operand(self, operand: Operand) -> Text:
        """Return an operand as text."""
        if not isinstance(operand, Var):
            return text.number(operand)
        if operand in self.inline:
            return self.inline[operand]
        if operand in self.body.names:
            return Text(self.body.names[operand])
        if operand in self.constants:
            return self._constant(operand)
        return Text(self.name(operand, self.producer[operand]))

    def _constant(self, var: Var) -> Text:
        """Write a constant array, if it is short or has a pattern; otherwise it is passed in."""
        value = self.constants[var]
        written = constant_text(value)
        if written is None:
            self.body.names[var] = self.namer.take("constant")
            self.body.large[var] = value
            return Text(self.body.names[var])
        return written

    # --- comments -------------------------------------------------------------------------------------

    def _shape_comment(self, instr: Instr) -> str:
        return ", ".join(str(var.shape) if var.shape else "scalar" for var in instr.outputs)

    def _rule_comment(self, instr: Instr) -> str:
        run = self.run_of.get(instr)
        made = self.derived.forward_of(instr)
        if run is None or made is None:
            return self._shape_comment(instr)
        formula = FORMULAS.get(instr.where.rule)
        rule = rule_text(made, instr.where.argument) if formula is None else formula.rule
        return f"{run.text}   [{rule}]"


_IN_PLACE = {"subtract": "-", "add": "+", "multiply": "*"}


def rule_text(made: Instr, argument: int | None) -> str:
    """Name a forward op and its derivative, for one argument if there is one formula for each."""
    prim = REGISTRY.get(made.op)
    derivative = prim.derivative if prim is not None else ""
    parts = derivative.split(", ")
    if argument is not None and len(parts) == len(made.inputs):
        derivative = parts[argument]
    return f"{made.op}: {derivative}" if derivative else made.op


def role_of(instr: Instr) -> str:
    """Return the role of an instruction in the trace."""
    return instr.where.role if isinstance(instr.where, Origin) else FORWARD


def constant_text(value: Any) -> Text | None:
    """Write an array as NumPy would make it; None when that would be long."""
    if value.ndim == 0:
        return text.call(text.literal(value.dtype), value.item())
    flat = value.reshape(-1)
    if flat.size and (flat == flat[0]).all():
        return text.call("np.full", value.shape, flat[0].item(), value.dtype)
    if value.ndim == 1 and value.dtype.kind == "i" and (np.diff(value) == 1).all():
        start = int(value[0])
        return text.call("np.arange", *([start, start + value.size] if start else [value.size]))
    if value.ndim == 2 and value.shape[0] == value.shape[1] and (value == np.eye(len(value))).all():
        return text.call("np.eye", len(value), dtype=value.dtype)
    if value.ndim == 2 and value.dtype == bool and (value == np.tril(np.ones_like(value))).all():
        return text.call("np.tril", text.call("np.ones", value.shape, value.dtype))
    if flat.size <= 16:
        return text.call("np.array", value.tolist(), value.dtype)
    return None
