"""The body of a readable program: forward lines as the user wrote them, backward lines as on a blackboard."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from glassgrad import errors
from glassgrad.compile.emit.numpy import text
from glassgrad.compile.emit.numpy.differentiate import Derived
from glassgrad.compile.emit.numpy.hints import constant_hint, hint
from glassgrad.compile.emit.numpy.lines import Body, Line, role_of, rule_text
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

_SHORT = 16  # characters of a constant that may be written more than once
_LARGE = 16  # an expression of more operations than this is not put into another one


class BodyWriter:
    """Writes the lines of a program with a forward and a backward pass, in the order of its instructions."""

    def __init__(self, derived: Derived, input_names: Mapping[Var, str], *, aliases: bool = True) -> None:
        self.derived = derived
        self.with_aliases = aliases
        self.graph: Graph = derived.graph
        self.namer = Namer(input_names.values())
        self.body = Body(names=dict(input_names), base=self.namer.base)
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
        self.value_of: dict[Var, Var] = {}
        self.line_of: dict[Instr, Line] = {}
        self.constant_lines: list[Line] = []
        self.scatters: dict[Operand, Instr] = {}

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
        self.body.lines[:0] = self.constant_lines
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
            if last is first and last not in self.body.names:
                self.body.names[last] = self.namer.take("loss")

    def _name_backward(self) -> None:
        for value, total in self.derived.cotangents.items():
            if value in self.body.names:
                self._name_total(total, self.body.names[value])
            self._note_value(total, value)
        for leaf, gradient in self.derived.gradients:
            self._name_total(gradient, self.body.names.get(leaf) or leaf.name or "input")

    def _name_total(self, total: Var, of: str) -> None:
        """Name a cotangent and the partial sums that lead up to it."""
        if total in self.body.names or total in self.constants:
            return
        name = self.namer.take(f"d{of}", f"d{self.namer.base.get(of, of)}")
        self.body.names[total] = name
        instr = self.producer.get(total)
        while instr is not None and role_of(instr) == GATHER and instr.op == "add":
            partial = instr.inputs[0]
            if not isinstance(partial, Var) or partial in self.body.names or self.uses[partial] != 1:
                return
            self.body.names[partial] = name
            instr = self.producer.get(partial)

    def _note_value(self, total: Var, value: Var) -> None:
        """Note what a cotangent and the partial sums that lead up to it are for."""
        self.value_of.setdefault(total, value)
        instr = self.producer.get(total)
        while instr is not None and role_of(instr) == GATHER and instr.op == "add":
            partial = instr.inputs[0]
            if not isinstance(partial, Var) or self.uses[partial] != 1:
                return
            self.value_of.setdefault(partial, value)
            instr = self.producer.get(partial)

    def name(self, var: Var, instr: Instr) -> str:
        """Return the name of a value, made up if nobody gave it one."""
        if var not in self.body.names:
            self.body.names[var] = self.namer.take(identifier(self._hint(var, instr)))
        return self.body.names[var]

    def _hint(self, var: Var, instr: Instr) -> str:
        if var in self.targets:
            return f"new_{self.body.names.get(self.targets[var], 'state')}"
        if role_of(instr) == FORWARD:
            return hint(var, instr, self.run_of.get(instr), self.users)
        value = self.value_of.get(var)
        if value is not None:
            return f"d{self._called(value)}"
        ruled = self.derived.forward_of(instr)
        sources = [operand for operand in ruled.inputs if isinstance(operand, Var)] if ruled is not None else []
        at = instr.where.argument if isinstance(instr.where, Origin) else None
        if ruled is None or not sources:
            return f"d_{instr.where.rule}"
        source = ruled.inputs[at] if at is not None and at < len(ruled.inputs) else sources[0]
        return f"d{self._called(source if isinstance(source, Var) else sources[0])}_part"

    def _called(self, value: Var) -> str:
        """Return the name of a value of the forward pass, or what it would be."""
        name = self.body.names.get(value)
        made = self.producer.get(value)
        if name is not None or made is None:
            return self.namer.base.get(name, name) if name is not None else value.name or "input"
        return hint(value, made, self.run_of.get(made), self.users)

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
                    self.body.names[total] = self.namer.take(wanted, f"d{self.namer.base.get(name, name)}")
                    line = Line([f"{wanted} = {before}"], "[passes through]", "backward", None, run)
                    line.owner, line.source = self.line_of.get(instr), self._passed_through(var)
                    self.body.lines.append(line)

    def _passed_through(self, var: Var) -> str:
        users = [user for user in self.users.get(var, ()) if role_of(user) == FORWARD and user in self.run_of]
        return self.run_of[users[0]].text if users else ""

    # --- lines ----------------------------------------------------------------------------------------

    def _line(self, instr: Instr, section: str, comment: str) -> None:
        out = instr.outputs[0]
        if self._scattered_into(instr) is not None:
            self.scatters[out] = instr
            return
        if instr.op == "add" and instr.inputs[1] in self.scatters:
            self._add(Line(self._scatter_more(instr), comment, section, instr))
            return
        if instr.op == "put_add":
            self.written.add(out)
            self._add(Line(self._scatter(instr), comment, section, instr))
            return
        written = self.expression(instr)
        # Counted in operations, not characters, so that every layer is cut up alike.
        self.size[out] = 1 + sum(self.size[operand] for operand in instr.reads() if operand in self.inline)
        if len(instr.outputs) == 1 and self._goes_inline(instr):
            self.inline[out] = written
            return
        targets = ", ".join(self.name(var, instr) for var in instr.outputs)
        self.written.update(instr.outputs)
        self._add(Line([self._assignment(instr, targets, written)], comment, section, instr))

    def _add(self, line: Line) -> None:
        """Append a line, and note what belongs to it."""
        assert line.instr is not None
        line.run = self.run_of.get(line.instr)
        made = self.derived.forward_of(line.instr) if line.section == "backward" else None
        line.owner = self.line_of.get(made) if made is not None else None
        line.source = line.run.text if made is not None and line.run is not None else ""
        stack = [line.instr]
        while stack:
            instr = stack.pop()
            self.line_of[instr] = line
            parts = [var for var in instr.reads() if var in self.inline or var in self.scatters]
            stack += [self.producer[var] for var in parts if self.producer[var] not in self.line_of]
        self.body.lines.append(line)

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
        if self._is_part_of_input(instr):
            return True
        if out in self.body.names or self.uses[out] != 1 or self.size[out] > _LARGE:
            return False
        if out in self.targets:
            return not self._reads_other_state(out, self.targets[out])
        users = self.users.get(out, [])
        if len(users) != 1:
            return False
        return users[0].op == "put_add" or self._belong_together(instr, users[0])

    def _is_part_of_input(self, instr: Instr) -> bool:
        """Tell whether a value is a plain slice of an argument, which a person would not name."""
        whole = instr.inputs[0]
        sliced = instr.op == "getitem" and len(instr.inputs) == 1 and whole in self.graph.inputs
        return sliced and instr.output not in self.body.names and instr.output not in self.targets

    def _scattered_into(self, instr: Instr) -> Instr | None:
        """Return the sum that zeros with something added at an index are for, if it can be added there instead."""
        out = instr.outputs[0]
        users = self.users.get(out, [])
        if instr.op != "put_add" or out in self.body.names or self.uses[out] != 1 or len(users) != 1:
            return None
        total, partial = users[0], users[0].inputs[0]
        if role_of(total) != GATHER or total.op != "add" or total.inputs[1] is not out or not isinstance(partial, Var):
            return None
        if partial in self.inline or partial in self.constants or self.uses[partial] != 1 or not self._owns(partial):
            return None
        return total if partial in self.written else None

    def _belong_together(self, instr: Instr, user: Instr) -> bool:
        """Tell whether two instructions come of one execution of a statement; in the backward pass, of one line."""
        if self.run_of.get(instr) is not self.run_of.get(user):
            return False
        if role_of(instr) == FORWARD:
            return True
        made, by = self.derived.forward_of(instr), self.derived.forward_of(user)
        return made is None or by is None or self.line_of.get(made) is self.line_of.get(by)

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
        target = self.name(instr.output, instr)
        first = f"{target} = np.zeros({text.literal(tuple(instr.params['shape']))}, {text.literal(instr.output.dtype)})"
        return [first, self._scattering(instr, target)]

    def _scatter_more(self, instr: Instr) -> list[str]:
        """Add at an index to what is a sum already."""
        partial = instr.inputs[0]
        assert isinstance(partial, Var)
        scatter = self.scatters[instr.inputs[1]]
        if instr.output not in self.body.names:
            self.body.names[instr.output] = self.body.names[partial]
        target = self.body.names[instr.output]
        alias = [] if target == self.body.names[partial] else [f"{target} = {self.body.names[partial]}"]
        self.written.add(instr.output)
        return [*alias, self._scattering(scatter, target)]

    def _scattering(self, instr: Instr, target: str) -> str:
        g, *arrays = map(self.operand, instr.inputs)
        spec = instr.params["spec"]
        key = text.index(spec, arrays)
        if not arrays or self._distinct(instr):
            return f"{target}[{key}] += {g.code}"
        place = arrays[0].code if len(spec) == 1 else f"np.index_exp[{key}]"
        return f"np.add.at({target}, {place}, {g.code})"

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
        written = self._as_written(instr) or template(instr, [self.operand(operand) for operand in instr.inputs])
        called = written.code.partition("(")[0]
        if called in HELPERS:
            self.body.helpers.add(called)
        return written

    def _as_written(self, instr: Instr) -> Text | None:
        """Write products as a person would: a mean, a division by a count, a square."""
        if instr.op != "multiply":
            return None
        first, second = instr.inputs if isinstance(instr.inputs[0], Var) else reversed(instr.inputs)
        rest, power = first, 1
        while isinstance(second, Var) and rest is not second and self._is_product_with(rest, second):
            rest, power = self.producer[rest].inputs[0], power + 1  # type: ignore[index]  # a product is made
        if rest is second or power > 1:
            raised = Text(f"{self.operand(second).at(text.POWER + 1)}**{power + (rest is second)}", text.POWER)
            return raised if rest is second else text.binary(self.operand(rest), "*", raised, text.PRODUCT)
        if not isinstance(first, Var):
            return None
        summed = self.producer.get(first) if first in self.inline else None
        whole = summed.inputs[0] if summed is not None and summed.op == "sum" else None
        if summed is not None and isinstance(whole, Var) and second == first.size / max(whole.size, 1):
            return READING["mean"](summed, [self.operand(whole)])
        count = text.count_of(second)
        return None if count is None else text.binary(self.operand(first), "/", Text(str(count)), text.PRODUCT)

    def _is_product_with(self, operand: Operand, factor: Var) -> bool:
        made = self.producer.get(operand) if isinstance(operand, Var) and operand in self.inline else None
        return made is not None and made.op == "multiply" and made.inputs[1] is factor

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
        """Write a constant array where it is used, or give it a line, or let it be passed in."""
        value = self.constants[var]
        written = text.constant(value)
        if written is not None and (self.uses[var] == 1 or len(written.code) <= _SHORT or "arange" in written.code):
            return written
        name = self.namer.take(constant_hint(value, self.users.get(var, ()), self._said()))
        self.body.names[var] = name
        if written is None:
            self.body.large[var] = value
        else:
            self.constant_lines.append(Line([f"{name} = {written.code}"], str(var.shape), "forward"))
        return Text(name)

    def _said(self) -> set[str]:
        """Return what the names in use would be without their numbers."""
        return {self.namer.base.get(name, name) for name in self.body.names.values()}

    # --- comments -------------------------------------------------------------------------------------

    def _shape_comment(self, instr: Instr) -> str:
        return ", ".join(str(var.shape) if var.shape else "scalar" for var in instr.outputs)

    def _rule_comment(self, instr: Instr) -> str:
        instr = self._contribution(instr)
        made = self.derived.forward_of(instr)
        if self.run_of.get(instr) is None or made is None:
            return self._shape_comment(instr)
        formula = FORMULAS.get(instr.where.rule)
        rule = rule_text(made, instr.where.argument) if formula is None else formula.rule
        return f"[{rule}]"

    def _contribution(self, instr: Instr) -> Instr:
        """Return the instruction whose rule made what a line adds to a sum."""
        added = instr.inputs[1] if role_of(instr) == GATHER and instr.op == "add" else None
        through = isinstance(added, Var) and (added in self.inline or added in self.scatters)
        return self.producer[added] if through and isinstance(added, Var) else instr


_IN_PLACE = {"subtract": "-", "add": "+", "multiply": "*"}
