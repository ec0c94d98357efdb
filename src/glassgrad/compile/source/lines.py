"""The parts of a readable program: its lines, and the facts that hold for all of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from glassgrad.compile.front.origin import FORWARD, Origin
from glassgrad.compile.ir.graph import Instr, Var
from glassgrad.compile.numpy.text import Text, Token
from glassgrad.compile.source.naming.names import Namer
from glassgrad.compile.source.rewriting.runs import Run
from glassgrad.ops.core import PRIMITIVES, Array


class Code(NamedTuple):
    """One statement of the program, ``left sign right``; only `right` if it assigns nothing."""

    left: Text
    sign: str
    right: Text

    @property
    def makes(self) -> tuple[str, ...]:
        """The names that it gives to new values; none where it changes something in place."""
        plain = self.sign == "=" and {*self.left.pieces} <= {"", ", "}
        return tuple(map(str, self.left.tokens)) if plain else ()

    @property
    def tokens(self) -> tuple[Token, ...]:
        """All names and indices, in order."""
        return self.left.tokens + self.right.tokens

    @property
    def shape(self) -> object:
        """The statement without its names and indices."""
        return self.left.pieces, self.sign, self.right.pieces


def assign(target: Text | str, value: Text, sign: str = "=") -> Code:
    """Write an assignment."""
    return Code(target if isinstance(target, Text) else Text.token(target), sign, value)


@dataclass(eq=False)
class Line:
    """One assignment of the program (some take two statements of Python).

    Attributes:
        code: the Python.
        comment: shape, or the rule that it applies.
        section: "forward", "backward", "update" or "write back".
        instr: the instruction it ends with.
        run: the execution of a statement of the user's that it belongs to.
        owner: for a line of the backward pass, the line of the forward pass it belongs to.
        source: for a line of the backward pass, the user's statement.
        inside: whether it is in a loop of the program.
        of: the lines of the program without loops that it replaces; empty for a line that only loops need.
    """

    code: list[Code]
    comment: str
    section: str
    instr: Instr | None = None
    run: Run | None = None
    owner: Line | None = None
    source: str = ""
    inside: bool = False
    of: tuple[Line, ...] = ()

    @cached_property
    def tokens(self) -> list[Token]:
        """All names and indices, in order."""
        return [token for one in self.code for token in one.tokens]


@dataclass(eq=False)
class Body:
    """The lines of a program.

    Attributes:
        names: the names of all values that have one.
        namer: hands out further names.
        helpers: functions that it calls and has to define.
        large: constants that have to be passed in.
    """

    lines: list[Line] = field(default_factory=list)
    names: dict[Var, str] = field(default_factory=dict)
    namer: Namer = field(default_factory=Namer)
    helpers: set[str] = field(default_factory=set)
    large: dict[Var, Array] = field(default_factory=dict)


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
