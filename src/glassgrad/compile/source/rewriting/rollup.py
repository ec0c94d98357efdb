"""Repeated lines, written as loops: forward through the turns, and backward through them again.

Results of the turns are kept in lists if later lines read them, most often in the backward pass. A value that a turn
takes over from the one before is entry i of such a list and becomes entry i + 1. Parameters of layers are list
arguments. Where a turn differs (the first layer, the last), its lines stay outside the loop.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from glassgrad.compile.front.origin import Origin
from glassgrad.compile.numpy import text
from glassgrad.compile.numpy.text import Text, Token
from glassgrad.compile.source.lines import Body, Code, Line, assign
from glassgrad.compile.source.naming.names import without_numbers
from glassgrad.compile.source.naming.rename import Renamer
from glassgrad.compile.source.rewriting.repeats import Column, Family, Fitter, Lines, Loop, index_text, pattern, step
from glassgrad.compile.source.statements import loop_of

ENOUGH = 6  # lines that a loop has to save, forward and back
_ROOM = 100  # width of a line that makes lists


class Roller:
    """Rolls up the lines of one program.

    Attributes:
        refer: the replacement for names that became entries of lists, before the last renaming.
        given: list arguments that replace their entries.
        least: lines that a loop has to save.
    """

    def __init__(self, body: Body, returned: Iterable[str], inputs: Sequence[str] = (), least: float = ENOUGH) -> None:
        self.least = least
        self.lines = Lines(body.lines)
        self.namer = body.namer
        self.base = body.namer.base
        self.returned = set(returned)
        self.inputs = inputs
        self.refer: dict[Token, Text] = {}
        self.local: dict[str, str] = {}
        self.indices: set[str] = set()
        self.given: list[Family] = []
        self.families: list[Family] = []
        self.loops: dict[int, Loop] = {}
        self.kept: dict[Column, Family | str] = {}
        self.before: dict[int, list[Code]] = defaultdict(list)
        self.lists: dict[int, list[Family]] = defaultdict(list)

    def rolled(self) -> list[Line]:
        """Return the lines with loops instead of repetitions."""
        taken = []
        for section, low, high in self._stretches(lambda line: line.section):
            if section != "backward":
                taken += [one for one in map(self._consider, self.lines.repetitions(low, high)) if one is not None]
        # In program order, so that the start value of a loop is settled before the loop.
        ways = ((self._way_back(leader), leader) for leader in taken)
        steps: list[tuple[int, Loop | int]] = [(back.first, leader) for back, leader in ways if back is not None]
        for at, what in sorted([*steps, *self._free_ranges(taken)], key=lambda one: one[0]):
            if isinstance(what, Loop):
                self._go_back(what)
                continue
            for loop in self.lines.repetitions(at, what):
                if not loop.outside:
                    self._consider(loop)
        self._adopt()
        arguments = self.arguments()
        lists = [family.name for family in self.families if not family.given]
        end = map(self._referred, self.returned)
        self.renamer = Renamer([*self._written()], self.base, lists, arguments, end, self.indices)
        return self.renamer.renamed()

    def now(self, name: str) -> Text:
        """Return the current name of a value that had this name before."""
        return self.renamer.now(self._referred(name if name in self.refer else self.local.get(name, name)))

    def _referred(self, token: Token) -> Text:
        return self.refer.get(token) or Text.token(token)

    def arguments(self) -> dict[str, list[str]]:
        """Return the arguments of the program, each with the inputs that it holds: one, or those of several layers."""
        result: dict[str, list[str]] = {}
        for name in self.inputs:
            family = next((one for one in self.given if name in one.members), None)
            result.setdefault(family.name if family is not None else name, []).append(name)
        return result

    def _stretches(self, key: Callable[[Line], Any]) -> Iterator[tuple[Any, int, int]]:
        """Yield stretches of lines with the same key: key, begin and end."""
        stop = 0
        for common, group in itertools.groupby(self.lines, key):
            start, stop = stop, stop + sum(1 for _ in group)
            yield common, start, stop

    # --- deciding -------------------------------------------------------------------------------------

    def _way_back(self, leader: Loop) -> Loop | None:
        return self.lines.ways_back(leader, self.families)

    def _go_back(self, leader: Loop) -> None:
        back = self._way_back(leader)
        if back is not None:
            holders = {column: self._holder(column, back) for column in back.outside}
            self._take(back, holders, {column: self._keeper(column, back) for column in back.made})

    def _free_ranges(self, taken: Sequence[Loop]) -> Iterator[tuple[int, int]]:
        """Yield the stretches of the backward pass that belong to no loop of the forward pass."""
        inside = {id(self.lines[number or 0]) for loop in taken for turn in loop.turns for number in turn}
        for free, low, high in self._stretches(
            lambda line: line.section == "backward" and id(line.owner) not in inside
        ):
            if free:
                yield low, high

    def _consider(self, loop: Loop) -> Loop | None:
        """Take a loop if it, and the way back through it, save enough."""
        self._number(loop)
        loop = Loop(loop.turns, loop.labels)
        if not Fitter(self.lines, loop, self.families).fits():
            return None
        outside = {column: self._holder(column, loop) for column in loop.outside}
        made = {column: self._keeper(column, loop) for column in loop.made}
        families = [*outside.values(), *(one for one in made.values() if one is not None)]
        back = self.lines.ways_back(loop, [*self.families, *families])
        if loop.saved + (back.saved if back is not None else 0) < self.least:
            return None
        self._take(loop, outside, made)
        return loop

    def _number(self, loop: Loop) -> None:
        """Number the turns like their layers, if the layers before them exist as well."""
        for column in loop.outside:
            found = pattern([str(one) for one in column])
            if found is None or not set(column) <= set(self.inputs):
                continue
            front, after, slope, first = found
            if slope == 1 and first > 0 and all(f"{front}{at}{after}" in self.inputs for at in range(first)):
                loop.labels = [at + first for at in range(len(loop.turns))]
                return

    def _holder(self, column: Column, loop: Loop) -> Family:
        """Return the list of values that turns read from outside the loop."""
        names = _names(column)
        members = dict(zip(names, loop.labels, strict=True))
        found = pattern(names)
        found = None if found is None or found[2] < 1 else found
        free = not any(name in family.members for family in self.given for name in names)
        if found is None or not free or not set(names) <= set(self.inputs):
            names = sorted(names, key=lambda one: members[one])
            return Family("", {name: at for at, name in enumerate(names)}, len(members))
        front, after, slope, first = found
        if slope == 1 and first == loop.labels[0]:
            every = (f"{front}{at}{after}" for at in itertools.count())
            members = {name: at for at, name in enumerate(itertools.takewhile(self.inputs.__contains__, every))}
        else:
            members = {name: at for at, name in enumerate(names)}
        return Family("", members, len(members), given=True)

    def _keeper(self, column: Column, loop: Loop) -> Family | None:
        """Return the list of the turns' results, if later lines read more than the last one."""
        later = self._later(loop)
        carried = next((one for one, source in loop.carried.items() if source == column), None)
        if not any(name in later for name in column[:-1]) and not (carried and self._read_late(column, carried, loop)):
            return None
        labels = (loop.leader or loop).labels
        shift = int(carried is not None and not loop.backwards)
        members = {str(name): at + shift for name, at in zip(column, loop.labels, strict=True) if name is not None}
        if carried is not None:
            members[str(carried[0])] = loop.labels[0] + int(loop.backwards)
        return Family("", members, max(labels) + 1 + int(carried is not None))

    def _later(self, loop: Loop) -> set[Token]:
        """Return the names that are read after a loop."""
        return self.returned | {token for line in self.lines[loop.last + 1 :] for token in line.tokens}

    def _read_late(self, column: Column, carried: Column, loop: Loop) -> bool:
        """Tell whether a turn reads the previous turn's result after making its own."""
        fitter = Fitter(self.lines, loop, ())
        made = loop.made[column][0]
        maker = next(turn[made] for turn in loop.turns if turn[made] is not None)
        # If a line makes zeros and then adds to them, the zeros exist before the previous result is read.
        made += maker is None or len(self.lines[maker].code) == 1
        return any(carried in fitter.columns(offset) for offset in range(made, len(loop.turns[0])))

    def _take(self, loop: Loop, outside: Mapping[Column, Family], made: Mapping[Column, Family | None]) -> None:
        """Name all values of a loop."""
        self.base.update({name: self.base.get(name.removesuffix("_zero"), name) for name in loop.sums})
        self.loops[loop.first] = loop
        for column, family in outside.items():
            self._name_list(family, family.members, family.members if family.given else ())
            first = str(column[loop.labels.index(min(loop.labels))])
            loop.listed[column] = family, family.members[first] - min(loop.labels)
            if family.given:
                self.given.append(family)
            else:
                members = Text("[", text.listed(map(Text.token, family.members)), "]")
                self.before[loop.first].append(assign(family.name, members))
        for column, keeper in made.items():
            carried = next((one for one, source in loop.carried.items() if source == column), None)
            start = str(carried[0]) if carried is not None else None
            if keeper is None:
                self._name_variable(column, start, loop)
            else:
                self._name_kept(column, keeper, start, loop)

    def _name_variable(self, column: Column, start: str | None, loop: Loop) -> None:
        """Name a value that only its own turn or the next one reads."""
        own = _names(column)
        takes_over = start is not None and start not in self._later(loop) and self._begins_only(start, loop)
        variable = self.namer.take(self._common(own), free=[*own, start] if takes_over else own)
        self.kept[column] = variable
        self.local.update(dict.fromkeys(own, variable))
        self.refer[own[-1]] = Text.token(variable)
        if start is not None and takes_over:
            self.refer[start] = Text.token(variable)
        elif start is not None:
            self.before[loop.first].append(assign(variable, Text.token(start)))

    def _begins_only(self, start: str, loop: Loop) -> bool:
        """Tell whether the start value of the first turn has no other reader, so that the turns may overwrite it."""
        fitter = Fitter(self.lines, loop, ())
        reads = {column for offset in range(len(loop.turns[0])) for column in fitter.columns(offset) if start in column}
        return self._plain_maker(start, loop) is not None and len(reads) == 1 and reads <= {*loop.carried}

    def _name_kept(self, column: Column, family: Family, start: str | None, loop: Loop) -> None:
        maker = None if start is None else self._plain_maker(start, loop)
        own = _names(column)
        self._name_list(family, own, own if maker is None else family.members)
        self.kept[column] = family
        self.lists[loop.first if maker is None else maker].append(family)
        if start is not None and maker is None:
            self.before[loop.first].append(assign(_entry(family, family.members[start]), Text.token(start)))

    def _plain_maker(self, name: str, before: Loop | None = None) -> int | None:
        """Return the number of the line that makes a name, if it is outside all loops and assigns nothing else."""
        if name in self.refer:
            return None
        if before is not None and name in before.sums:
            return before.first
        inside = {number for loop in self.loops.values() for turn in loop.turns for number in turn}
        for number in range(len(self.lines)):
            if name in self.lines.targets(number):
                return number if number not in inside and len(self.lines.targets(number)) == 1 else None
        return None

    def _adopt(self) -> None:
        """Add the results of layers outside a loop to the list of those inside, if their numbers fit."""
        for at, family in [(at, family) for at, families in self.lists.items() for family in families]:
            found = pattern(sorted(family.members, key=lambda one: family.members[one]))
            if found is None or found[2] != 1 or found[3] != min(family.members.values()):
                continue
            first = at
            for index in range(family.length):
                name = f"{found[0]}{index}{found[1]}"
                maker = None if name in family.members else self._plain_maker(name)
                if maker is not None:
                    family.members[name] = index
                    self.refer[name] = _entry(family, index)
                    first = min(first, maker)
            if first < at:
                self.lists[at].remove(family)
                self.lists[first].append(family)

    # --- names ----------------------------------------------------------------------------------------

    def _name_list(self, family: Family, own: Iterable[str], replaced: Iterable[str]) -> None:
        """Name a list after its entries; the names in `replaced` are written as entries of the list from now on."""
        replaced = [*replaced]
        family.name = self.namer.take(self._common([*own]), free=replaced)
        self.refer.update({one: _entry(family, family.members[one]) for one in replaced})
        self.families.append(family)

    def _common(self, names: Sequence[str]) -> str:
        """Return the common part of names: ``blocks_weight`` for ``blocks_0_weight`` and ``blocks_1_weight``."""
        bases = {self.base.get(name, name) for name in names}
        if len(bases) == 1:
            return bases.pop()
        found = pattern(names)
        stem = without_numbers(names[0]) if found is None else f"{found[0].rstrip('_')}{found[1]}"
        stem = stem.strip("_")
        return stem if stem.isidentifier() else f"each_{names[0]}"

    # --- writing --------------------------------------------------------------------------------------

    def _section(self, number: int) -> str:
        return self.lines[number].section

    def _written(self) -> Iterator[Line]:
        number = 0
        while number < len(self.lines):
            loop = self.loops.get(number)
            yield from self._new_lists(self.lists.get(number, ()), self._section(number))
            yield from self._zeros(loop)
            for code in self.before.get(number, ()):
                begun = code.right.filled(map(self._referred, code.right.tokens))
                yield Line([code._replace(right=begun)], "", self._section(number))
            if loop is None:
                yield self._line(number, [*map(self._referred, self.lines[number].tokens)])
                number += 1
            else:
                yield from self._loop(loop)
                number = loop.last + 1

    def _line(self, number: int, texts: Sequence[Text], of: Sequence[int | None] = ()) -> Line:
        """Write a line with its names filled in; in a loop it replaces the lines numbered `of`, one per turn."""
        line = self.lines[number]
        rest = iter(texts)
        code = []
        for one in line.code:
            left = one.left.filled([next(rest) for _ in one.left.tokens])
            code.append(Code(left, one.sign, self._filled(one.right, [next(rest) for _ in one.right.tokens])))
        turns = tuple([self.lines[one] for one in of if one is not None])
        return replace(line, code=code, inside=bool(of), of=turns or (line,))

    def _filled(self, code: Text, texts: list[Text]) -> Text:
        """Replace tokens by texts; write ``[h[1], h[2]]`` as ``h[1:3]``, and as ``h`` if it is the whole list."""
        pieces = [*code.pieces]
        starts = [at for at in range(len(texts)) if pieces[at] != ", "]
        for start, stop in reversed([*itertools.pairwise([*starts, len(texts)])]):
            # Not an index: x[h[1], h[2]].
            is_list = pieces[start].endswith(("([", " [", "=[")) or (pieces[start] == "[" and not start)
            part = self._part(texts[start:stop]) if is_list and pieces[stop].startswith("]") else None
            if part is not None:
                pieces[start : stop + 1] = [pieces[start][:-1], pieces[stop][1:]]
                texts[start:stop] = [part]
        return Text.woven(pieces, texts, code.level)

    def _part(self, entries: Sequence[Text]) -> Text | None:
        """Write adjacent entries of a list as a slice of it."""
        if len(entries) < 2 or any(
            one.pieces != ("", "[", "]") or one.tokens[0] != entries[0].tokens[0] for one in entries
        ):
            return None
        name, low = entries[0].tokens
        length = next((one.length for one in self.families if one.name == name), 0)
        high = int(low) + len(entries)
        if not length or [one.tokens[1] for one in entries] != [*range(int(low), high)]:
            return None
        part = "" if (low, high) == (0, length) else f"[{low or ''}:{high if high < length else ''}]"
        return Text(Text.token(name), part)

    def _new_lists(self, families: Iterable[Family], section: str) -> Iterator[Line]:
        """Make empty lists, several in a line."""
        for length, group in itertools.groupby(sorted(families, key=lambda one: -one.length), lambda one: one.length):
            names = [family.name for family in group]
            while names:
                count = len(names)
                while count > 1 and len(", ".join(names[:count])) > _ROOM - 40:
                    count -= 1
                now, names = names[:count], names[count:]
                made = f"[None] * {length}" if count == 1 else f"([None] * {length} for _ in range({count}))"
                yield Line([assign(text.listed(map(Text.token, now)), Text(made))], "", section)

    def _zeros(self, loop: Loop | None) -> Iterator[Line]:
        """Begin the sums that every turn of a loop adds to."""
        for name, number in loop.sums.items() if loop is not None else ():
            instr = self.lines[number].instr
            assert instr is not None
            zeros = text.call("np.zeros", instr.output.shape, instr.output.dtype)
            shape = str(instr.output.shape) if instr.output.shape else "scalar"
            yield Line([assign(self._referred(name), zeros)], shape, self._section(number))

    def _loop(self, loop: Loop) -> Iterator[Line]:
        section = self._section(loop.first)
        comment, variable = self._heading(loop)
        low, high = min(loop.labels), max(loop.labels) + 1
        order = f"range({high})" if low == 0 else f"range({low}, {high})"
        order = f"reversed({order})" if loop.backwards else order
        yield Line([Code(Text(), "", Text(f"for {variable} in {order}:"))], comment, section)
        fitter = Fitter(self.lines, loop, self.families)
        model = loop.turns[1 if loop.sums else 0]
        for offset, number in enumerate(model):
            assert number is not None
            texts = [self._text(column, loop, variable) for column in fitter.columns(offset)]
            yield self._line(number, texts, [turn[offset] for turn in loop.turns])

    def _text(self, column: Column, loop: Loop, variable: str) -> Text:
        """Return the text that the loop has for one name or index."""
        if column in loop.listed:
            family, offset = loop.listed[column]
            return _entry(family, index_text(variable, 1, offset))
        source = loop.carried.get(column, column)
        kept = self.kept.get(source)
        if isinstance(kept, str):
            return Text.token(kept)
        if kept is not None:
            turn = next(one for one, name in enumerate(source) if name is not None)
            offset = kept.members[str(source[turn])] - loop.labels[turn]
            offset += 0 if source is column else 1 if loop.backwards else -1
            return _entry(kept, index_text(variable, 1, offset))
        first = column[0]
        assert first is not None
        if isinstance(first, int):
            return Text(index_text(variable, *(step(column, loop.labels) or (0, first))))
        return self._referred(first)

    def _heading(self, loop: Loop) -> tuple[str, str]:
        """Return the user's comment for a loop, and its variable."""
        loop = loop.leader or loop
        line = self.lines[loop.first]
        where = line.instr.where if line.instr is not None else None
        found = None
        if isinstance(where, Origin):
            found = loop_of(where.code, where.lasti) or (loop_of(*where.outer) if where.outer is not None else None)
        comment, variable = found or (line.run.text if line.run is not None else "", None)
        names = [variable if variable not in {None, "_"} else "i", "i", "j", "k", "turn"]
        index = next(name for name in names if name not in self.namer.taken)
        self.indices.add(index)
        return comment, index


def _names(column: Column) -> list[str]:
    """Return the names of a column, without the turns that lack one."""
    return [str(one) for one in column if one is not None]


def _entry(family: Family, at: int | str) -> Text:
    """Write an entry of a list."""
    return Text(Text.token(family.name), "[", Text.token(at) if isinstance(at, int) else at, "]")
