"""The dependencies between groups of instructions, with an execution order that is maintained under merging.

Two groups can be merged only if no third group lies between them. A search along all readers would visit the rest of
the program for every pair, so planning would take quadratic time. Two measures keep it short. First, groups have ranks,
and a reader's is higher, so the search stops at the rank of the goal. When two groups are merged, the ranks between
them are reassigned as in Pearce and Kelly 2006, "A dynamic topological sort algorithm for directed acyclic graphs".
Second, each group has a bit set of the instructions that depend on it in the program. So the usual case, a value of the
forward pass and its reader in the backward pass, needs no search.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Generic, TypeVar

T = TypeVar("T")


class Links(Generic[T]):
    """The groups of a program; initially each is one instruction.

    Args:
        feeders: the groups that each group reads from; the keys are in a possible execution order.

    Attributes:
        readers, feeders: the groups that read from a group, and those it reads from.
        rank: the rank of each group, higher than those of its feeders.
        steps: the number of groups that searches have visited so far.
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
        """Replace two groups, between which there is no other, by the merged one."""
        self._deal(merged, maker, reader)
        parts = (maker, reader)
        for mine, theirs in ((self.readers, self.feeders), (self.feeders, self.readers)):
            mine[merged] = (mine.pop(maker) | mine.pop(reader)).difference(parts)
            for other in mine[merged]:
                theirs[other] = theirs[other].difference(parts) | {merged}
        for bits in (self._own, self._later):
            bits[merged] = bits.pop(maker) | bits.pop(reader)

    def _deal(self, merged: T, maker: T, reader: T) -> None:
        """Give `merged` a rank after all groups that it will read, and before all that will read it."""
        low, high = self.rank.pop(maker), self.rank.pop(reader)
        after = self._reached(self.readers[maker] - {reader}, self.readers, lambda rank: rank < high)
        if not after:
            self.rank[merged] = high
            return
        before = self._reached(self.feeders[reader] - {maker}, self.feeders, lambda rank: rank > low)
        ranks = sorted([low, high, *(self.rank[group] for group in (*before, *after))])
        order = [*sorted(before, key=self.rank.__getitem__), merged, *sorted(after, key=self.rank.__getitem__)]
        # There is one more rank than groups: those before take the lower ones, those after the upper ones.
        self.rank.update(zip(order, [*ranks[: len(before) + 1], *ranks[len(before) + 2 :]], strict=True))

    def _reached(self, start: Iterable[T], way: Mapping[T, set[T]], near: Callable[[int], bool]) -> set[T]:
        """Return the groups reachable along `way` through groups whose rank is `near`."""
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
