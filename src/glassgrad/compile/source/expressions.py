"""Values as text: an instruction as an expression, an operand as a name, a number, or an expression."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from glassgrad import errors
from glassgrad.compile.front.origin import FORWARD, Origin
from glassgrad.compile.ir.graph import Graph, Instr, Operand, Var
from glassgrad.compile.numpy import text
from glassgrad.compile.numpy.text import Text
from glassgrad.compile.source.differentiate import Derived
from glassgrad.compile.source.functions import applied, is_defined, why_not_applied
from glassgrad.compile.source.lines import Body, Line, assign, role_of
from glassgrad.compile.source.naming.hints import constant_hint, hint, operand_hint
from glassgrad.compile.source.naming.names import Namer, identifier
from glassgrad.compile.source.reading import READING
from glassgrad.compile.source.rewriting.runs import Run

_SHORT = 16  # characters of a constant that may be written more than once


class ExpressionWriter:
    """Holds the names of values and writes expressions; `BodyWriter` decides which of them get a line.

    Attributes:
        inline: the text of inlined values.
        run_of: the execution of the user's statement that an instruction belongs to.
        value_of: cotangent, or term of one -> its forward value.
        constant_lines: lines that make constants, for the beginning of the program.
    """

    def __init__(self, derived: Derived, input_names: Mapping[Var, str]) -> None:
        self.derived = derived
        self.graph: Graph = derived.graph
        self.namer = Namer(input_names.values())
        self.body = Body(names=dict(input_names), namer=self.namer)
        self.constants = dict(self.graph.constants)
        self.users = self.graph.users()
        self.uses = Counter(operand for instr in self.graph.instrs for operand in instr.reads())
        self.uses.update(self.graph.results())
        self.producer = self.graph.producers()
        self.targets = {value: target for target, value in self.graph.updates}
        self.inline: dict[Var, Text] = {}
        self.run_of: dict[Instr, Run] = {}
        self.value_of: dict[Var, Var] = {}
        self.constant_lines: list[Line] = []

    def expression(self, instr: Instr) -> Text:
        """Return an instruction as an expression."""
        written = self._as_written(instr) or self._by_template(instr)
        called = written.code.partition("(")[0]
        if is_defined(called):
            self.body.helpers.add(called)
        return written

    def _by_template(self, instr: Instr) -> Text:
        operands = [self.operand(operand) for operand in instr.inputs]
        template = READING.get(instr.op)
        written = template(instr, operands) if template else applied(instr.op, operands, instr.params)
        if written is None:
            place = instr.where.place if isinstance(instr.where, Origin) else "an unknown line"
            reason = why_not_applied(instr.op, operands, instr.params)
            raise errors.NO_SOURCE(op=instr.op, where=place, reason=reason)
        return written

    def _as_written(self, instr: Instr) -> Text | None:
        """Write some ops as a person would: a mean, a division by a count, a square, a step function."""
        if instr.op == "where":
            return self._chosen(instr)
        if instr.op == "add" and instr.inputs[0] == 0 and isinstance(instr.inputs[1], Var):
            return self.operand(instr.inputs[1])  # Python's sum() starts from 0
        if instr.op == "divide":
            total, count = instr.inputs
            return self._mean(total, 1 / count) if isinstance(count, int | float) and count else None
        if instr.op != "multiply":
            return None
        first, second = instr.inputs if isinstance(instr.inputs[0], Var) else reversed(instr.inputs)
        rest, power = first, 1
        while isinstance(second, Var) and rest is not second and self._is_product_with(rest, second):
            assert isinstance(rest, Var)  # there is a product
            rest, power = self.producer[rest].inputs[0], power + 1
        if rest is second or power > 1:
            raised = text.power(self.operand(second), Text(str(power + (rest is second))))
            return raised if rest is second else text.binary(self.operand(rest), "*", raised, text.PRODUCT)
        return self._mean(first, second) or (self._scaled(first, second) if isinstance(first, Var) else None)

    def _mean(self, total: Operand, share: Operand) -> Text | None:
        """Write a sum over n, times 1 / n, as a mean."""
        summed = self.producer.get(total) if isinstance(total, Var) and total in self.inline else None
        whole = summed.inputs[0] if summed is not None and summed.op == "sum" else None
        if summed is None or not isinstance(whole, Var) or share != summed.output.size / max(whole.size, 1):
            return None
        return READING["mean"](summed, [self.operand(whole)])

    def _scaled(self, value: Operand, factor: Operand) -> Text | None:
        """Write a product with a number, merged with further numeric factors, or as a division."""
        again = False
        while isinstance(factor, int | float) and isinstance(value, Var) and value in self.inline:
            made = self.producer[value]
            if made.op != "multiply" or all(isinstance(x, Var) for x in made.inputs):
                break
            value, more = made.inputs if isinstance(made.inputs[0], Var) else reversed(made.inputs)
            factor, again = factor * more, True  # type: ignore[operator]  # one of two operands is a number
        if not isinstance(factor, int | float) or not isinstance(value, Var):
            return None
        written = self.operand(value)
        count = text.count_of(abs(factor))
        if count is not None:
            value_text = written if factor > 0 else text.prefix("-", written)
            return text.binary(value_text, "/", Text(str(count)), text.PRODUCT)
        return text.binary(text.number(factor), "*", written, text.PRODUCT) if again else None

    def _chosen(self, instr: Instr) -> Text | None:
        """Write a where(): uniform arrays as numbers; a choice of 0, 1/2 or 1 by a comparison as a step function."""
        made = [self.producer.get(operand) if isinstance(operand, Var) else None for operand in instr.inputs]
        equal, less = made[0], made[2]
        if equal is not None and equal.op == "equal" and instr.inputs[1] == 0.5 and less is not None:
            inner = self.producer.get(less.reads()[0]) if less.op == "where" else None
            a, b = equal.inputs
            if inner is not None and inner.op == "less" and inner.inputs == (a, b) and not isinstance(b, Var):
                sides = (a, b) if less.inputs[1:] == (0.0, 1.0) else (b, a)
                difference = text.binary(self.operand(sides[0]), "-", self.operand(sides[1]), text.SUM)
                return text.call("np.heaviside", difference, 0.5)
        values = [self._uniform(operand, instr) for operand in instr.inputs[1:]]
        if values == [None, None]:
            return None
        pairs = zip(values, instr.inputs[1:], strict=True)
        return text.call("np.where", self.operand(instr.inputs[0]), *(one or self.operand(x) for one, x in pairs))

    def _uniform(self, operand: Operand, instr: Instr) -> Text | None:
        """Write a uniform constant as a number, if another operand has the shape of the result."""
        value = self.constants.get(operand) if isinstance(operand, Var) else None
        others = [one for one in instr.inputs if one is not operand and isinstance(one, Var)]
        if value is None or value.size < 2 or not (value == value.flat[0]).all():
            return None
        return text.scalar(value.flat[0]) if any(one.shape == instr.output.shape for one in others) else None

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
            return Text.token(self.body.names[operand])
        if operand in self.constants:
            return self._constant(operand)
        return Text.token(self.name(operand, self.producer[operand]))

    def _constant(self, var: Var) -> Text:
        """Write a constant array inline, on its own line, or as an argument."""
        value = self.constants[var]
        written = text.constant(value)
        if written is not None and (len(written.code) <= _SHORT or "arange" in written.code):
            return written
        called = operand_hint(var, self.users.get(var, ()), self._base_of, self._in_call)
        if written is not None and self.uses[var] == 1 and called is None:
            return written
        name = self.namer.take(called or constant_hint(value))
        self.body.names[var] = name
        if written is None:
            self.body.large[var] = value
        else:
            self.constant_lines.append(Line([assign(name, written)], str(var.shape), "forward"))
        return Text.token(name)

    def _in_call(self, instr: Instr) -> set[Var]:
        """Return all values read by the user's call that an instruction belongs to."""
        run, where = self.run_of.get(instr), instr.where
        call = [one for one in run.instrs if getattr(one.where, "call", None) == where.call] if run is not None else []
        return {var for one in (call or [instr]) for var in one.reads()}

    def _base_of(self, var: Var) -> str | None:
        name = self.body.names.get(var)
        return None if name is None else self.namer.base.get(name, name)

    # --- names ----------------------------------------------------------------------------------------

    def name(self, var: Var, instr: Instr) -> str:
        """Return the name of a value, generated if it has none."""
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
        """Return the name of a value of the forward pass, or the name that it would get."""
        name = self.body.names.get(value)
        made = self.producer.get(value)
        if name is not None or made is None:
            return self.namer.base.get(name, name) if name is not None else value.name or "input"
        return hint(value, made, self.run_of.get(made), self.users)
