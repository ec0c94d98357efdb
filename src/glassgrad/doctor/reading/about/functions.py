"""Rules about derivatives: those written by hand, and derivatives of derivatives."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator

from glassgrad.doctor.reading.flow import Value, flow, frames_of
from glassgrad.doctor.reading.names import last, named
from glassgrad.doctor.reading.nodes import arguments, reads_in
from glassgrad.doctor.reading.program import Program, argument, constant
from glassgrad.doctor.reading.rule import Spot, reads, rules_of, shown, spot
from glassgrad.doctor.reading.values import axis_of, op, returns


@reads("backward ignores its gradient")
def _ignores(program: Program) -> Iterator[Spot]:
    """Find a `backward` of an autograd function that uses none of the gradients that it is given."""
    for one in program.classes.values():
        backward = one.methods.get("backward")
        if backward is None or not any(last(base) == "Function" for base in one.bases):
            continue
        given = {it.arg for it in (*backward.args.posonlyargs, *backward.args.args)[1:]}
        given |= {it.arg for it in (backward.args.vararg,) if it is not None}
        found = [it for it in returns(program, backward) if not isinstance(it.value, ast.Constant | None)]
        made = [it for it in found if constant(it.value) is None]
        if given and not given & reads_in(backward) and made:
            yield spot(made[-1], backward, text=shown(made[-1]), name=one.node.name, given=min(given))


# --- second derivatives ---

_PARTS = named("unbind split chunk tensor_split hsplit")
_FIRST = re.compile(r"0|\[0\]|(0)?:1|slice\(0, 1\)")
"""The first column of a matrix."""


@reads("second derivatives mixed")
def _mixed(program: Program) -> Iterator[Spot]:
    """Find columns of `grad(g, x, ones_like(g))` where g is the whole gradient of a value by x."""
    found: dict[Value, dict[str, ast.expr]] = defaultdict(dict)
    for node, whole, column in _columns(program):
        for end in flow(program).ends(whole):
            if _is_gradient(program, end):
                found[end].setdefault(column, node)
    for end, columns in found.items():
        inner = _derived(program, end)
        several = {*columns, *(found.get(inner, {}) if inner is not None else ())}
        if inner is None or all(_FIRST.fullmatch(one) for one in several):
            continue
        frames = list(frames_of(end.frame))
        place = next((one.call for one in frames if one.outer is None), end.node)
        read = list(columns.values())
        yield spot(place, *(program.statement(one) for one in read), text=shown(place), column=shown(read[0]))


def _columns(program: Program) -> Iterator[tuple[ast.expr, ast.expr, str]]:
    """Yield the places that take columns of a matrix, or add them up: the place, the matrix, and which column."""
    if not any(program.names.full(one.func) == "torch.autograd.grad" for one in program.calls):
        return
    for node in program.nodes:
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Tuple) and len(node.slice.elts) == 2:
            row, column = (ast.unparse(one) for one in node.slice.elts)
            if row in {":", "..."} and column not in {":", "...", "None"} and isinstance(node.ctx, ast.Load):
                yield node, node.value, column
        elif isinstance(node, ast.Call):
            name, operand = op(program, node)
            adds = name == "sum" and constant(axis_of(program, node)) in {1, -1}
            if operand is not None and (name in _PARTS or adds):
                yield node, operand, name


def _is_gradient(program: Program, value: Value) -> bool:
    """Tell whether a value is the first result of `autograd.grad`."""
    node = value.node
    return isinstance(node, ast.Call) and value.path == (0,) and program.names.full(node.func) == "torch.autograd.grad"


def _derived(program: Program, second: Value) -> Value | None:
    """Return the gradient whose sum a second gradient by the same input derives; None for others."""
    call = second.node
    assert isinstance(call, ast.Call)
    outputs, weights = _single(argument(call, "outputs", 0)), _single(argument(call, "grad_outputs", 2))
    for one in flow(program).ends(Value(outputs, second.frame)) if outputs is not None else ():
        name, summed = op(program, one.node) if not one.path else ("", None)
        if name == "sum" and summed is not None and not _given(program, one.node):
            found = flow(program).ends(Value(summed, one.frame))
        else:
            found = (one,) if weights is not None and _is_ones(program, Value(weights, second.frame)) else ()
        for first in found:
            if _is_gradient(program, first) and _by_same(program, first, second):
                return first
    return None


def _given(program: Program, node: ast.expr) -> list[ast.expr]:
    """Return what a reduction is given beside its operand."""
    return arguments(node)[1 if program.names.full(node.func) else 0 :] if isinstance(node, ast.Call) else []


def _single(node: ast.expr | None) -> ast.expr | None:
    """Return the only element of a list, or the expression itself; None for several elements."""
    if isinstance(node, ast.List | ast.Tuple):
        return node.elts[0] if len(node.elts) == 1 else None
    return node


def _is_ones(program: Program, value: Value) -> bool:
    ends = flow(program).origins(value)
    return bool(ends) and all(
        isinstance(one, ast.Call) and last(program.names.full(one.func)) in {"ones", "ones_like"} for one in ends
    )


def _by_same(program: Program, first: Value, second: Value) -> bool:
    """Tell whether two gradients are taken by the same input."""
    ends: list[set[Value | tuple[str, object]]] = []
    for one in (first, second):
        assert isinstance(one.node, ast.Call)
        by = _single(argument(one.node, "inputs", 1))
        found = flow(program).ends(Value(by, one.frame)) if by is not None else ()
        ends.append({(it.node.id, program.scope(it.node)) if isinstance(it.node, ast.Name) else it for it in found})
    return bool(ends[0] & ends[1])


RULES = rules_of(globals())
