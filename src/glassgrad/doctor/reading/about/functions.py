"""Rules about hand-written derivatives."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from glassgrad.doctor.reading.names import last
from glassgrad.doctor.reading.program import Program, constant
from glassgrad.doctor.reading.rule import Spot, reads, rules_of, shown, spot
from glassgrad.doctor.reading.values import returns


@reads("backward ignores its gradient")
def _ignores(program: Program) -> Iterator[Spot]:
    """Find a `backward` of an autograd function that uses none of the gradients that it is given."""
    for one in program.classes.values():
        backward = one.methods.get("backward")
        if backward is None or not any(last(base) == "Function" for base in one.bases):
            continue
        given = {it.arg for it in (*backward.args.posonlyargs, *backward.args.args)[1:]}
        given |= {it.arg for it in (backward.args.vararg,) if it is not None}
        used = {node.id for node in ast.walk(backward) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
        found = [it for it in returns(program, backward) if it.value is not None and constant(it.value) is None]
        made = [it for it in found if not isinstance(it.value, ast.Constant)]
        if given and not given & used and made:
            yield spot(made[-1], backward, text=shown(made[-1]), name=one.node.name, given=min(given))


RULES = rules_of(globals())
