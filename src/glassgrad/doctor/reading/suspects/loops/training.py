"""What suspects look up in a training: its optimizers and schedules, their numbers, and the conditions of a step."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from glassgrad.doctor.reading.actors import setting
from glassgrad.doctor.reading.flow import Value, flow
from glassgrad.doctor.reading.iterations import Event
from glassgrad.doctor.reading.names import last
from glassgrad.doctor.reading.nodes import callee_of, target_text
from glassgrad.doctor.reading.program import FUNCTIONS, Program, argument
from glassgrad.doctor.reading.suspects.lookup import text
from glassgrad.doctor.reading.values import optimizes

_WARMUP = re.compile(r"^get_\w*schedule\w*$")


def optimizers(program: Program) -> list[ast.Call]:
    """Return the calls that make optimizers of the library."""
    return [one for one in program.calls if optimizer_name(program, one)]


def optimizer_name(program: Program, call: ast.Call) -> str:
    """Return the class of the optimizer that a call makes; empty for other calls."""
    full = program.names.full(call.func)
    known = full.startswith("torch.optim.") and "lr_scheduler" not in full and "swa_utils" not in full
    return last(full) if known and last(full)[:1].isupper() else ""


def optimizer_makers(program: Program) -> list[ast.Call]:
    """Return the calls that make optimizers, also by a function of the script."""
    return [one for one in program.calls if optimizes(program, one)]


def schedule_name(program: Program, call: ast.expr | None) -> str:
    """Return the class of the schedule that a call makes; empty for other expressions."""
    if not isinstance(call, ast.Call):
        return ""
    full = program.names.full(call.func)
    name = last(full) or callee_of(call)
    return name if ("lr_scheduler." in full and name[:1].isupper()) or _WARMUP.match(name) else ""


def schedules(program: Program) -> list[tuple[str, ast.Call]]:
    """Return the classes of the script's schedules with the calls that make them."""
    return [(name, one) for one in program.calls if (name := schedule_name(program, one))]


def schedule_of(program: Program, event: Event) -> Value | None:
    """Return the call that makes the schedule which an event steps."""
    found = [one for one in flow(program).ends(event.value) if schedule_name(program, one.node)]
    return found[0] if len(found) == 1 else None


def given_number(program: Program, call: ast.Call, name: str, place: int = -1) -> float | None:
    """Return the number that a call gives to a parameter."""
    given = argument(call, name, place)
    return setting(program, given) if given is not None else None


def conditions(program: Program, node: ast.AST, until: ast.AST | None = None) -> Iterator[ast.expr]:
    """Yield the conditions around a node within its function, the innermost first."""
    for one in program.outward(node):
        if one is until or isinstance(one, FUNCTIONS):
            return
        if isinstance(one, ast.If):
            yield one.test


def any_target_text(node: ast.AST) -> str:
    """Return the text of the first target of an assignment, also of one such as `x += 1`; empty for other nodes."""
    return text(node.target) if isinstance(node, ast.AugAssign) else target_text(node)
