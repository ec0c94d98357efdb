"""Suspects about recorded episodes: which action belongs to which state."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from glassgrad.doctor.reading.flow import Value, flow
from glassgrad.doctor.reading.nodes import indices, method_of, object_of, within
from glassgrad.doctor.reading.program import LOOPS, Loop, Program, Scope
from glassgrad.doctor.reading.rule import Spot
from glassgrad.doctor.reading.suspects.form import look_at, suspects
from glassgrad.doctor.reading.suspects.lookup import stem_of, text

_SIDES = {":-1": "early", "1:": "late"}


@dataclass(frozen=True)
class Put:
    """A value that each round of a loop stores: in which record, where, and at which place in the first round."""

    record: str
    value: ast.expr
    line: int
    place: int


@suspects("action of another step")
def _paired(program: Program) -> Iterator[Spot]:
    """Find states `s[:-1]` and `s[1:]` with the actions of the steps before, or of those behind."""
    slices = list(_slices(program))
    for loop in program.nodes if slices else ():
        for actions, states, lead in _records(program, loop) if isinstance(loop, LOOPS) else ():
            scope = program.scope(loop)
            mine = [(node, side) for node, side, record in slices if record == (scope, actions)]
            theirs = {side for _, side, record in slices if record == (scope, states)}
            wrong = "early" if lead == 1 else "late"
            if theirs == {"early", "late"} and {side for _, side in mine} == {wrong}:
                leads = "led to state t" if lead == 1 else "follows state t"
                meant = "[1:]" if lead == 1 else "[:-1]"
                yield look_at(mine[0][0], leads=leads, meant=meant, record=actions)


def _slices(program: Program) -> Iterator[tuple[ast.Subscript, str, tuple[Scope, str]]]:
    """Yield the slices without the first or the last step: the slice, its side, and the record that it is of."""
    for node in program.every(ast.Subscript):
        if isinstance(node.ctx, ast.Load):
            along = indices(node)[-1]
            side = _SIDES.get(text(along), "")
            record = _record(program, node.value) if side else None
            if record is not None:
                yield node, side, record


def _record(program: Program, node: ast.expr) -> tuple[Scope, str] | None:
    """Return the scope and the name of the list or array that a sequence is made of."""
    value: Value | None = Value(node)
    for _ in range(4):
        if value is None:
            return None
        inner = value.node
        if isinstance(inner, ast.Name) and _is_filled(program, inner):
            return program.scope(inner), inner.id
        if isinstance(inner, ast.Call) and (held := _holder(program, inner)):
            return program.scope(inner), held
        if isinstance(inner, ast.Call) and not value.path:
            method = isinstance(inner.func, ast.Attribute) and not program.names.full(inner.func)
            given = inner.func.value if method and isinstance(inner.func, ast.Attribute) else (*inner.args, None)[0]
            value = Value(given, value.frame) if given is not None else None
        else:
            value = flow(program).end(value) if isinstance(inner, ast.Name) else None
    return None


def _holder(program: Program, made: ast.Call) -> str:
    """Return the variable that a call makes an array for, if a loop fills it."""
    scope, statement = program.scope(made), program.statement(made)
    names = [one for one in within(statement, ast.Name) if isinstance(one.ctx, ast.Store)]
    mine = [one for one in names if any(it.value is made for it in program.bindings(scope, one.id))]
    return next((one.id for one in mine if _is_filled(program, one)), "")


def _is_filled(program: Program, name: ast.Name) -> bool:
    """Tell whether a loop of the scope of a name stores something in it."""
    scope = program.scope(name)
    appended = [one for one in program.calls_of(".append") if isinstance(one.func, ast.Attribute)]
    return any(program.scope(one) is scope and text(one.func).startswith(f"{name.id}.") for one in appended) or any(
        isinstance(one, ast.Subscript) and isinstance(one.ctx, ast.Store) and stem_of(one) == name.id
        for one in ast.walk(scope)
        if program.scope(one) is scope
    )


def _records(program: Program, loop: Loop) -> Iterator[tuple[str, str, int]]:
    """Yield the records of actions and states of a loop, with the steps by which an action stands behind its state."""
    puts = list(_puts(program, loop))
    for call in (one for one in within(loop, ast.Call) if len(one.args) in {1, 2}):
        moved = program.statement(call)
        targets = [it for it in within(moved, ast.Name) if isinstance(it.ctx, ast.Store)]
        made = {one.id for one in targets} if isinstance(moved, ast.Assign) else set()
        actions = [one for one in puts if isinstance(one.value, ast.Name) and text(one.value) == text(call.args[-1])]
        for action in actions:
            for state in puts:
                name = stem_of(state.value) if not isinstance(state.value, ast.Call) else ""
                fresh = state.value is call or (name in made and state.line > moved.lineno)
                before = name in made and state.line < moved.lineno
                lead = action.place - state.place + (1 if fresh else 0)
                if state.record != action.record and (fresh or before) and lead in {0, 1}:
                    yield action.record, state.record, lead


def _puts(program: Program, loop: Loop) -> Iterator[Put]:
    """Yield what a loop appends to lists, and what it stores in arrays at its index or one behind it."""
    index = text(loop.target) if isinstance(loop, ast.For | ast.AsyncFor) else ""
    for node in ast.walk(loop):
        if isinstance(node, ast.Call) and method_of(node) == "append":
            name = object_of(node)
            bounds = program.bindings(program.scope(loop), name.id) if isinstance(name, ast.Name) else []
            first = bounds[0].value if bounds else None
            if isinstance(name, ast.Name) and isinstance(first, ast.List) and len(node.args) == 1:
                early = [one for one in program.calls_of(".append") if text(one.func) == text(node.func)]
                early = [one for one in early if bounds[0].line < one.lineno < loop.lineno and not program.loops(one)]
                yield Put(name.id, node.args[0], node.lineno, len(first.elts) + len(early))
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript):
            target = node.targets[0]
            along = indices(target)[-1]
            if text(along) in {index, f"{index} + 1"} and isinstance(target.value, ast.Name):
                yield Put(target.value.id, node.value, node.lineno, int(text(along) != index))
