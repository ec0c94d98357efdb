"""Lines that repeat exactly, once for each layer, written as one loop.

Lines are compared as text with the names taken out. In a stretch that repeats, each name plays one part: it is the same
in every turn; it is made in the turn (and kept in a list if anybody looks at it later); it was made in the turn
before, and is carried along; or it is one of several things from outside, one a turn, which come from a list. A
stretch with a name that fits no part stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from glassgrad.compile.emit.numpy.names import RESERVED
from glassgrad.compile.emit.numpy.source import Line

_LEAST = 3  # lines that make a loop worth its header
_NAME = re.compile(r"(?<![\w.\"'])[A-Za-z_]\w*")


@dataclass(frozen=True)
class Skeleton:
    """A line's text with its names taken out, and what it belongs to: only lines of the same statement are alike."""

    pieces: tuple[str, ...]
    section: str
    comment: str


@dataclass(eq=False)
class Stretch:
    """`turns` repetitions of `period` lines from line `start` on."""

    start: int
    period: int
    turns: int

    @property
    def saved(self) -> int:
        return self.period * (self.turns - 1)

    @property
    def stop(self) -> int:
        return self.start + self.period * self.turns


@dataclass(eq=False)
class Parts:
    """What the names of a stretch are; every entry lists one name a turn.

    Attributes:
        made: names made in the turn, by the place of their first assignment.
        carried: names of the turn before, with what they are in the first turn.
        outside: names from outside of the stretch.
    """

    made: dict[tuple[str, ...], int] = field(default_factory=dict)
    carried: dict[tuple[str, ...], tuple[str, ...]] = field(default_factory=dict)
    outside: dict[tuple[str, ...], None] = field(default_factory=dict)


class Roller:
    """Rolls up the lines of one program.

    Attributes:
        refer: what has to be written in place of names that became entries of lists.
    """

    def __init__(self, lines: Sequence[Line], names: Iterable[str], returned: Iterable[str]) -> None:
        self.lines = list(lines)
        self.names = set(names)
        self.taken = self.names | RESERVED
        self.returned = set(returned)
        self.refer: dict[str, str] = {}
        self.lists: dict[tuple[str, ...], str] = {}
        self.split = [self._split("\n".join(line.code)) for line in self.lines]
        self.skeletons = [
            Skeleton(pieces, line.section, line.comment)
            for (pieces, _), line in zip(self.split, self.lines, strict=True)
        ]

    def _split(self, code: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the text between the names, and the names."""
        pieces, found, last = [], [], 0
        for match in _NAME.finditer(code):
            if match[0] in self.names:
                pieces.append(code[last : match.start()])
                found.append(match[0])
                last = match.end()
        return (*pieces, code[last:]), tuple(found)

    def rolled(self) -> list[Line]:
        """Return the lines with loops in the place of repetitions."""
        result: list[Line] = []
        at = 0
        for stretch, parts in self._choose(0, len(self.lines)):
            result += [self._plain(number) for number in range(at, stretch.start)]
            result += self._loop(stretch, parts)
            at = stretch.stop
        return result + [self._plain(number) for number in range(at, len(self.lines))]

    def _plain(self, number: int) -> Line:
        return self._written(number, self.refer)

    def _written(self, number: int, names: Mapping[str, str]) -> Line:
        pieces, found = self.split[number]
        code = pieces[0] + "".join(names.get(name, name) + piece for name, piece in zip(found, pieces[1:], strict=True))
        return replace(self.lines[number], code=code.split("\n"))

    # --- finding --------------------------------------------------------------------------------------

    def _choose(self, low: int, high: int) -> list[tuple[Stretch, Parts]]:
        """Return the stretches to roll up between two lines, in order; the largest saving first."""
        for stretch in sorted(self._candidates(low, high), key=lambda one: (-one.saved, one.period)):
            found = self._fitting(stretch, high)
            if found is not None:
                return [*self._choose(low, found[0].start), found, *self._choose(found[0].stop, high)]
        return []

    def _candidates(self, low: int, high: int) -> list[Stretch]:
        found = []
        for period in range(_LEAST, (high - low) // 2 + 1):
            run = 0
            for at in range(low, high - period + 1):
                if at < high - period and self.skeletons[at] == self.skeletons[at + period]:
                    run += 1
                    continue
                if run >= period:
                    found.append(Stretch(at - run, period, run // period + 1))
                run = 0
        return found

    def _fitting(self, stretch: Stretch, high: int) -> tuple[Stretch, Parts] | None:
        """Shift a stretch to where its turns have the fewest names in common with each other."""
        best: tuple[Stretch, Parts] | None = None
        for shift in range(stretch.period):
            moved = Stretch(stretch.start + shift, stretch.period, stretch.turns)
            while moved.turns > 1 and (moved.stop > high or not self._repeats(moved)):
                moved.turns -= 1
            parts = self._parts(moved) if moved.turns > 1 else None
            if parts is None:
                continue
            worth = (-moved.saved, len(parts.carried))
            if best is None or worth < (-best[0].saved, len(best[1].carried)):
                best = moved, parts
        return best

    def _repeats(self, stretch: Stretch) -> bool:
        spans = range(stretch.start, stretch.stop - stretch.period)
        return all(self.skeletons[at] == self.skeletons[at + stretch.period] for at in spans)

    # --- what the names are ---------------------------------------------------------------------------

    def _assigned(self, number: int) -> str | None:
        """Return the name a line assigns to; None for a line that changes something in place."""
        found = _NAME.match(self.lines[number].code[0])
        assigns = found is not None and self.lines[number].code[0][found.end() :].startswith(" = ")
        return found[0] if found is not None and assigns and found[0] in self.names else None

    def _parts(self, stretch: Stretch) -> Parts | None:
        parts = Parts()
        turns = [range(stretch.start + turn * stretch.period, stretch.start + (turn + 1) * stretch.period)
                 for turn in range(stretch.turns)]  # fmt: skip
        makers = [
            {name: number - turn[0] for number in reversed(turn) if (name := self._assigned(number))} for turn in turns
        ]
        for offset in range(stretch.period):
            columns = zip(*(self.split[turn[offset]][1] for turn in turns), strict=True)
            for column in columns:
                if not self._place(column, offset, makers, parts):
                    return None
        return parts

    def _place(self, column: tuple[str, ...], offset: int, makers: list[dict[str, int]], parts: Parts) -> bool:
        """Find the part that one name plays in each turn; tell whether there is one."""
        if column in parts.made or column in parts.carried or column in parts.outside:
            return True
        here = {maker.get(name) for name, maker in zip(column, makers, strict=True)}
        if here != {None}:
            if len(here) != 1 or len(set(column)) != len(column):
                return False
            parts.made[column] = here.pop() or 0
            return True
        if len(set(column)) == 1:
            return not any(column[0] in maker for maker in makers)
        before = {maker.get(name) for name, maker in zip(column[1:], makers, strict=False)}
        if len(before) == 1 and before != {None} and not any(column[0] in maker for maker in makers):
            source = next(names for names in self._columns_of(column[1], makers))
            parts.carried[column] = source
            return True
        parts.outside[column] = None
        return not any(name in maker for name in column for maker in makers)

    @staticmethod
    def _columns_of(name: str, makers: list[dict[str, int]]) -> Iterable[tuple[str, ...]]:
        """Return the names, one a turn, that are made where `name` is made in its turn."""
        for maker in makers:
            if name in maker:
                place = maker[name]
                yield tuple(next((one for one, at in other.items() if at == place), "") for other in makers)

    # --- writing --------------------------------------------------------------------------------------

    def _loop(self, stretch: Stretch, parts: Parts) -> list[Line]:
        section = self.lines[stretch.start].section
        later = self.returned | {
            name for number in range(stretch.stop, len(self.lines)) for name in self.split[number][1]
        }
        before: list[Line] = []
        inside: dict[str, str] = {}
        backwards = any(tuple(reversed(column)) in self.lists for column in parts.outside)
        for column in parts.outside:
            inside[column[0]] = f"{self._list_of(column, backwards, before, section)}[i]"
        for column in parts.made:
            inside[column[0]] = self._made(column, backwards, before, section, later)
        after: list[str] = []
        for column, source in parts.carried.items():
            name = self._fresh(_stem(column[1]) + "_before")
            first = self.refer.get(column[0], column[0])
            before.append(Line([f"{name} = {first}"], "", section))
            inside[column[0]] = name
            after.append(f"{name} = {inside.get(source[0], source[0])}")
        order = f"range({stretch.turns})"
        header = Line([f"for i in {f'reversed({order})' if backwards else order}:"], "once for each layer", section)
        body = []
        for number in range(stretch.start, stretch.start + stretch.period):
            line = self._written(number, {**self.refer, **inside})
            body.append(replace(line, code=[f"    {code}" for code in line.code]))
        body += [Line([f"    {code}"], "", section) for code in after]
        return [*before, header, *body]

    def _made(self, column: tuple[str, ...], backwards: bool, before: list[Line], section: str, later: set[str]) -> str:
        """Return what a name made in the loop is called there; names others look at go into a list."""
        if not later & set(column):
            return self._fresh(_stem(column[0]), own=column)
        name = self._fresh(_stem(column[0]), own=column)
        before.append(Line([f"{name} = [None] * {len(column)}"], "", section))
        ordered = tuple(reversed(column)) if backwards else column
        self.lists[ordered] = name
        self.refer.update({one: f"{name}[{at}]" for at, one in enumerate(ordered)})
        return f"{name}[i]"

    def _list_of(self, column: tuple[str, ...], backwards: bool, before: list[Line], section: str) -> str:
        """Return the list that holds one thing a turn; made in front of the loop unless there is one already."""
        ordered = tuple(reversed(column)) if backwards else column
        if ordered not in self.lists:
            name = self._fresh(_stem(column[0]))
            listed = ", ".join(self.refer.get(one, one) for one in ordered)
            before.append(Line([f"{name} = [{listed}]"], "", section))
            self.lists[ordered] = name
        return self.lists[ordered]

    def _fresh(self, wanted: str, own: Sequence[str] = ()) -> str:
        """Return a name that nothing else has; one of `own`, which the loop replaces, may be used again."""
        free = self.taken - set(own)
        name, number = wanted, 2
        while name in free:
            name, number = f"{wanted}_{number}", number + 1
        self.taken.add(name)
        return name


def _stem(name: str) -> str:
    """Return a name without its numbers: ``blocks_2_weight`` is one of ``blocks_weight``."""
    stem = re.sub(r"_?\d+", "", name).strip("_")
    return stem if stem.isidentifier() else f"each_{name}"
