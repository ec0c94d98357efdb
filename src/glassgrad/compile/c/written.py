"""The text of `step.c` without its entry: functions, constants and the arena; and the calls of the kernels in order."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from glassgrad.compile.c.helpers import Helpers
from glassgrad.compile.c.kernels.parts import rounded
from glassgrad.compile.c.kernels.solid import kind
from glassgrad.compile.c.program import Note, Program, array_text, elements
from glassgrad.compile.c.sizes import Sizes
from glassgrad.compile.c.stages import Planned
from glassgrad.compile.c.words import TYPES, Names, literal
from glassgrad.compile.ir.graph import Instr, Var
from glassgrad.compile.llvm.module.ir import BITS
from glassgrad.ops.core import Array

MOST_WRITTEN = 64  # elements of a constant that the source holds; larger ones are in the file of weights

_HEAD = """\
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
"""

_PRAGMAS = """\
#define GG_PRAGMA(text) _Pragma(#text)
#if defined(GG_SIMD) || defined(_OPENMP) /* sums in any order, loops with turns in any order */
#define GG_SIMD_SUM(...) GG_PRAGMA(omp simd reduction(+ : __VA_ARGS__))
#define GG_SIMD_LOOP GG_PRAGMA(omp simd)
#else
#define GG_SIMD_SUM(...)
#define GG_SIMD_LOOP
#endif
#ifdef _OPENMP /* a loop that threads share; a statement that all run, and a loop in it that they share */
#define GG_SHARED(...) GG_PRAGMA(omp parallel for __VA_ARGS__)
#define GG_TEAM(...) GG_PRAGMA(omp parallel __VA_ARGS__)
#define GG_EACH(...) GG_PRAGMA(omp for __VA_ARGS__)
#else
#define GG_SHARED(...)
#define GG_TEAM(...)
#define GG_EACH(...)
#endif
"""


@dataclass
class Layout:
    """Where the arrays lie that are not values between kernels.

    Attributes:
        arguments, results, state: arrays with their names.
        places: the addresses of all of them.
        drawn: the inputs that are drawn before the kernels, each with a function that returns the statement.
        hints: names for values.
        describe: returns what a comment says of an instruction.
    """

    arguments: Mapping[Var, str]
    results: Mapping[Var, str]
    state: Mapping[Var, str]
    places: dict[Var, str]
    drawn: Mapping[Var, Callable[[tuple[str, str], Helpers], str]]
    hints: Mapping[Var, str]
    describe: Callable[[Instr], Note]


@dataclass(frozen=True)
class Written:
    """The parts of the file.

    Attributes:
        head: includes, functions, constants, arena and kernels.
        body: the statements of `step_run`.
        arena: bytes of the arena.
        sizes: the named sizes.
    """

    head: str
    body: list[str]
    arena: int
    sizes: Sizes


def write(planned: Planned, layout: Layout, names: Names) -> Written:
    """Write a planned graph as C."""
    helpers = Helpers()
    sizes = Sizes(layout.arguments, layout.state)
    arena = {of: rounded(count, of) for of, count in planned.sizes.items()}
    places = dict(layout.places)
    constants = _constants(planned, places, names)
    for var in layout.drawn:
        of = kind(var.dtype)
        places[var] = f"arena.{of} + {arena.get(of, 0)}"
        arena[of] = arena.get(of, 0) + rounded(elements(var), of)
    known = {**layout.arguments, **layout.results, **layout.state}
    program = Program(planned, names, known, sizes, helpers, places, arena, layout.describe, hints=layout.hints)
    draws = [draw((places[var], sizes.text(elements(var))), helpers) for var, draw in layout.drawn.items()]
    checks = _checks(planned, layout, sizes, helpers)
    program.write()
    ends = _ends(planned, program, layout)
    calls = [line for one in program.functions for line in one.call.split("\n")]
    body = [*checks, *program.locals.values(), *draws, *(line.removeprefix("    ") for line in calls), *ends]
    functions = "\n".join(one.text for one in program.functions)
    memory, total = _arena(arena)
    defines = [helpers.texts.pop("cblas")] if "cblas" in helpers.texts else []
    used = "\n".join([functions, *helpers.texts.values()])
    pragmas = [_PRAGMAS] if re.search("GG_(SIMD|SHARED|EACH)", used) else []
    head = [_HEAD, *defines, *pragmas, *helpers.texts.values(), *memory, *constants, functions]
    return Written("\n".join(head), body, total, sizes)


def _arena(arena: Mapping[str, int]) -> tuple[list[str], int]:
    """Return the declaration of the arena, and its bytes."""
    kinds = sorted((of for of, count in arena.items() if count), key=lambda of: -BITS[of])
    if not kinds:
        return [], 0
    lines = [f"    _Alignas(64) {TYPES[of]} {of}[{arena[of]}];" for of in kinds]
    total = sum(arena[of] * max(BITS[of] // 8, 1) for of in kinds)
    return ["/* all values between kernels */\nstatic struct {\n" + "\n".join(lines) + "\n} arena;\n"], total


def _constants(planned: Planned, places: dict[Var, str], names: Names) -> list[str]:
    """Return definitions of the small arrays that the function captured."""
    lines = []
    for var, value in planned.graph.constants:
        if var in places:
            continue
        of, name = kind(var.dtype), names.take(var.name or "constant")
        places[var] = name
        flat: Array = np.ascontiguousarray(value, var.dtype).reshape(-1)
        shown = array_text(flat.tolist() or [0], of)
        lines.append(f"static const {TYPES[of]} {name}[{elements(var)}] = {shown};\n")
    return lines


def _checks(planned: Planned, layout: Layout, sizes: Sizes, helpers: Helpers) -> list[str]:
    """Return lines that refuse indices outside of their axis before anything changes."""
    lines: dict[str, None] = {}
    for check in planned.checks:
        of, var = kind(check.var.dtype), check.var
        name = layout.places.get(var)
        if name is None or not var.size:
            continue
        number = planned.graph.inputs.index(var) + 1
        low = max(check.low, 0) if of[0] == "u" else check.low
        spare = literal(check.spare or 0, of)
        test = (
            f"{helpers.outside(of)}({name}, {sizes.text(var.size)}, {literal(low, of)}, {literal(check.extent, of)}, "
            f"{'false' if check.spare is None else 'true'}, {spare})"
        )
        lines[f"if ({test}) {{\n    return {number};\n}}"] = None
    return [line for text in lines for line in text.split("\n")]


def _ends(planned: Planned, program: Program, layout: Layout) -> list[str]:
    """Return lines after the kernels: results that are another array, and the guards of computed indices."""
    lines = []
    count = len(planned.graph.outputs) - len(planned.computed)
    targets = list(layout.results)
    shown = [out for out in planned.graph.outputs[:count] if isinstance(out, Var)]
    for out, target in zip(shown, targets, strict=True):
        if out is not target:
            source = program.address(out)
            lines.append(f"memcpy({layout.results[target]}, {source}, sizeof *{source} * {elements(out)});")
    for guard in planned.graph.outputs[count:]:
        assert isinstance(guard, Var)
        lines += [f"if (!{program.address(guard)}[0]) {{", "    return -1;", "}"]
    return lines


def hints_of(instrs: Sequence[Instr], names: Mapping[int, str]) -> dict[Var, str]:
    """Return names for values: the user's, by the identity of origins, else the name of the op."""
    found = {}
    for instr in instrs:
        known = names.get(id(instr.where))
        for out in instr.outputs:
            found[out] = known or out.name or instr.op
    return found
