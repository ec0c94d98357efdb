"""Instructions grouped as the user wrote them: one run for each time a statement was executed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from glassgrad.compile.front.origin import FORWARD, Origin
from glassgrad.compile.ir.graph import Instr, Var
from glassgrad.compile.source.statements import Statement, span_of, statement_of


@dataclass(eq=False)
class Run:
    """The forward instructions of one execution of a statement."""

    statement: Statement
    instrs: list[Instr] = field(default_factory=list)

    @property
    def text(self) -> str:
        return self.statement.text


def forward_runs(instrs: Sequence[Instr]) -> list[Run]:
    """Group forward instructions; those of one statement belong together until it begins again."""
    runs: list[Run] = []
    for instr in instrs:
        assert isinstance(instr.where, Origin)
        statement = statement_of(instr.where.code, instr.where.lasti)
        if not runs or runs[-1].statement != statement or _begins_again(runs[-1].instrs[-1].where, instr.where):
            runs.append(Run(statement))
        runs[-1].instrs.append(instr)
    return runs


def _begins_again(before: Any, now: Origin) -> bool:
    """Tell whether Python went back in a statement, as in a loop: to an earlier place, or to the same call."""
    assert isinstance(before, Origin)
    if (before.code, before.outer) != (now.code, now.outer):
        return before.code is now.code
    same = span_of(now.code, now.lasti) == span_of(before.code, before.lasti)
    return now.call != before.call if same else now.lasti < before.lasti


def assigned(run: Run, users: Mapping[Var, Sequence[Instr]]) -> dict[Var, str]:
    """Return the names that a run's statement gives to its results.

    One target belongs to the last result; several to the last results, if there are as many that others use.
    """
    targets = run.statement.targets
    results = [var for instr in run.instrs for var in instr.outputs]
    if len(targets) == 1:
        return {results[-1]: targets[0]} if run.instrs[-1].op == "at_set" or gives_the_value(run) else {}
    if run.statement.returns:
        name = _name_at_caller(run) if gives_the_value(run) else None
        return {results[-1]: name} if name is not None else {}
    inside = set(run.instrs)
    leaving = [var for var in results if any(_is_forward(user) and user not in inside for user in users.get(var, ()))]
    if targets and len(leaving) == len(targets):
        return dict(zip(leaving, targets, strict=True))
    return {}


def gives_the_value(run: Run) -> bool:
    """Tell whether the last instruction is the whole of the statement's expression, not an argument in it."""
    where = run.instrs[-1].where
    return isinstance(where, Origin) and span_of(where.code, where.lasti) in run.statement.spans


def _name_at_caller(run: Run) -> str | None:
    """Return the name that the caller's statement gives to this statement's return value."""
    where = run.instrs[-1].where
    if not isinstance(where, Origin) or where.outer is None:
        return None
    caller = statement_of(*where.outer)
    whole = span_of(*where.outer) == caller.spans[0] if caller.spans else False
    return caller.targets[0] if whole and caller.calls and len(caller.targets) == 1 else None


def _is_forward(instr: Instr) -> bool:
    return isinstance(instr.where, Origin) and instr.where.role == FORWARD
