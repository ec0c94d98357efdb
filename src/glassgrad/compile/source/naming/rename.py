"""The last step of naming: values that a person would call the same get the same name if nothing conflicts.

``x_2 = x + inner`` becomes ``x = x + inner`` if the old x is not read later. Conflicts between names are found by
liveness analysis, as for a compiler's registers, with loops that run at least once.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from glassgrad.compile.numpy.text import Text, Token
from glassgrad.compile.source.lines import Code, Line
from glassgrad.compile.source.naming.names import RESERVED


class Step(NamedTuple):
    """One statement: the names that it makes and those that it reads."""

    makes: list[str]
    reads: set[str]


class Renamer:
    """Chooses the names of a whole program.

    Attributes:
        final: the name that replaces each name.
    """

    def __init__(
        self,
        lines: Sequence[Line],
        base: Mapping[str, str],
        lists: Iterable[str],
        fixed: Iterable[str],
        returned: Iterable[Text],
        taken: Iterable[str] = (),
    ) -> None:
        self.lines = lines
        self.base = base
        self.lists = set(lists)
        self.fixed = list(fixed)
        self.names = {*base, *self.fixed}
        self.steps = [self._step(code) for line in lines for code in line.code]
        self.rivals = self._rivals({str(name) for text in returned for name in text.tokens} & self.names)
        self.final: Mapping[str, Token] = self._choose({*RESERVED, *taken, "dloss"} - {*self.fixed})

    def renamed(self) -> list[Line]:
        """Return the lines with their final names."""
        lines = []
        for line in self.lines:
            code = [Code(self.now(one.left), one.sign, self.now(one.right)) for one in line.code]
            code = [one for one in code if not one.makes or one.left.code != one.right.code]
            if code:
                lines.append(replace(line, code=code))
        return lines

    def now(self, text: Text) -> Text:
        """Return a part of the program with its final names."""
        return text.filled(Text.token(self.final.get(str(token), token)) for token in text.tokens)

    # --- which names conflict -------------------------------------------------------------------------

    def _step(self, code: Code) -> Step:
        makes = [name for name in code.makes if name in self.names]
        return Step(makes, {str(token) for token in code.tokens[len(code.makes) :]} & self.names)

    def _spans(self) -> dict[int, int]:
        """Return where the steps of each loop begin, by the position where they end."""
        spans: dict[int, int] = {}
        stop = 0
        for inside, lines in itertools.groupby(self.lines, lambda line: line.inside):
            start, stop = stop, stop + sum(len(line.code) for line in lines)
            if inside:
                spans[stop] = start
        return spans

    def _rivals(self, end: set[str]) -> dict[str, set[str]]:
        """Return for each name the names of the same base that are live when it is assigned."""
        found: dict[str, set[str]] = defaultdict(set)
        live: dict[str, set[str]] = defaultdict(set)
        for name in end:
            live[self._base(name)].add(name)
        stops = self._spans()
        for at in range(len(self.steps), 0, -1):
            if at in stops:
                # The previous iteration must not overwrite what an iteration reads before assigning it.
                for name in self._wanted(stops[at], at):
                    live[self._base(name)].add(name)
            self._meet(self.steps[at - 1], live, found)
        for name in self.fixed:
            for other in live[self._base(name)] - {name}:
                found[name].add(other)
                found[other].add(name)
        return found

    def _wanted(self, start: int, stop: int) -> set[str]:
        wanted: set[str] = set()
        made: set[str] = set()
        for step in self.steps[start:stop]:
            wanted |= step.reads - made
            made |= {*step.makes}
        return wanted

    def _meet(self, step: Step, live: dict[str, set[str]], found: dict[str, set[str]]) -> None:
        for name in step.makes:
            group = live[self._base(name)]
            group.discard(name)
            for other in group:
                found[name].add(other)
                found[other].add(name)
        for name in step.reads:
            live[self._base(name)].add(name)

    def _base(self, name: str) -> str:
        return self.base.get(name, name)

    # --- choosing ---------------------------------------------------------------------------------------

    def _choose(self, taken: set[str]) -> dict[str, str]:
        final = {name: name for name in self.fixed}
        owner = {name: self._base(name) for name in self.fixed}
        order = [name for step in self.steps for name in step.makes]
        # Lists come last: the result of a line or an iteration has a better claim to the plain name.
        for name in sorted(dict.fromkeys(order), key=self.lists.__contains__):
            if name in final:
                continue
            base = self._base(name)
            rivals = {final[other] for other in self.rivals[name] if other in final}
            final[name] = next(
                one
                for one in self._tries(base, name in self.lists)
                if one not in rivals and one not in taken and owner.get(one, base) == base
            )
            owner[final[name]] = base
        return final

    @staticmethod
    def _tries(base: str, plural: bool) -> Iterator[str]:
        yield base
        if plural and not base.endswith("s"):
            yield f"{base}s"
        for number in itertools.count(2):
            yield f"{base}_{number}"
