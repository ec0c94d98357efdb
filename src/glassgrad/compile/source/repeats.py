"""Finding lines that repeat: once for each turn of a loop of the user's, or for each of several equal layers.

Lines are compared as text with the names and indices taken out, and only lines of the same place in the user's source
are alike. In a loop each name plays one part: it is the same in every turn; it is made in the turn; it was made in the
turn before; or it is one of several things, one a turn, that a list holds. With a name that fits no part there is no
loop.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from glassgrad.compile.front.origin import Origin
from glassgrad.compile.source.lines import Line, role_of
from glassgrad.compile.source.statements import span_of, unnumbered

_TOKEN = re.compile(r"(?<![\w.\"'])(?:[A-Za-z_]\w*(?!\w|=[^=])|\d+(?![\w.]))|[\[\](){}]")
_TARGETS = re.compile(r"((?:[A-Za-z_]\w*, )*[A-Za-z_]\w*) = ")

Column = tuple[str | None, ...]


@dataclass(frozen=True)
class Cut:
    """The code of a line with its names and the integers of its indices taken out."""

    pieces: tuple[str, ...]
    tokens: tuple[str, ...]

    def filled(self, texts: Iterable[str]) -> str:
        """Return the code with other texts in the places of the tokens."""
        return self.pieces[0] + "".join(text + piece for text, piece in zip(texts, self.pieces[1:], strict=True))


def cut(code: str, names: set[str]) -> Cut:
    """Take the names, and the integers that are indices, out of a line."""
    pieces, tokens, last = [], [], 0
    brackets: list[bool] = []  # of those that are open: whether they are an index
    for match in _TOKEN.finditer(code):
        sign, start = match[0], match.start()
        if sign in "[({":
            brackets.append(sign == "[" and start > 0 and (code[start - 1].isalnum() or code[start - 1] in "_])"))
        elif sign in "])}":
            brackets.pop()
        elif sign in names or (sign.isdigit() and brackets and brackets[-1] and code[start - 1] in "[ :"):
            pieces.append(code[last:start])
            tokens.append(sign)
            last = match.end()
    return Cut((*pieces, code[last:]), tuple(tokens))


@dataclass(frozen=True)
class Skeleton:
    """What lines have in common that repeat."""

    pieces: tuple[str, ...]
    section: str
    comment: str
    place: object


def skeleton(line: Line, cut_line: Cut) -> Skeleton:
    """Return the skeleton of a line."""
    where = line.instr.where if line.instr is not None else None
    place: object = line.run.statement.unnumbered if line.run is not None else None
    if isinstance(where, Origin) and role_of_line(line) == "forward":
        # Spans, not offsets: Python's specialised instructions report another offset for the same place.
        inner = None if where.inner is None else (where.inner[0], span_of(*where.inner))
        place = (unnumbered(where.code, where.lasti), inner)
    return Skeleton(cut_line.pieces, line.section, line.comment, place)


def role_of_line(line: Line) -> str:
    """Return the role of the instruction behind a line."""
    return role_of(line.instr) if line.instr is not None else ""


@dataclass(eq=False)
class Family:
    """A list of the program: one value for each turn, and sometimes one more that the first turn begins with."""

    name: str
    members: dict[str, int]
    length: int
    given: bool = False

    def offset(self, column: Column, labels: Sequence[int]) -> int | None:
        """Return the number that an index has to be away from the turn's for a column to be entries of this list."""
        known = {self.members[one] - at for one, at in zip(column, labels, strict=True) if one in self.members}
        if len(known) != 1 or any(one is not None and one not in self.members for one in column):
            return None
        (offset,) = known
        return offset if all(0 <= at + offset < self.length for at in labels) else None


@dataclass(eq=False)
class Loop:
    """Turns in the order in which they run.

    Attributes:
        turns: for each turn the numbers of its lines; None where a turn lacks a line that the others have.
        labels: for each turn what the loop's variable is.
        parts: what the names of each line are; one dictionary for each kind of part, keyed by column.
        sums: names that every turn adds to, which the first turn makes, and the number of the line that does.
        patches: number -> a line of the first turn as it is when there is such a sum to add to.
        leader: the loop of the forward pass that this one goes back through.
    """

    turns: list[list[int | None]]
    labels: list[int]
    leader: Loop | None = None
    made: dict[Column, tuple[int, int]] = field(default_factory=dict)
    carried: dict[Column, Column] = field(default_factory=dict)
    listed: dict[Column, tuple[Family, int]] = field(default_factory=dict)
    outside: dict[Column, None] = field(default_factory=dict)
    sums: dict[str, int] = field(default_factory=dict)
    patches: dict[int, Cut] = field(default_factory=dict)

    @property
    def first(self) -> int:
        return min(number for turn in self.turns for number in turn if number is not None)

    @property
    def last(self) -> int:
        return max(number for turn in self.turns for number in turn if number is not None)

    @property
    def saved(self) -> int:
        return sum(number is not None for turn in self.turns[1:] for number in turn)

    @property
    def backwards(self) -> bool:
        return len(self.labels) > 1 and self.labels[1] < self.labels[0]


class Lines:
    """The lines of one program, cut up."""

    def __init__(self, lines: Sequence[Line], names: set[str]) -> None:
        self.lines = list(lines)
        self.cuts = [cut("\n".join(line.code), names) for line in lines]
        # As numbers, which are compared often.
        known: dict[Skeleton, int] = {}
        found = [skeleton(line, one) for line, one in zip(self.lines, self.cuts, strict=True)]
        self.skeletons = [known.setdefault(one, len(known)) for one in found]

    def targets(self, number: int) -> list[str]:
        """Return the names that a line makes; none for a line that changes something in place."""
        match = _TARGETS.match(self.lines[number].code[0])
        return match[1].split(", ") if match is not None else []

    # --- the forward pass: lines that repeat one after another --------------------------------------

    def repetitions(self, low: int, high: int) -> Iterator[Loop]:
        """Yield loops between two lines, none of which overlap, in order; the largest saving first."""
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
        for period in range(1, (high - low) // 2 + 1):
            run = 0
            for at in range(low, high - period + 1):
                if at < high - period and self.skeletons[at] == self.skeletons[at + period]:
                    run += 1
                    continue
                if run >= period:
                    yield at - run, period, run // period + 1
                run = 0

    def _fitting(self, start: int, period: int, turns: int, high: int) -> Loop | None:
        """Shift a repetition to where its turns begin as the user's statements do, and have the least in common."""
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
        return self.lines[number].run is not None and self.lines[number].run is self.lines[number - 1].run

    def _repeats(self, first: int, period: int, turns: int) -> bool:
        spans = range(first, first + period * (turns - 1))
        return all(self.skeletons[at] == self.skeletons[at + period] for at in spans)

    # --- the backward pass: what belongs to the turns of a loop --------------------------------------

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
            if len(chosen) > 1 and self._fits(loop, families):
                return loop
        return None

    def _fits(self, loop: Loop, families: Sequence[Family]) -> bool:
        before = {number: self.cuts[number] for number in loop.patches}
        self.patch(loop.patches)
        fits = Fitter(self, loop, families).fits()
        self.patch(before)
        return fits

    def patch(self, patches: Mapping[int, Cut]) -> None:
        """Put other lines in the place of some."""
        for number, one in patches.items():
            self.cuts[number] = one

    def _owned(self, leader: Loop) -> list[tuple[int, list[int]]]:
        """Return the lines of the backward pass by turn; nothing if those of a turn do not stand together."""
        label_of = {
            id(self.lines[number]): label
            for label, turn in zip(leader.labels, leader.turns, strict=True)
            for number in turn
            if number is not None
        }
        found: list[tuple[int, list[int]]] = []
        ended = False
        for number, line in enumerate(self.lines):
            label = label_of.get(id(line.owner)) if line.owner is not None else None
            if label is None:
                ended = bool(found)
                continue
            if found and found[-1][0] == label and not ended:
                found[-1][1].append(number)
            elif ended or (found and label != found[-1][0] - 1):
                return []
            else:
                found.append((label, [number]))
        return found

    def _sums(self, lines: list[int], model: list[int]) -> tuple[dict[str, int], dict[int, Cut]] | None:
        """Compare the first turn with the others, which add to what it makes; None if there are other differences."""
        if len(lines) != len(model):
            return None
        sums: dict[str, int] = {}
        patches: dict[int, Cut] = {}
        for number, like in zip(lines, model, strict=True):
            mine, other = self.cuts[number], self.cuts[like]
            if self.skeletons[number] == self.skeletons[like]:
                continue
            if mine.pieces in _first_of(other.pieces):
                sums[mine.tokens[0]] = number
            elif other.pieces[1:3] == (" = ", " + ") and mine.pieces == (*other.pieces[:2], *other.pieces[3:]):
                zero = f"{mine.tokens[0]}_zero"
                sums[zero] = number
                patches[number] = Cut(other.pieces, (mine.tokens[0], zero, *mine.tokens[1:]))
            else:
                return None
        return sums, patches

    def _shortened(self, lines: list[int], model: list[int]) -> list[int | None] | None:
        """Compare the last turn with the others, of whose lines it may lack some; None for other differences."""
        result: list[int | None] = []
        rest = list(lines)
        for other in model:
            same = bool(rest) and self.skeletons[rest[0]] == other
            result.append(rest.pop(0) if same else None)
        return None if rest or len(lines) == 0 else result


def _first_of(pieces: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Yield how the first term of a sum is written to which a line adds, or from which it takes away."""
    if len(pieces) > 2 and pieces[1].startswith(" += "):
        yield (pieces[0], pieces[1].replace(" += ", " = ", 1), *pieces[2:])
    if len(pieces) > 2 and pieces[1].startswith(" -= "):
        yield (pieces[0], pieces[1].replace(" -= ", " = -(", 1), *pieces[2:-1], f"{pieces[-1]})")
        yield (pieces[0], pieces[1].replace(" -= ", " = -", 1), *pieces[2:])


class Fitter:
    """Finds the part that each name of a loop plays."""

    def __init__(self, lines: Lines, loop: Loop, families: Sequence[Family]) -> None:
        self.lines = lines
        self.loop = loop
        self.families = families
        self.makers: list[dict[str, tuple[int, int]]] = [
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

    def fits(self) -> bool:
        """Tell whether each name has a part, and note it in the loop."""
        for offset in range(len(self.loop.turns[0])):
            columns = self.columns(offset)
            if not all(map(self._place, columns)) or (columns and self._loses_sum(offset, columns[0])):
                return False
        return True

    def _loses_sum(self, offset: int, target: Column) -> bool:
        """Tell whether a line adds in place to numbers that a list from outside holds: only the list would change."""
        number = next(turn[offset] for turn in self.loop.turns if turn[offset] is not None)
        assert number is not None
        instr = self.lines.lines[number].instr
        in_place = self.lines.cuts[number].pieces[1].startswith((" += ", " -= "))
        return in_place and target in self.loop.outside and (instr is None or instr.outputs[0].shape == ())

    def columns(self, offset: int) -> list[Column]:
        """Return the tokens of one line, each as it is in every turn; what a turn lacks is filled in where known."""
        numbers = [turn[offset] for turn in self.loop.turns]
        count = next(len(self.lines.cuts[number].tokens) for number in numbers if number is not None)
        columns = (
            tuple(None if number is None else self.lines.cuts[number].tokens[at] for number in numbers)
            for at in range(count)
        )
        return [self._completed(column) for column in columns]

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
        before = {maker.get(name) for name, maker in zip(column[1:-1], self.makers, strict=False) if name is not None}
        if len(before) == 1 and None not in before:
            place = before.pop()
            return (*column[:-1], None if place is None else self.by_place[-2].get(place))
        for family in self.families:
            offset = family.offset(column, self.loop.labels)
            if offset is not None:
                at = self.loop.labels[-1] + offset
                return (*column[:-1], next((one for one, index in family.members.items() if index == at), None))
        return column

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
        if all(one is not None and one.isdigit() for one in column):
            return step(column, loop.labels) is not None
        return self._from_before(column) or self._from_list(column)

    def _from_before(self, column: Column) -> bool:
        before = {maker.get(name) for name, maker in zip(column[1:], self.makers, strict=False) if name is not None}
        place = before.pop() if len(before) == 1 else None
        if place is None or column[0] is None or any(column[0] in maker for maker in self.makers):
            return False
        source = tuple(one.get(place) for one in self.by_place)
        # One list holds what is carried; it can begin with one thing only.
        if any(known == source for known in self.loop.carried.values()):
            return False
        self.loop.carried[column] = source
        return True

    def _from_list(self, column: Column) -> bool:
        if any(name in maker for name in column if name is not None for maker in self.makers):
            return False
        for family in self.families:
            offset = family.offset(column, self.loop.labels)
            if offset is not None:
                self.loop.listed[column] = family, offset
                return True
        if None in column or any(name.isdigit() for name in column if name is not None):
            return False
        self.loop.outside[column] = None
        return True


def step(column: Column, labels: Sequence[int]) -> tuple[int, int] | None:
    """Write integers as slope * turn + first; None where they do not grow evenly."""
    values = [int(one or 0) for one in column]
    slope = (values[1] - values[0]) // (labels[1] - labels[0])
    first = values[0] - slope * labels[0]
    return (slope, first) if all(slope * at + first == v for at, v in zip(labels, values, strict=True)) else None


def index_text(variable: str, slope: int, first: int) -> str:
    """Write slope * variable + first as one would in an index."""
    if slope == 0:
        return str(first)
    sign = "-" if first < 0 else "+"
    scaled = variable if slope == 1 else f"-{variable}" if slope == -1 else f"{slope} * {variable}"
    if slope < 0 and first > 0:
        return f"{first} - {variable}" if slope == -1 else f"{first} - {-slope} * {variable}"
    return scaled if first == 0 else f"{scaled} {sign} {abs(first)}"


def pattern(names: Mapping[str, int] | Sequence[str]) -> tuple[str, str, int, int] | None:
    """Write names that differ in one number as (what is before it, what is after, slope, first)."""
    listed = list(names)
    parts = [re.split(r"(\d+)", name) for name in listed]
    if len(listed) < 2 or any(len(part) != len(parts[0]) for part in parts):
        return None
    varying = [at for at in range(len(parts[0])) if len({part[at] for part in parts}) > 1]
    if len(varying) != 1 or varying[0] % 2 == 0:
        return None
    at = varying[0]
    numbers = tuple(part[at] for part in parts)
    if any(str(int(one)) != one for one in numbers):
        return None
    found = step(numbers, range(len(numbers)))
    return None if found is None else ("".join(parts[0][:at]), "".join(parts[0][at + 1 :]), *found)
