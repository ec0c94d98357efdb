"""Split a loss into its terms, each with its sign, its factors, and the means and sums around it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, replace

from glassgrad.doctor.reading.bindings import reaching
from glassgrad.doctor.reading.flow import EACH, Frame, Value, flow
from glassgrad.doctor.reading.names import named
from glassgrad.doctor.reading.nodes import is_name, is_negative
from glassgrad.doctor.reading.program import Program, number

_REDUCING = named("mean sum nanmean")
_THROUGH = named(
    "squeeze view reshape flatten float double to contiguous clone requires_grad_ stack cat unsqueeze exp_"
)
_GATHERING = frozenset({"stack", "cat", "concat", "sum", "mean"})
_MOST = 60


@dataclass(frozen=True)
class Term:
    """A term of a sum.

    Attributes:
        factors: the factors of the term, without numbers and signs.
        sign: 1 or -1.
        reductions: "sum", "mean" and "/" around it, the outermost first.
        scaled: whether a division, or a factor other than 1 or 1/2, changes its size.
        names: the variables that hold it or a factor of it.
        added: the operand of the sum that it is, or the statement that adds it; None outside of a sum.
    """

    factors: tuple[Value, ...]
    sign: int = 1
    reductions: tuple[str, ...] = ()
    scaled: bool = False
    names: frozenset[str] = frozenset()
    added: ast.expr | ast.stmt | None = None

    def turned(self, sign: int) -> Term:
        """Return the term times 1 or -1."""
        return replace(self, sign=self.sign * sign)


def terms(program: Program, value: Value | ast.expr) -> list[Term]:
    """Return the terms of a sum. Follows names, calls of the script and reductions."""
    value = value if isinstance(value, Value) else Value(value)
    return list(_Terms(program).of(value, 0))[:_MOST]


class _Terms:
    def __init__(self, program: Program) -> None:
        self._program = program
        self._flow = flow(program)
        self._count = 0

    def of(self, value: Value, depth: int) -> Iterator[Term]:
        self._count += 1
        if depth > 14 or self._count > 400:
            yield Term((value,))
            return
        sums = list(self._added_up(value))
        if sums:
            for one, sign in sums:
                around = self._program.statement(one.node)
                for term in self.of(one, depth + 1):
                    yield replace(term.turned(sign), added=term.added or around)
            return
        name = {getattr(value.node, "id", getattr(value.node, "attr", ""))} - {""}
        ends = list(self._flow.ends(value))
        if not ends:  # nothing is known of it, and it is a term all the same
            yield Term((value,), names=frozenset(name))
        for one in ends:
            for term in self._end(one, depth + 1):
                yield replace(term, names=term.names | name)

    def _added_up(self, value: Value) -> Iterator[tuple[Value, int]]:
        """Yield the terms of `loss = a; loss += b; loss -= c`, with their signs."""
        node = value.node
        if not isinstance(node, ast.Name) or value.path:
            return
        scope = self._program.scope(node)
        bounds = reaching(self._program, scope, node)
        if not any(isinstance(one.statement, ast.AugAssign) for one in bounds):
            return
        for one in bounds:
            if isinstance(one.statement, ast.AugAssign):
                if isinstance(one.statement.op, ast.Add | ast.Sub):
                    sign = -1 if isinstance(one.statement.op, ast.Sub) else 1
                    yield Value(one.statement.value, value.frame), sign
            elif one.value is not None and not one.path and number(one.value) != 0:
                yield Value(one.value, value.frame), 1

    def _end(self, value: Value, depth: int) -> Iterator[Term]:
        node, frame = value.node, value.frame
        if is_negative(node):
            yield from (one.turned(-1) for one in self.of(Value(node.operand, frame), depth))
        elif isinstance(node, ast.BinOp):
            yield from self._operation(node, frame, depth)
        elif isinstance(node, ast.Call):
            yield from self._call(node, value, depth)
        else:
            yield Term((value,))

    def _operation(self, node: ast.BinOp, frame: Frame | None, depth: int) -> Iterator[Term]:
        left, right = Value(node.left, frame), Value(node.right, frame)
        if isinstance(node.op, ast.Add | ast.Sub):
            for side, sign in ((left, 1), (right, -1 if isinstance(node.op, ast.Sub) else 1)):
                for one in self.of(side, depth):
                    yield replace(one.turned(sign), added=one.added or side.node)
        elif isinstance(node.op, ast.Mult):
            yield from self._product(left, right, depth)
        elif isinstance(node.op, ast.Div):
            for one in self.of(left, depth):
                yield replace(one, scaled=True, reductions=("/", *one.reductions))
        else:
            yield Term((Value(node, frame),))

    def _product(self, left: Value, right: Value, depth: int) -> Iterator[Term]:
        sides = [list(self.of(one, depth)) for one in (left, right)]
        if min(map(len, sides)) > 1 or not any(map(_is_plain, sides)):  # do not split a sum within a product
            sides = [
                found if len(found) == 1 else [Term((one,))] for found, one in zip(sides, (left, right), strict=True)
            ]
        for first in sides[0]:
            yield from (_times(first, second) for second in sides[1])

    def _call(self, call: ast.Call, value: Value, depth: int) -> Iterator[Term]:
        full = self._program.names.full(call.func)
        name = self._program.called(call)
        method = isinstance(call.func, ast.Attribute) and not full
        inner = self._program.operand(call)
        if inner is None or name not in _REDUCING | _THROUGH or (is_name(inner, "self")):
            yield Term((value,))
            return
        path = (EACH,) if name in _GATHERING and self._is_list(Value(inner, value.frame)) else ()
        for one in list(self.of(Value(inner, value.frame, path), depth)):
            yield replace(one, reductions=(_named(call, name, method), *one.reductions)) if name in _REDUCING else one

    def _is_list(self, value: Value) -> bool:
        kinds = ast.List | ast.ListComp | ast.GeneratorExp | ast.Tuple
        held = self._flow.ends(value)
        return bool(held) and all(isinstance(one.node, kinds) for one in held)


def _is_plain(found: list[Term]) -> bool:
    """Tell whether a factor is a number or a setting."""
    return len(found) == 1 and all(
        isinstance(one.node, ast.Constant | ast.Name | ast.Attribute) for one in found[0].factors
    )


def _named(call: ast.Call, name: str, method: bool) -> str:
    """Return "sum" or "mean", followed by a bracket if it reduces only some axes."""
    given = len(call.args) > (0 if method else 1) or any(one.arg in {"dim", "axis"} for one in call.keywords)
    return f"{name}(" if given else name


def _times(first: Term, second: Term) -> Term:
    factors: list[Value] = []
    sign, scaled = first.sign * second.sign, first.scaled or second.scaled
    names = first.names | second.names
    for one in (*first.factors, *second.factors):
        value = number(one.node) if not one.path else None
        if value is None:
            factors.append(one)
        else:
            sign = -sign if value < 0 else sign
            scaled = scaled or abs(value) not in {1.0, 0.5}
    factors = factors or [first.factors[0]]
    reductions = (*first.reductions, *second.reductions)
    return Term(tuple(factors), sign, reductions, scaled, names, first.added or second.added)
