"""Who reads whom among groups of instructions, with an order in which they can run that outlives merging.

Two groups can become one only if no third group lies between them. A search for one that follows all readers would see
the rest of the program, for every pair, and planning would take the square of its length. Two things keep it short.
Groups have ranks, of which a reader has the higher one, so that nothing beyond the rank of the goal is looked at; where
two groups become one, the ranks between them are dealt out anew as in Pearce and Kelly 2006, "A dynamic topological
sort algorithm for directed acyclic graphs". And each group knows by a row of bits which instructions depend on it in
the program itself: the usual case, a value of the forward pass and its reader in the backward pass, needs no search.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Generic, TypeVar

T = TypeVar("T")


class Links(Generic[T]):
    """The groups of a program; at first each is one instruction.

    Args:
        feeders: what each group reads from, the groups in an order in which they can run.

    Attributes:
        readers, feeders: groups that read from a group, and those it reads from.
        rank: of each group, higher than those of its feeders.
        steps: how many groups searches have looked at so far.
    """

    def __init__(self, feeders: Mapping[T, Iterable[T]]) -> None:
        self.feeders: dict[T, set[T]] = {group: set(found) for group, found in feeders.items()}
        self.readers: dict[T, set[T]] = {group: set() for group in self.feeders}
        self.rank = {group: number for number, group in enumerate(self.feeders)}
        self.steps = 0
        for group, found in self.feeders.items():
            for feeder in found:
                self.readers[feeder].add(group)
        self._own = {group: 1 << number for group, number in self.rank.items()}
        self._later: dict[T, int] = {}
        for group in reversed(list(self.rank)):
            bits = 0
            for reader in self.readers[group]:
                bits |= self._own[reader] | self._later[reader]
            self._later[group] = bits

    def between(self, start: T, goal: T) -> bool:
        """Tell whether `goal` depends on `start` through a third group."""
        first = self.readers[start] - {goal}
        mine = self._own[goal]
        if any(self._later[group] & mine for group in first):
            return True
        limit = self.rank[goal]
        found = self._reached(first, self.readers, lambda rank: rank < limit)
        return any(goal in self.readers[group] for group in found)

    def join(self, merged: T, maker: T, reader: T) -> None:
        """Let one group take the place of two, between which there is none."""
        self._deal(merged, maker, reader)
        parts = (maker, reader)
        for mine, theirs in ((self.readers, self.feeders), (self.feeders, self.readers)):
            mine[merged] = (mine.pop(maker) | mine.pop(reader)).difference(parts)
            for other in mine[merged]:
                theirs[other] = theirs[other].difference(parts) | {merged}
        for bits in (self._own, self._later):
            bits[merged] = bits.pop(maker) | bits.pop(reader)

    def _deal(self, merged: T, maker: T, reader: T) -> None:
        """Give `merged` a rank behind all that it will read, and before all that will read it."""
        low, high = self.rank.pop(maker), self.rank.pop(reader)
        after = self._reached(self.readers[maker] - {reader}, self.readers, lambda rank: rank < high)
        if not after:
            self.rank[merged] = high
            return
        before = self._reached(self.feeders[reader] - {maker}, self.feeders, lambda rank: rank > low)
        ranks = sorted([low, high, *(self.rank[group] for group in (*before, *after))])
        order = [*sorted(before, key=self.rank.__getitem__), merged, *sorted(after, key=self.rank.__getitem__)]
        # One rank more than groups: the lower ones of those before, the upper ones of those behind.
        self.rank.update(zip(order, [*ranks[: len(before) + 1], *ranks[len(before) + 2 :]], strict=True))

    def _reached(self, start: Iterable[T], way: Mapping[T, set[T]], near: Callable[[int], bool]) -> set[T]:
        """Return what lies on a way and has a rank that is near enough."""
        rank = self.rank
        stack = [group for group in start if near(rank[group])]
        seen = set(stack)
        while stack:
            for other in way[stack.pop()]:
                if other not in seen and other in rank and near(rank[other]):
                    seen.add(other)
                    stack.append(other)
        self.steps += len(seen)
        return seen
