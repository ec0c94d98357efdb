"""Suspects about two views of an example that learn from each other."""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterator

from glassgrad.doctor.reading.flow import Value, flow
from glassgrad.doctor.reading.program import DEEPEST, Function, Program
from glassgrad.doctor.reading.rule import Spot, shown, spot
from glassgrad.doctor.reading.suspects.form import suspects
from glassgrad.doctor.reading.suspects.spelling import called, text
from glassgrad.doctor.reading.values import layer, returns

_APART = re.compile(
    r"detach|no_grad|stop_?grad|cross_entropy|CrossEntropy|logsumexp|arange|eye\(|diag|std\(|var\(|neg|margin|queue|\.data\b"
)
"""What keeps projections apart: a gradient that stops, other examples, a spread."""
_NEAR = re.compile(r"cos|simil|mse|criterion|loss|dist|norm", re.IGNORECASE)


@suspects("both views move towards each other")
def _collapse(program: Program) -> Iterator[Spot]:
    """Find `D(p1, z2) + D(p2, z1)` behind `p1, p2 = predictor(z1), predictor(z2)` with targets that get gradients."""
    pairs = [one for one in program.calls if len(one.args) >= 2 and _is_near(program, one)]
    for one, other in itertools.combinations(pairs, 2):
        if text(one.func) != text(other.func) or program.function(one) is not program.function(other):
            continue
        first, second = _predicted(program, one.args[0]), _predicted(program, other.args[0])
        targets = _root(program, Value(one.args[1])), _root(program, Value(other.args[1]))
        crossed = first is not None and second is not None and first[0] == second[0] and first[1] != second[1]
        if first is None or second is None or not crossed or targets != (second[1], first[1]):
            continue
        if not any(_is_cut(program, target.node) for target in targets):
            function = _function(program, one)
            inner = list(returns(program, function)) if function is not None else []
            yield spot(inner[0] if len(inner) == 1 else one, one, other, text=shown(one), other=shown(other))


def _function(program: Program, call: ast.Call) -> Function | None:
    """Return the function or the forward pass of the script that a call enters."""
    callee = flow(program).callee(call)
    return callee.function if callee is not None and isinstance(callee.function, ast.FunctionDef) else None


def _is_near(program: Program, call: ast.Call) -> bool:
    """Tell whether a call compares two values, and nothing in it keeps values apart."""
    function, found = _function(program, call), layer(program, call.func)
    if function is not None:
        return bool(_NEAR.search(text(function))) and not _APART.search(text(function))
    name = found.name if found is not None else called(program, call)
    return bool(_NEAR.search(name)) and not _APART.search(name)


def _predicted(program: Program, node: ast.expr) -> tuple[str, Value] | None:
    """Return the module that makes a prediction of one projection, and the call that makes the projection."""
    value = _root(program, Value(node))
    made = value.node
    if not isinstance(made, ast.Call) or len(made.args) != 1 or layer(program, made.func) is None:
        return None
    return text(made.func), _root(program, Value(made.args[0], value.frame))


def _root(program: Program, value: Value) -> Value:
    """Return the call that makes a value, through names and the parts of results."""
    for _ in range(2 * DEEPEST):
        before = flow(program).before(value) if value.path or not isinstance(value.node, ast.Call) else None
        if before is None or len(before) != 1:
            break
        value = before[0]
    return value


def _is_cut(program: Program, node: ast.expr) -> bool:
    """Tell whether no gradient enters what makes a value."""
    outer = [one for one in program.outward(node) if isinstance(one, ast.With)]
    function = program.function(node)
    decorators = [text(one) for one in function.decorator_list] if function is not None else []
    said = [*decorators, *(text(item) for one in outer for item in one.items)]
    return any("no_grad" in one for one in said)
