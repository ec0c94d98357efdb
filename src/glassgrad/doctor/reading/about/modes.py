"""Parts of a model that are put into evaluation mode, and back into training mode by accident."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from glassgrad.doctor.reading.actors import makes_optimizer
from glassgrad.doctor.reading.flow import flow
from glassgrad.doctor.reading.nodes import method_of, object_of
from glassgrad.doctor.reading.program import Loop, Program, constant
from glassgrad.doctor.reading.rule import Spot, shown, spot
from glassgrad.doctor.reading.values import DRAWING, NORMS, drops

_OVER = frozenset({"modules", "children", "named_modules", "named_children"})


@dataclass(frozen=True)
class _Rest:
    """A call that puts a part of a model into evaluation mode: the model in the words of the script, and the part."""

    call: ast.Call
    model: str
    part: str


def moded(program: Program) -> frozenset[str]:
    """Return the layers that behave otherwise in training, without dropout if all of the script drops nothing."""
    return NORMS | DRAWING if drops(program) else NORMS


_NOISE = re.compile(r"(^|_)(z|noises?|latents?)\b|\brandn?\(|\bnormal_?\(")


def draws_examples(program: Program, call: ast.Call) -> bool:
    """Tell whether a call draws examples from a generator: it gets noise, and the script trains another model as well.

    Many generators draw in the mode in which they were trained, with the statistics of the batch.
    """
    trained = [one for one in program.calls if makes_optimizer(program, one)]
    given = (flow(program).origin(one) or one for one in call.args if len(trained) > 1)
    return any(_NOISE.search(ast.unparse(one)) for one in given)


def undone(program: Program) -> Iterator[Spot]:
    """Find a part that is put into evaluation mode once, and a later `train()` of the whole model in the loop."""
    if any("train" in one.methods for one in program.classes.values()):
        return  # which may put the part back
    for rest in _rests(program):
        for call in program.calls_of(".train"):
            on = constant(next(iter(call.args), None)) in {None, True}
            if on and ast.unparse(call.func) == f"{rest.model}.train" and _follows(program, rest.call, call):
                again = f"{shown(rest.call)}  # after each {shown(call)}"
                yield spot(call, rest.call, text=shown(call), part=rest.part, again=again)
                break


def _rests(program: Program) -> Iterator[_Rest]:
    for call in program.calls_of(".eval"):
        assert isinstance(call.func, ast.Attribute)
        part = call.func.value
        if isinstance(part, ast.Attribute) and not isinstance(part.value, ast.Call):
            yield _Rest(call, ast.unparse(part.value), shown(part))
        around = program.function(call)
        if around is None or not any(_goes_through(one, part) for one in program.loops(call)):
            continue
        for use in program.uses(around):
            model = object_of(use) or next(iter(use.args), None)
            if model is not None:
                yield _Rest(use, ast.unparse(model), f"the layers of {shown(use)}")


def _goes_through(loop: Loop, part: ast.expr) -> bool:
    """Tell whether a loop goes through the modules of a model, with a chosen one under this name."""
    return isinstance(loop, ast.For) and method_of(loop.iter) in _OVER and ast.unparse(part) in ast.unparse(loop.target)


def _follows(program: Program, rest: ast.Call, call: ast.Call) -> bool:
    """Tell whether a training loop calls `train()` after a part was put to rest, which nothing repeats."""
    if program.function(rest) is not program.function(call) or call.lineno <= rest.lineno:
        return False
    mine, theirs = program.loops(rest), program.loops(call)
    outer = [one for one in theirs if one not in mine]
    trains = any("backward(" in ast.unparse(one) or ".step(" in ast.unparse(one) for one in outer)
    text = ast.unparse(rest)
    again = [one for one in program.calls if ast.unparse(one) == text and one.lineno > call.lineno]
    return trains and not any(any(loop in program.loops(one) for loop in outer) for one in again)
