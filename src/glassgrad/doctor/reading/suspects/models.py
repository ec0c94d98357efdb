"""Suspects about models: layers and their order, shapes, normalisation, initial weights, registered parts."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from glassgrad.doctor.reading.program import Program
from glassgrad.doctor.reading.rule import Spot, shown, spot
from glassgrad.doctor.reading.suspects.form import suspects, suspects_of


@suspects("view of several axes")
def _views(program: Program) -> Iterator[Spot]:
    """Find `x.view(a, b, c)` with three or more sizes."""
    for name in (".view", ".reshape"):
        for call in program.calls_of(name):
            if len(call.args) >= 3 and isinstance(call.func, ast.Attribute):
                yield spot(call, text=shown(call))


SUSPECTS = suspects_of(globals())
