"""Finding repeated lines: once per iteration ("turn") of a user's loop, or once per layer of several equal layers.

Lines are compared without their names and indices, and only lines from the same place in the user's source can match.
In a loop each name has one part: it is the same in every turn; the turn makes it; the turn before made it; or it is one
of several things, one per turn, that a list holds. If a name fits none of these, there is no loop.
"""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from glassgrad.compile.front.origin import FORWARD, Origin
from glassgrad.compile.numpy import text
from glassgrad.compile.numpy.text import Text, Token
from glassgrad.compile.source.lines import Code, Line, assign
from glassgrad.compile.source.naming.names import cut_at_numbers
from glassgrad.compile.source.statements import place_of

Column = tuple[Token | None, ...]


def skeleton(line: Line) -> Hashable:
    """Return the key that a line shares with its repetitions."""
    where = line.instr.where if line.instr is not None else None
    place: object = line.run.statement.unnumbered if line.run is not None else None
    if isinstance(where, Origin) and where.role == FORWARD:
        place = place_of(where)
    return tuple(code.shape for code in line.code), line.section, line.comment, place


@dataclass(eq=False)
class Family:
    """A list of the program: one value for each turn, and sometimes one more as the start value of the first turn."""

    name: str
    members: dict[str, int]
    length: int
    given: bool = False

    def offset(self, column: Column, labels: Sequence[int]) -> int | None:
        """Return the constant offset of a column's indices in this list from the turn numbers; None if it varies."""
        known = {self.members[one] - at for one, at in zip(column, labels, strict=True) if one in self.members}
        if len(known) != 1 or any(one is not None and one not in self.members for one in column):
            return None
        (offset,) = known
        return offset if all(0 <= at + offset < self.length for at in labels) else None


@dataclass(eq=False)
class Loop:
    """A loop: its turns in the order in which they run.

    Attributes:
        turns: for each turn the numbers of its lines; None for a line that the turn lacks.
        labels: for each turn the value of the loop variable.
        made, carried, listed, outside: the names with each kind of part, keyed by column.
        sums: names that every turn adds to and that the first turn makes, and the number of the line that makes them.
        patches: number -> a line of the first turn, rewritten to add to such a sum.
        leader: the loop of the forward pass whose turns this one walks back through.
    """

    turns: list[list[int | None]]
    labels: list[int]
    leader: Loop | None = None
    made: dict[Column, tuple[int, int]] = field(default_factory=dict)
    carried: dict[Column, Column] = field(default_factory=dict)
    listed: dict[Column, tuple[Family, int]] = field(default_factory=dict)
    outside: dict[Column, None] = field(default_factory=dict)
    sums: dict[str, int] = field(default_factory=dict)
    patches: dict[int, Code] = field(default_factory=dict)

    @property
    def numbers(self) -> list[int]:
        return [number for turn in self.turns for number in turn if number is not None]

    @property
    def first(self) -> int:
        return min(self.numbers)

    @property
    def last(self) -> int:
        return max(self.numbers)

    @property
    def saved(self) -> int:
        return sum(number is not None for turn in self.turns[1:] for number in turn)

    @property
    def backwards(self) -> bool:
        return len(self.labels) > 1 and self.labels[1] < self.labels[0]


class Lines(list[Line]):
    """The lines of one program; knows which of them are alike."""

    def __init__(self, lines: Iterable[Line]) -> None:
        super().__init__(lines)
        # Stored as numbers, because they are compared often.
        known: dict[Hashable, int] = {}
        self.skeletons = [known.setdefault(skeleton(line), len(known)) for line in self]

    def targets(self, number: int) -> tuple[str, ...]:
        """Return the names that a line makes; none for a line that changes something in place."""
        return self[number].code[0].makes

    # --- the forward pass: repeated lines in sequence -----------------------------------------------

    def repetitions(self, low: int, high: int) -> Iterator[Loop]:
        """Yield the non-overlapping loops between two lines, in order; those that save most are chosen first."""
        found = sorted(self._candidates(low, high), key=lambda one: (-one[1] * (one[2] - 1), one[1]))
        for start, period, turns in found:
            loop = self._fitting(start, period, turns, high)
            if loop is not None:
                yield from self.repetitions(low, loop.first)
                yield loop
                yield from self.repetitions(loop.last + 1, high)
                return

    def _candidates(self, low: int, high: int) -> Iterator[tuple[int, int, int]]:
        """Yield start, period and number of turns of everything that repeats."""
        kinds = np.array(self.skeletons[low:high], np.intp)
        for period in range(1, (high - low) // 2 + 1):
            alike = np.zeros(high - low - period + 2, bool)
            alike[1:-1] = kinds[period:] == kinds[:-period]
            ends = np.flatnonzero(alike[1:] != alike[:-1])
            for begin, end in zip(ends[::2].tolist(), ends[1::2].tolist(), strict=True):
                if end - begin >= period:
                    yield low + begin, period, (end - begin) // period + 1

    def _fitting(self, start: int, period: int, turns: int, high: int) -> Loop | None:
        """Shift a repetition: turns should begin with a statement, save the most lines and carry the fewest values."""
        best: tuple[tuple[int, ...], Loop] | None = None
        for first in range(start, start + period):
            count = turns
            while count > 1 and (first + count * period > high or not self._repeats(first, period, count)):
                count -= 1
            if count == 1:
                continue
            starts = range(first, first + count * period, period)
            loop = Loop([[*range(at, at + period)] for at in starts], [*range(count)])
            if not Fitter(self, loop, ()).fits():
                continue
            torn = any(self._is_torn(turn[0] or 0) for turn in loop.turns[1:])
            worth = (torn, -loop.saved, len(loop.carried), first)
            if best is None or worth < best[0]:
                best = worth, loop
        return None if best is None else best[1]

    def _is_torn(self, number: int) -> bool:
        """Tell whether the line before belongs to the same execution of a statement."""
        return self[number].run is not None and self[number].run is self[number - 1].run

    def _repeats(self, first: int, period: int, turns: int) -> bool:
        spans = range(first, first + period * (turns - 1))
        return all(self.skeletons[at] == self.skeletons[at + period] for at in spans)

    # --- the backward pass: the lines of a loop's turns ---------------------------------------------

    def ways_back(self, leader: Loop, families: Sequence[Family]) -> Loop | None:
        """Return the loop over the lines of the backward pass that belong to a loop's turns, as many as are alike."""
        turns = self._owned(leader)
        if len(turns) < 2:
            return None
        shapes = [[self.skeletons[number] for number in lines] for _, lines in turns]
        model = max(shapes, key=lambda one: (shapes.count(one), len(one)))
        alike = [at for at, one in enumerate(shapes) if one == model]
        if not alike:
            return None
        low, high = alike[0], alike[0] + 1
        while high < len(shapes) and shapes[high] == model:
            high += 1
        sums = self._sums(turns[low - 1][1], turns[low][1]) if low == 1 else None
        short = self._shortened(turns[high][1], model) if high == len(turns) - 1 else None
        for first, last in ((low - 1, high + 1), (low - 1, high), (low, high + 1), (low, high)):
            if (first < low and sums is None) or (last > high and short is None):
                continue
            chosen: list[list[int | None]] = [[*lines] for _, lines in turns[first:last]]
            if last > high and short is not None:
                chosen[-1] = short
            labels = [label for label, _ in turns[first:last]]
            loop = Loop(chosen, labels, leader)
            if first < low and sums is not None:
                loop.sums, loop.patches = sums
            if len(chosen) > 1 and Fitter(self, loop, families).fits():
                return loop
        return None

    def _owned(self, leader: Loop) -> list[tuple[int, list[int]]]:
        """Return the lines of the backward pass by turn; nothing if the lines of a turn are not adjacent."""
        label_of = {
            id(self[number]): label
            for label, turn in zip(leader.labels, leader.turns, strict=True)
            for number in turn
            if number is not None
        }
        labels = enumerate(label_of.get(id(line.owner)) for line in self)
        groups = itertools.groupby(labels, lambda one: one[1])
        turns = [(label, [number for number, _ in group]) for label, group in groups if label is not None]
        pairs = itertools.pairwise(turns)
        return turns if all(b == a - 1 and own[-1] + 1 == more[0] for (a, own), (b, more) in pairs) else []

    def _sums(self, lines: list[int], model: list[int]) -> tuple[dict[str, int], dict[int, Code]] | None:
        """Compare the first turn with the others, which add to its results; None if there are other differences."""
        if len(lines) != len(model):
            return None
        sums: dict[str, int] = {}
        patches: dict[int, Code] = {}
        for number, like in zip(lines, model, strict=True):
            if self.skeletons[number] == self.skeletons[like]:
                continue
            mine, other = self[number].code[0], self[like].code[0]
            if not mine.makes:
                return None
            target, zero = mine.makes[0], f"{mine.makes[0]}_zero"
            added = text.binary(Text.token(zero), "+", mine.right, text.SUM)
            if mine.shape in _first_of(other):
                sums[target] = number
            elif other.shape == assign(target, added).shape:
                sums[zero] = number
                patches[number] = assign(target, added)
            else:
                return None
        return sums, patches

    def _shortened(self, lines: list[int], model: list[int]) -> list[int | None] | None:
        """Compare the last turn with the others; it may lack some of their lines. Return None for other differences."""
        rest = list(lines)
        result = [rest.pop(0) if rest and self.skeletons[rest[0]] == other else None for other in model]
        return None if rest or not lines else result


def _first_of(code: Code) -> list[object]:
    """Return the possible shapes of the first term of a sum, for a statement that adds to it or subtracts from it."""
    terms = {"+=": [code.right], "-=": [text.prefix("-", code.right), Text("-", code.right)]}
    return [code._replace(sign="=", right=term).shape for term in terms.get(code.sign, ())]


class Fitter:
    """Finds the part of each name in a loop."""

    def __init__(self, lines: Lines, loop: Loop, families: Sequence[Family]) -> None:
        self.lines = lines
        self.loop = loop
        self.families = families
        self.makers: list[dict[Token, tuple[int, int]]] = [
            {
                name: (offset, place)
                for offset, number in reversed(list(enumerate(turn)))
                if number is not None
                for place, name in enumerate(self.lines.targets(number))
                if name not in loop.sums
            }
            for turn in loop.turns
        ]
        self.by_place = [{at: name for name, at in maker.items()} for maker in self.makers]
        self.made_anywhere: set[Token] = set().union(*self.makers)

    def fits(self) -> bool:
        """Tell whether each name has a part, and record the parts in the loop."""
        for offset in range(len(self.loop.turns[0])):
            columns = self.columns(offset)
            if not all(map(self._place, columns)) or (columns and self._loses_sum(offset, columns[0])):
                return False
        return True

    def _loses_sum(self, offset: int, target: Column) -> bool:
        """Tell whether a line adds in place to numbers in a list made outside; only the list would change."""
        number = next(turn[offset] for turn in self.loop.turns if turn[offset] is not None)
        assert number is not None
        instr = self.lines[number].instr
        in_place = self.lines[number].code[0].sign in {"+=", "-="}
        return in_place and target in self.loop.outside and (instr is None or instr.outputs[0].shape == ())

    def columns(self, offset: int) -> list[Column]:
        """Return the tokens of one line, each as a column over the turns; missing tokens are filled in where known."""
        numbers = [turn[offset] for turn in self.loop.turns]
        rows = [itertools.repeat(None) if number is None else self._tokens(number) for number in numbers]
        return [self._completed(column) for column in zip(*rows, strict=False)]

    def _tokens(self, number: int) -> Sequence[Token]:
        patch = self.loop.patches.get(number)
        return self.lines[number].tokens if patch is None else patch.tokens

    def _completed(self, column: Column) -> Column:
        if column[-1] is not None:
            return column
        first = column[0]
        assert first is not None
        made = self.makers[0].get(first)
        if made is not None:
            return (*column[:-1], self.by_place[-1].get(made))
        if len(set(column[:-1])) == 1 and len(column) > 2:
            return (*column[:-1], first)
        before = self._made_at(column[1:-1])
        if before is not None:
            return (*column[:-1], self.by_place[-2].get(before))
        for family, offset in self._lists(column):
            at = self.loop.labels[-1] + offset
            return (*column[:-1], next((one for one, index in family.members.items() if index == at), None))
        return column

    def _made_at(self, names: Column) -> tuple[int, int] | None:
        """Return the position in its turn where each name of a column is made; None if the positions differ."""
        places = {maker.get(name) for name, maker in zip(names, self.makers, strict=False) if name is not None}
        return places.pop() if len(places) == 1 else None

    def _lists(self, column: Column) -> Iterator[tuple[Family, int]]:
        """Yield the lists that hold a column, and the offset of its indices from the turn numbers."""
        for family in self.families:
            offset = family.offset(column, self.loop.labels)
            if offset is not None:
                yield family, offset

    def _place(self, column: Column) -> bool:
        loop = self.loop
        if column in loop.made or column in loop.carried or column in loop.listed or column in loop.outside:
            return True
        here = {maker.get(name) for name, maker in zip(column, self.makers, strict=True) if name is not None}
        if here != {None}:
            place = here.pop() if len(here) == 1 else None
            if place is None or len(set(column)) != len(column):
                return False
            loop.made[column] = place
            return True
        if len(set(column)) == 1:
            return True
        if all(isinstance(one, int) for one in column):
            return step(column, loop.labels) is not None
        return self._from_before(column) or self._from_list(column)

    def _from_before(self, column: Column) -> bool:
        place = self._made_at(column[1:])
        if place is None or column[0] is None or column[0] in self.made_anywhere:
            return False
        source = tuple(one.get(place) for one in self.by_place)
        # One list holds the carried values, so it can have only one start value.
        if any(known == source for known in self.loop.carried.values()):
            return False
        self.loop.carried[column] = source
        return True

    def _from_list(self, column: Column) -> bool:
        if not self.made_anywhere.isdisjoint(column):
            return False
        for found in self._lists(column):
            self.loop.listed[column] = found
            return True
        if not all(isinstance(one, str) for one in column):
            return False
        self.loop.outside[column] = None
        return True


def step(column: Column | Sequence[int], labels: Sequence[int]) -> tuple[int, int] | None:
    """Write integers as slope * turn + first; None where they do not grow evenly."""
    values = [int(one or 0) for one in column]
    slope = (values[1] - values[0]) // (labels[1] - labels[0])
    first = values[0] - slope * labels[0]
    return (slope, first) if all(slope * at + first == v for at, v in zip(labels, values, strict=True)) else None


def index_text(variable: str, slope: int, first: int) -> str:
    """Write slope * variable + first as it is usual in an index."""
    if slope == 0:
        return str(first)
    sign = "-" if first < 0 else "+"
    scaled = variable if slope == 1 else f"-{variable}" if slope == -1 else f"{slope} * {variable}"
    if slope < 0 and first > 0:
        return f"{first} - {variable}" if slope == -1 else f"{first} - {-slope} * {variable}"
    return scaled if first == 0 else f"{scaled} {sign} {abs(first)}"


def pattern(names: Sequence[str]) -> tuple[str, str, int, int] | None:
    """Split names that differ in one number into (what is before it, what is after, slope, first)."""
    parts = [cut_at_numbers(name) for name in names]
    if len(names) < 2 or any(len(part) != len(parts[0]) for part in parts):
        return None
    varying = [at for at in range(len(parts[0])) if len({part[at] for part in parts}) > 1]
    if len(varying) != 1:
        return None
    (at,) = varying
    if not all(part[at].isdecimal() and str(int(part[at])) == part[at] for part in parts):
        return None
    found = step([int(part[at]) for part in parts], range(len(parts)))
    return None if found is None else ("".join(parts[0][:at]), "".join(parts[0][at + 1 :]), *found)
