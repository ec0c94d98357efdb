"""The bindings that can reach the use of a name, and the values that a script stores in containers later."""

from __future__ import annotations

import ast
from collections import defaultdict

from glassgrad.doctor.reading.nodes import method_of
from glassgrad.doctor.reading.program import Bound, Function, Program, Scope

_KEPT = frozenset({"append", "add", "appendleft"})
_MADE = frozenset({"dict", "list", "set", "deque", "defaultdict", "OrderedDict"})


def default_of(function: Function | ast.Lambda, name: str) -> ast.expr | None:
    """Return the default of a parameter; None if it has none."""
    given = function.args
    places = [one.arg for one in (*given.posonlyargs, *given.args)]
    if name in places:
        at = places.index(name) - len(places) + len(given.defaults)
        return given.defaults[at] if at >= 0 else None
    only = [one.arg for one in given.kwonlyargs]
    return given.kw_defaults[only.index(name)] if name in only else None


def is_before(program: Program, bound: Bound, node: ast.Name) -> bool:
    """Tell whether a binding precedes a use, or belongs to a comprehension around it."""
    return bound.line < program.statement(node).lineno or isinstance(bound.statement, ast.comprehension)


def reaching(program: Program, scope: Scope, name: ast.Name) -> list[Bound]:
    """Return the bindings of a name in a scope that can reach its use, the last one first."""
    every = program.bindings(scope, name.id)
    if not every:
        return []
    around = list(program.outward(name))
    inside = [one for one in every if isinstance(one.statement, ast.comprehension)]
    mine = [one for one in inside if program.parents.get(one.statement) in around]
    if mine:
        return mine[-1:]
    plain = [one for one in every if not isinstance(one.statement, ast.comprehension)]
    if program.scope(name) is not scope:
        return plain  # the time of the call decides which of them holds
    line = program.statement(name).lineno
    before = [one for one in plain if one.line < line or _is_target(one, around)]
    found = _carried(program, plain, name, line)
    for one in reversed(before):
        if _in_another_arm(program, one, around):
            continue
        found.append(one)
        certain = one.statement in around or program.parents.get(one.statement) in (*around, program.tree)
        if certain and not isinstance(one.statement, ast.AugAssign):
            if _shares_loop(program, one, name):
                found = [other for other in found if other.line <= line]
            break
    return found or plain[-1:]


def _carried(program: Program, plain: list[Bound], name: ast.Name, line: int) -> list[Bound]:
    """Return the bindings after a use that reach it in the next round of a loop around both."""
    return [one for one in plain if one.line > line and _shares_loop(program, one, name)]


def _shares_loop(program: Program, bound: Bound, name: ast.Name) -> bool:
    """Tell whether the innermost loop around a use also contains a binding."""
    around = program.loops(name)
    return bool(around) and around[0] in program.loops(bound.statement)


def _is_target(bound: Bound, around: list[ast.AST]) -> bool:
    """Tell whether a loop whose body is on the same line sets a name."""
    return isinstance(bound.statement, ast.For) and bound.statement in around


def _in_another_arm(program: Program, bound: Bound, around: list[ast.AST]) -> bool:
    """Tell whether a binding and a use are in different branches of a condition."""
    inner: ast.AST = bound.statement
    for outer in program.outward(bound.statement):
        if isinstance(outer, ast.If) and outer in around:
            at = around.index(outer)
            mine = around[at - 1] if at else None
            arms = [next((arm for arm in (outer.body, outer.orelse) if one in arm), None) for one in (inner, mine)]
            return None not in arms and arms[0] is not arms[1]
        inner = outer
    return False


def is_container(node: ast.expr) -> bool:
    """Tell whether an expression makes a list, a dictionary or another container."""
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Name) and node.func.id in _MADE
    return isinstance(node, ast.List | ast.Dict | ast.ListComp | ast.DictComp)


def stored(program: Program, bound: Bound, name: ast.expr) -> list[ast.expr]:
    """Return the values that a script stores in a container after its binding: by `append`, or under a key."""
    found = program.memo.get("stored")
    if not isinstance(found, dict):
        found = program.memo["stored"] = _all_stored(program)
    text = ast.unparse(name)
    mine = found.get(text, [])
    if text.startswith("self."):
        around = program.owner(bound.statement)
        return [value for node, value in mine if program.owner(node) is around]
    scope = program.scope(bound.statement)
    return [value for node, value in mine if _sees(program, node, scope)]


def _sees(program: Program, node: ast.AST, scope: Scope) -> bool:
    return program.scope(node) is scope or (isinstance(scope, ast.Module) and program.owner(node) is None)


def _all_stored(program: Program) -> dict[str, list[tuple[ast.AST, ast.expr]]]:
    found: dict[str, list[tuple[ast.AST, ast.expr]]] = defaultdict(list)
    for node in program.nodes:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript):
            found[ast.unparse(node.targets[0].value)].append((node, node.value))
        elif isinstance(node, ast.Call) and len(node.args) == 1 and method_of(node) in _KEPT:
            assert isinstance(node.func, ast.Attribute)
            found[ast.unparse(node.func.value)].append((node, node.args[0]))
    return found
