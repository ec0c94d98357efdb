"""The body of a readable program: forward lines as the user wrote them, then the backward lines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from glassgrad.compile.front.origin import FORWARD, GATHER, Origin
from glassgrad.compile.ir.graph import Instr, Operand, Var
from glassgrad.compile.numpy import text
from glassgrad.compile.numpy.text import Text
from glassgrad.compile.source.differentiate import Derived
from glassgrad.compile.source.expressions import ExpressionWriter
from glassgrad.compile.source.lines import Body, Code, Line, assign, role_of, rule_text
from glassgrad.compile.source.rewriting.recognise import FORMULAS
from glassgrad.compile.source.rewriting.runs import Run, assigned, forward_runs
from glassgrad.compile.source.statements import place_of
from glassgrad.ops.places import IndexArray

_LARGE = 16  # an expression with more operations than this is not inlined


class BodyWriter(ExpressionWriter):
    """Writes the lines of a program with a forward and a backward pass, in the order of its instructions."""

    def __init__(self, derived: Derived, input_names: Mapping[Var, str], *, aliases: bool = True) -> None:
        super().__init__(derived, input_names)
        self.with_aliases = aliases
        self.written: set[Var] = set()
        self.size: dict[Var, int] = {}
        self.given: set[Var] = set()
        self.line_of: dict[Instr, Line] = {}
        self.scatters: dict[Operand, Instr] = {}
        # Places whose results get their own line in some iteration of a loop, and so in every one.
        self.lined = {self._place(instr) for instr in self.graph.instrs if self.uses[instr.outputs[0]] != 1}

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
                    # The caller does not name the function's own result.
                    self.body.names[var] = self.namer.take("loss" if var is first and run.statement.returns else name)
            last = run.instrs[-1].outputs[0]
            if last is first and last not in self.body.names:
                self.body.names[last] = self.namer.take("loss")

    def _name_backward(self) -> None:
        for value, total in self.derived.cotangents.items():
            if value in self.body.names:
                self._name_total(total, self.body.names[value])
            for one in (total, *self._partial_sums(total)):
                self.value_of.setdefault(one, value)
        for leaf, gradient in self.derived.gradients:
            self._name_total(gradient, self.body.names.get(leaf) or leaf.name or "input")

    def _name_total(self, total: Var, of: str) -> None:
        """Name a cotangent and its partial sums."""
        if total in self.body.names or total in self.constants:
            return
        name = self.namer.take(f"d{of}", f"d{self.namer.base.get(of, of)}")
        self.body.names[total] = name
        for partial in self._partial_sums(total):
            if partial.shape != total.shape or partial in self.body.names:
                return
            self.body.names[partial] = name

    def _partial_sums(self, total: Var) -> Iterator[Var]:
        """Yield the sums that lead up to a cotangent and to nothing else."""
        instr = self.producer.get(total)
        while instr is not None and role_of(instr) == GATHER and instr.op in _SUMS:
            partial = instr.inputs[0]
            if not isinstance(partial, Var) or self.uses[partial] != 1:
                return
            yield partial
            instr = self.producer.get(partial)

    def _aliases(self, run: Run) -> None:
        """Rename cotangents that passed through an op unchanged to match the value they belong to now."""
        for instr in run.instrs:
            for var in instr.outputs:
                total = self.derived.cotangents.get(var)
                name = self.body.names.get(var)
                if total is None or name is None or total not in self.written or var not in self.given:
                    continue
                before, wanted = self.body.names[total], f"d{name}"
                if before != wanted and self.namer.free(wanted):
                    self.body.names[total] = self.namer.take(wanted, f"d{self.namer.base.get(name, name)}")
                    line = Line([assign(wanted, Text.token(before))], "[passes through]", "backward", None, run)
                    line.owner, line.source = self.line_of.get(instr), self._passed_through(var)
                    self.body.lines.append(line)

    def _passed_through(self, var: Var) -> str:
        users = [user for user in self.users.get(var, ()) if role_of(user) == FORWARD and user in self.run_of]
        return self.run_of[users[0]].text if users else ""

    # --- lines ----------------------------------------------------------------------------------------

    def _line(self, instr: Instr, section: str, comment: str) -> None:
        out = instr.outputs[0]
        if instr.op == "at_set":
            self._add(Line(self._written_at(instr), comment, section, instr))
            return
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
        # Count operations rather than characters, so that every layer is split in the same way.
        self.size[out] = 1 + sum(self.size[operand] for operand in instr.reads() if operand in self.inline)
        if len(instr.outputs) == 1 and self._goes_inline(instr):
            self.inline[out] = written
            return
        some = len(instr.outputs) > 1
        targets = ["_" if some and not self.uses[var] else self.name(var, instr) for var in instr.outputs]
        self.written.update(instr.outputs)
        self._add(Line([self._assignment(instr, targets, written)], comment, section, instr))

    def _add(self, line: Line) -> None:
        """Append a line, and record the instructions and values that belong to it."""
        assert line.instr is not None
        line.run = self.run_of.get(line.instr)
        made = self.derived.forward_of(line.instr) if line.section == "backward" else None
        line.owner = self.line_of.get(made) if made is not None else None
        line.source = line.run.text if made is not None and line.run is not None else ""
        self._own(line, line.instr)
        self.body.lines.append(line)

    def _own(self, line: Line, instr: Instr) -> None:
        """Note that a line computes an instruction and the instructions inside its expression."""
        stack = [instr]
        while stack:
            instr = stack.pop()
            self.line_of[instr] = line
            parts = [var for var in instr.reads() if var in self.inline or var in self.scatters]
            stack += [self.producer[var] for var in parts if self.producer[var] not in self.line_of]

    def _assignment(self, instr: Instr, targets: Sequence[str], written: Text) -> Code:
        if role_of(instr) == GATHER and instr.op in _SUMS and isinstance(instr.inputs[0], Var):
            before = instr.inputs[0]
            fits = before.shape == instr.output.shape and before not in self.inline and self._owns(before)
            if self.body.names.get(before) == targets[0] and fits:
                return assign(targets[0], self.operand(instr.inputs[1]), f"{_SUMS[instr.op]}=")
        return assign(text.listed(map(Text.token, targets)), written)

    def _owns(self, var: Var) -> bool:
        """Tell whether a value has separate memory, so that adding to it in place changes nothing else."""
        instr = self.producer.get(var)
        return instr is not None and not instr.is_view and instr.op != "astype"

    def _goes_inline(self, instr: Instr) -> bool:
        out = instr.outputs[0]
        if self._is_part_of_input(instr):
            return True
        if out in self.body.names or self.uses[out] != 1 or self.size[out] > _LARGE:
            return False
        if self._place(instr) in self.lined and not self._is_term(instr):
            return False
        if out in self.targets:
            return not self._reads_other_state(out, self.targets[out])
        users = self.users.get(out, [])
        if len(users) != 1:
            return False
        return users[0].op == "put_add" or self._belong_together(instr, users[0])

    def _place(self, instr: Instr) -> object:
        """Return the origin of an instruction, regardless of the loop iteration."""
        made = self.derived.forward_of(instr) if role_of(instr) != FORWARD else None
        if made is None or not isinstance(instr.where, Origin) or instr.where.rule in FORMULAS:
            return _place_of(instr)
        _, inner = place_of(instr.where)
        return (_place_of(made), inner, instr.where.role, instr.where.argument, instr.op, instr.outputs[0].shape)

    def _is_term(self, instr: Instr) -> bool:
        """Tell whether a value is just one term of a cotangent, which in some iterations may be all of it."""
        users = self.users.get(instr.outputs[0], [])
        return len(users) == 1 and role_of(users[0]) == GATHER and users[0].inputs[-1] is instr.outputs[0]

    def _is_part_of_input(self, instr: Instr) -> bool:
        """Tell whether a value is a plain slice of an argument, which a person would not name."""
        whole = instr.inputs[0]
        sliced = instr.op == "getitem" and len(instr.inputs) == 1 and whole in self.graph.inputs
        return sliced and instr.output not in self.body.names and instr.output not in self.targets

    def _scattered_into(self, instr: Instr) -> Instr | None:
        """Return the sum that zeros with values added at an index contribute to, if it can take them directly."""
        out = instr.outputs[0]
        users = self.users.get(out, [])
        if instr.op != "put_add" or out in self.body.names or self.uses[out] != 1 or len(users) != 1:
            return None
        total, partial = users[0], users[0].inputs[0]
        if role_of(total) != GATHER or total.op != "add" or total.inputs[1] is not out or not isinstance(partial, Var):
            return None
        if partial in self.inline or partial in self.constants or self.uses[partial] != 1 or not self._owns(partial):
            return None
        if partial.shape != total.output.shape:
            return None
        return total if partial in self.written else None

    def _belong_together(self, instr: Instr, user: Instr) -> bool:
        """Tell whether two instructions come from one execution of a statement; in the backward pass, from one line."""
        if self.run_of.get(instr) is not self.run_of.get(user):
            return False
        if role_of(instr) == FORWARD:
            return True
        made, by = self.derived.forward_of(instr), self.derived.forward_of(user)
        return made is None or by is None or self.line_of.get(made) is self.line_of.get(by)

    def _reads_other_state(self, value: Var, own: Var) -> bool:
        """Tell whether an expression at the end of the program would read state that is written before."""
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

    def _written_at(self, instr: Instr) -> list[Code]:
        """Write `x[index] = value`, on a copy of x unless the old x has no other use."""
        source, value, *arrays = instr.inputs
        before, written = self.operand(source), self.operand(value)
        key = text.index(instr.params["spec"], [self.operand(array) for array in arrays])
        assert isinstance(source, Var)
        mine = source in self.written and self._owns(source)
        named = source in self.constants and source in self.body.names and source not in self.body.large
        alone = self.uses[source] == 1 and (mine or named)
        if alone and instr.output not in self.body.names:
            self.body.names[instr.output] = before.code
        target = self.name(instr.output, instr)
        self.written.add(instr.output)
        fresh = before.code.startswith(("np.zeros(", "np.ones(", "np.full("))
        # Operators turn 0-d arrays into scalars, which cannot be written to.
        made_by = self.producer.get(source)
        number = not source.shape and not fresh and (made_by is None or made_by.op != instr.op)
        copied = text.call("np.array", before) if number else text.method(before, "copy")
        first = before if fresh or (alone and not number) else copied
        made = [] if target == first.code else [assign(target, first)]
        return [*made, assign(_entry(target, key), written)]

    def _scatter(self, instr: Instr) -> list[Code]:
        """Write zeros and an addition to them: `+=` if no place occurs twice, else np.add.at."""
        target = self.name(instr.output, instr)
        zeros = text.call("np.zeros", tuple(instr.params["shape"]), instr.output.dtype)
        return [assign(target, zeros), self._scattering(instr, target)]

    def _scatter_more(self, instr: Instr) -> list[Code]:
        """Write an addition at an index of an existing sum."""
        partial = instr.inputs[0]
        assert isinstance(partial, Var)
        scatter = self.scatters[instr.inputs[1]]
        if instr.output not in self.body.names:
            self.body.names[instr.output] = self.body.names[partial]
        target = self.body.names[instr.output]
        before = self.body.names[partial]
        alias = [] if target == before else [assign(target, Text.token(before))]
        self.written.add(instr.output)
        return [*alias, self._scattering(scatter, target)]

    def _scattering(self, instr: Instr, target: str) -> Code:
        g, *arrays = map(self.operand, instr.inputs)
        spec = instr.params["spec"]
        key = text.index(spec, arrays)
        if not arrays or self._distinct(instr):
            return assign(_entry(target, key), g, "+=")
        place = arrays[0] if len(spec) == 1 else Text("np.index_exp[", key, "]")
        return Code(Text(), "", text.call("np.add.at", Text.token(target), place, g))

    def _distinct(self, instr: Instr) -> bool:
        """Tell whether the index arrays name each place at most once, because one of them has no repeated entry."""
        if any(type(part) is not IndexArray for part in instr.params["spec"]):
            return False
        indices = instr.inputs[1:]
        shape = np.broadcast_shapes(*(operand.shape for operand in indices if isinstance(operand, Var)))
        known = [self.constants.get(operand) for operand in indices if isinstance(operand, Var)]
        # A negative index may be another name of a place.
        return len(shape) == 1 and any(
            array is not None and array.shape == shape and np.unique(array).size == array.size and (array >= 0).all()
            for array in known
        )

    def _write_updates(self) -> None:
        for target, value in self.graph.updates:
            name = self.body.names[target]
            made = self.producer.get(value)
            if value in self.inline and made is not None and made.op in _IN_PLACE and made.inputs[0] is target:
                code = assign(name, self.operand(made.inputs[1]), f"{_IN_PLACE[made.op]}=")
            else:
                code = assign(_entry(name, Text("...")), self.operand(value))
            line = Line([code], str(target.shape) if target.shape else "scalar", "write back", made)
            if made is not None and made not in self.line_of:
                self._own(line, made)
            self.body.lines.append(line)

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
        """Return the instruction whose rule made the term that a line adds to a sum."""
        added = instr.inputs[1] if role_of(instr) == GATHER and instr.op in _SUMS else None
        through = isinstance(added, Var) and (added in self.inline or added in self.scatters)
        return self.producer[added] if through and isinstance(added, Var) else instr


def _entry(name: str, key: Text) -> Text:
    return Text(Text.token(name), "[", key, "]")


_SUMS = {"add": "+", "subtract": "-"}
_IN_PLACE = {"subtract": "-", "add": "+", "multiply": "*"}


def _place_of(instr: Instr) -> object:
    """Return the origin of a forward instruction and the kind of its result."""
    where = instr.where
    if not isinstance(where, Origin) or where.role != FORWARD:
        return instr
    return (place_of(where), instr.op, instr.outputs[0].shape)
