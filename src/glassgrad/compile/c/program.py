"""A planned graph as functions of C, one for each kernel, and the calls of them in order."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from glassgrad.compile.c.helpers import Helpers
from glassgrad.compile.c.kernels.nests import NestWriter
from glassgrad.compile.c.kernels.parts import Room, rounded
from glassgrad.compile.c.kernels.solid import Solid, kind
from glassgrad.compile.c.kernels.solids import SOLIDS
from glassgrad.compile.c.sizes import Sizes
from glassgrad.compile.c.stages import Planned
from glassgrad.compile.c.words import TYPES, WIDTH, Names, comment, filled, literal
from glassgrad.compile.ir.graph import Instr, Var, type_text
from glassgrad.compile.plan.kernels import Kernel
from glassgrad.ops.core import PRIMITIVES


class Note(NamedTuple):
    """What a comment says of an instruction: the user's line, the formula, whether it is in the backward pass."""

    line: str
    formula: str
    backward: bool


@dataclass
class Function:
    """One kernel: its definition, and the call of it."""

    text: str
    call: str


@dataclass
class Program:
    """The parts of a written program.

    Attributes:
        planned: the plan.
        names: the names of all arrays, each once.
        sizes: the named sizes.
        helpers: the functions that kernels call.
        arena: the elements of the arena of each kind.
        functions: the kernels.
        places: the addresses of arrays that are not in the arena of values.
        locals: arrays in the arena that `step_run` names, with their addresses.
        hints: names for values that have none yet.
        describe: returns what a comment says of an instruction.
    """

    planned: Planned
    names: Names
    known: dict[Var, str]
    sizes: Sizes
    helpers: Helpers
    places: Mapping[Var, str]
    arena: dict[str, int]
    describe: Callable[[Instr], Note]
    functions: list[Function] = field(default_factory=list)
    locals: dict[str, str] = field(default_factory=dict)
    hints: Mapping[Var, str] = field(default_factory=dict)
    _rooms: dict[str, int] = field(default_factory=dict)
    _begin: dict[str, int] = field(default_factory=dict)

    def write(self) -> None:
        """Write every kernel."""
        self._begin = dict(self.arena)
        for number, kernel in enumerate(self.planned.kernels):
            self.functions.append(self._function(number, kernel))
        for of, elements in self._rooms.items():
            self.arena[of] = self.arena.get(of, 0) + elements

    # --- arrays ----------------------------------------------------------------------------------------

    def name(self, var: Var) -> str:
        """Return the name of an array."""
        if var not in self.known:
            self.known[var] = self.names.take(self.hints.get(var) or var.name or "value")
        return self.known[var]

    def address(self, var: Var) -> str:
        """Return the address of an array inside of `step_run`."""
        place = self.planned.alias.get(var, var)
        if place in self.places:
            return self.places[place]
        name = self.name(place)
        self.locals[name] = f"{TYPES[kind(place.dtype)]} *const {name} = {self._in_arena(place)};"
        return name

    def _in_arena(self, var: Var) -> str:
        offset = self.planned.offsets[var]
        return f"arena.{kind(var.dtype)}" + (f" + {offset}" if offset else "")

    def _location(self, var: Var) -> object:
        place = self.planned.alias.get(var, var)
        if place in self.places or place not in self.planned.offsets:
            return place
        return kind(place.dtype), self.planned.offsets[place]

    # --- kernels ---------------------------------------------------------------------------------------

    def _function(self, number: int, kernel: Kernel) -> Function:
        written = {self._location(var): var for var in sorted(kernel.writes, key=lambda var: var.id)}
        params: dict[object, tuple[str, Var]] = {}

        def pointer(var: Var) -> str:
            place = self._location(var)
            if place not in params:
                shown = written.get(place, var)
                params[place] = self.name(self.planned.alias.get(shown, shown)), var
            return params[place][0]

        for var in written.values():
            pointer(var)
        words = self.sizes, self.helpers
        writer: NestWriter | Solid
        if kernel.nest is not None:
            writer = NestWriter(kernel.nest, pointer, words)
        else:
            writer = SOLIDS[kernel.instrs[0].op](kernel, pointer, words)
        body = "\n".join(f"    {line}" for line in writer.lines())
        words_used = set(re.findall(r"\w+", body))
        heads, arguments = [], []
        for place, (name, var) in params.items():
            if name not in words_used:
                continue
            constant = "" if place in written else "const "
            heads.append(f"{constant}{TYPES[kind(var.dtype)]} *restrict {name}")
            arguments.append(self.address(var))
        for room, start in self._placed(writer.rooms):
            heads.append(f"{TYPES[room.kind]} *restrict {room.name}")
            arguments.append(f"arena.{room.kind} + {start}")
        name = self._title(kernel, number)
        head = wrapped(f"static void {name}(", heads)
        text = f"/* {self._comment(kernel)} */\n{head}\n{{\n{body}\n}}\n"
        return Function(text, wrapped(f"    {name}(", arguments) + ";")

    def _placed(self, rooms: list[Room]) -> list[tuple[Room, int]]:
        """Give scratch memory to a kernel: all kernels use the same."""
        found, used = [], dict.fromkeys((room.kind for room in rooms), 0)
        for room in rooms:
            found.append((room, self._begin.get(room.kind, 0) + used[room.kind]))
            used[room.kind] += rounded(room.elements, room.kind)
        for of, elements in used.items():
            self._rooms[of] = max(self._rooms.get(of, 0), elements)
        return found

    def _title(self, kernel: Kernel, number: int) -> str:
        first = min(kernel.writes, key=lambda var: var.id)
        backward = all(self.describe(instr).backward for instr in kernel.instrs)
        target = self.planned.alias.get(first)
        if target is not None:
            return self.names.take(f"update_{self.name(target)}")
        if kernel.instrs[0].op == "copy" and not kernel.instrs[0].where:
            return self.names.take(f"keep_{self.name(first)}")
        return self.names.take(f"{'backward' if backward else 'compute'}_{self.name(first)}")

    def _comment(self, kernel: Kernel) -> str:
        """Return the user's lines that a kernel belongs to, and the formulas of its ops."""
        notes = [self.describe(instr) for instr in kernel.instrs]
        lines = list(dict.fromkeys(note.line for note in notes if note.line))
        formulas = dict.fromkeys(note.formula for note in notes)
        writes = sorted(kernel.writes, key=lambda var: var.id)
        results = ", ".join(f"{self.name(self.planned.alias.get(var, var))} {type_text(var)}" for var in writes)
        parts = [results, *lines[:4], *_filled(list(formulas))]
        return comment("\n   ".join(parts))


def formula(instr: Instr) -> str:
    """Return an op with its formula."""
    prim = PRIMITIVES.get(instr.op)
    return f"{instr.op}: {prim.formula}" if prim is not None and prim.formula else instr.op


def _filled(parts: list[str]) -> list[str]:
    """Join short texts into lines."""
    lines: list[str] = []
    for part in parts:
        if lines and len(lines[-1]) + len(part) + 2 <= WIDTH:
            lines[-1] += f"; {part}"
        else:
            lines.append(part)
    return lines


def wrapped(head: str, parts: list[str]) -> str:
    """Return ``head part, part, ...)`` in lines that are not too long."""
    lines = [head]
    indent = " " * len(head)
    for number, part in enumerate(parts):
        text = part + (", " if number + 1 < len(parts) else "")
        if len(lines[-1]) + len(text) > WIDTH and lines[-1].strip():
            lines.append(indent)
        lines[-1] += text
    return "\n".join(line.rstrip() for line in lines) + ")"


def array_text(values: list[float], of: str) -> str:
    """Return the numbers of an array between braces, several a line."""
    return "{\n" + filled([literal(value, of) for value in values]) + "\n}"


def elements(var: Var) -> int:
    """Return the elements of an array of C, which has at least one."""
    return max(math.prod(var.shape), 1)
