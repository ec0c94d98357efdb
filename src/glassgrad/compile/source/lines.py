"""What a readable program is made of: its lines, and what is known about all of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from glassgrad.compile.front.origin import FORWARD, Origin
from glassgrad.compile.ir.graph import Instr, Var
from glassgrad.compile.source.runs import Run
from glassgrad.ops.core import PRIMITIVES


@dataclass(eq=False)
class Line:
    """One assignment of the program (some take two lines of Python).

    Attributes:
        code: the Python, without indentation.
        comment: shape, or the rule that it applies.
        section: "forward", "backward", "update" or "write back".
        instr: the instruction it ends with.
        run: the execution of a statement of the user's that it belongs to.
        owner: for a line of the backward pass, the line of the forward pass it belongs to.
        source: for a line of the backward pass, the user's statement.
    """

    code: list[str]
    comment: str
    section: str
    instr: Instr | None = None
    run: Run | None = None
    owner: Line | None = None
    source: str = ""


@dataclass(eq=False)
class Body:
    """The lines of a program.

    Attributes:
        names: the names of all values that have one.
        base: names -> what they would be if no other value had the same.
        helpers: functions that it calls and has to define.
        large: constants that have to be passed in.
    """

    lines: list[Line] = field(default_factory=list)
    names: dict[Var, str] = field(default_factory=dict)
    base: Mapping[str, str] = field(default_factory=dict)
    helpers: set[str] = field(default_factory=set)
    large: dict[Var, Any] = field(default_factory=dict)


def rule_text(made: Instr, argument: int | None) -> str:
    """Name a forward op and its derivative, for one argument if there is one formula for each."""
    prim = PRIMITIVES.get(made.op)
    derivative = prim.derivative if prim is not None else ""
    parts = derivative.split(", ")
    if argument is not None and len(parts) == len(made.inputs):
        derivative = parts[argument]
    return f"{made.op}: {derivative}" if derivative else made.op


def role_of(instr: Instr) -> str:
    """Return the role of an instruction in the trace."""
    return instr.where.role if isinstance(instr.where, Origin) else FORWARD
