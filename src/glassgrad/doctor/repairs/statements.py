"""Changes of statements: left out, exchanged with the next one, moved into a loop or out of it."""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterator

from glassgrad.doctor.reading.nodes import mentions, method_of, object_of
from glassgrad.doctor.reading.program import FUNCTIONS, LOOPS
from glassgrad.doctor.repairs.edits import Edit
from glassgrad.doctor.repairs.zones import Zones

Edits = Iterator[Edit | None]
_FIXED = (*FUNCTIONS, ast.ClassDef, ast.Return, ast.Break, ast.Continue)
_PLAIN = ast.Expr | ast.Assign | ast.AugAssign
_LATER = "right before the loop, behind what replaces parameters"
_CALLS = frozenset({"step", "zero_grad", "backward"})
_CHOSEN = re.compile(r"clip_grad|sched|clamp_|dropout", re.IGNORECASE)
"""Statements that a sound script may have or lack: limits, schedules and noise."""


def left_out(zones: Zones) -> Edits:
    """Leave out statements that change something in place."""
    text = zones.text
    for node, zone in zones.nodes:
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            yield _gone(zones, node, 2.0 if zone != "loop" else 1.5)
        elif isinstance(node, ast.Assign | ast.AugAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            first = targets[0]
            again = isinstance(first, ast.Name) and mentions(node.value, first.id)
            if again or isinstance(first, ast.Attribute | ast.Subscript) or isinstance(node, ast.AugAssign):
                inside = zones.program.function(node)
                if not (inside is not None and inside.name == "__init__"):
                    yield _gone(zones, node, 2.0)
        elif isinstance(node, ast.For) and zone == "setup":
            yield _gone(zones, node, 2.0)
        elif isinstance(node, ast.If):
            often = any(isinstance(one, ast.Mod) for one in ast.walk(node.test))  # how often is a choice
            yield zones.edit("a condition keeps the code from running", (node.test, "True"), prior=2, tunes=often)
            yield zones.edit("the code behind a condition should not run", (node.test, "False"), prior=1, tunes=often)
        elif isinstance(node, ast.With) and "no_grad" in text.of(node.items[0].context_expr):
            entered = node.items[0].context_expr
            new = text.of(entered).replace("no_grad", "enable_grad")
            yield zones.edit("no gradient is recorded here", (entered, new), prior=3)


def _gone(zones: Zones, node: ast.stmt, prior: float) -> Edit | None:
    what = zones.text.of(node).splitlines()[0][:60]
    chosen = isinstance(node, ast.Expr) and bool(_CHOSEN.search(what))
    return zones.edit(f"{what} should not be there", (node, "pass"), prior=prior, tunes=chosen)


def exchanged(zones: Zones) -> Edits:
    """Exchange neighbours in the body of a training loop."""
    for body in _bodies(zones):
        for one, other in itertools.pairwise(body):
            if any(isinstance(it, _FIXED) or zones.is_evaluation(it) for it in (one, other)):
                continue
            indent = zones.text.indent(one)
            text = zones.text.moved(one, (other.end_lineno or other.lineno) + 1, zones.text.block(one, indent))
            means = "two statements are in the wrong order"
            yield zones.made(means, one.lineno, text, 1.5 if _calls(one, other) else 0.8)


def _bodies(zones: Zones) -> Iterator[list[ast.stmt]]:
    """Yield the bodies that hold a backward pass, its functions' and its loops'."""
    seen: set[int] = set()
    for call in zones.backwards:
        for around in zones.program.outward(call):
            body = getattr(around, "body", None)
            if isinstance(body, list) and id(body) not in seen and isinstance(around, (*LOOPS, *FUNCTIONS)):
                seen.add(id(body))
                yield body


def _calls(*statements: ast.stmt) -> bool:
    return any(method_of(node) in _CALLS for one in statements for node in ast.walk(one))


def moved(zones: Zones) -> Edits:
    """Move a statement behind a loop into it, the last ones of a loop out of it, and optimizers before the loop."""
    program, text = zones.program, zones.text
    for loop in zones.loops:
        outer = getattr(program.parents[loop], "body", [])
        if loop not in outer or len(loop.body) < 2:
            continue
        at, end = outer.index(loop), (loop.end_lineno or loop.lineno) + 1
        into, out = text.indent(loop.body[0]), text.indent(loop)
        behind = [one for one in outer[at + 1 : at + 4] if isinstance(one, _PLAIN)]
        parts = (
            (behind, end, into, "into the loop above it", 2.5),
            ([one for one in loop.body[-3:] if isinstance(one, ast.Expr)], end, out, "behind the loop", 2),
            ([one for one in loop.body[:3] if isinstance(one, ast.Assign)], loop.lineno, out, "before the loop", 1.5),
            ([one for one in outer[: max(at - 1, 0)] if _makes_optimizer(zones, one)], loop.lineno, out, _LATER, 2),
        )
        for statements, line, indent, where, prior in parts:
            for one in statements:
                if not zones.is_evaluation(one):
                    new = text.moved(one, line, text.block(one, indent))
                    yield zones.made(f"the statement belongs {where}", one.lineno, new, prior, -1)


def _makes_optimizer(zones: Zones, statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Assign) and "optim" in zones.text.of(statement)


def inserted(zones: Zones) -> Edits:
    """Insert the calls that a loop needs: gradients set to zero, training mode, and clipping."""
    text = zones.text
    steps = [held for one, name in zones.calls("loop") if name == "step" and (held := object_of(one)) is not None]
    for call in zones.backwards:
        if zones.is_evaluation(call):
            continue
        statement = zones.program.statement(call)
        indent = text.indent(statement)
        for name in dict.fromkeys(map(text.of, steps)):
            if "sched" not in name:
                block = f"{indent}{name}.zero_grad()\n"
                new = text.moved(None, statement.lineno, block)
                yield zones.made("gradients add up over the steps", statement.lineno, new, 2.5)
    for call, name in zones.calls("setup", "loop"):
        held = object_of(call) if name == "eval" and not call.args else None
        if held is not None:
            model = text.of(held)
            for loop in zones.loops[:1]:
                block = f"{text.indent(loop.body[0])}{model}.train()\n"
                new = text.moved(None, loop.body[0].lineno, block)
                yield zones.made("the model stays in evaluation mode", call.lineno, new, 2, loop.body[0].lineno)
