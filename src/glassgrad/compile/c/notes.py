"""What the comments of a written program say: the user's lines, and the rules of the backward pass."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePath

from glassgrad.compile.c.program import Note, formula
from glassgrad.compile.front.origin import BACKWARD, FORWARD, Origin
from glassgrad.compile.ir.graph import Instr
from glassgrad.compile.source.lines import rule_text


def note_of(forward: Mapping[int, Instr], instr: Instr) -> Note:
    """Return the comment on an instruction; `forward` holds the forward instructions by their numbers on the tape."""
    where = instr.where
    if not isinstance(where, Origin):
        return Note("", formula(instr), False)
    made = forward.get(where.node) if where.role != FORWARD else None
    place = made.where.place if made is not None else where.place
    line = f"{PurePath(place.file).name}:{place.line}  {place.source.strip()}"
    rule = f"[{rule_text(made, where.argument)}]" if made is not None and where.role == BACKWARD else formula(instr)
    return Note(line if made is None else f"backward of {line}", rule, where.role != FORWARD)
