"""The forward pass as a chain of stages, and the cheapest recomputation within a memory limit.

A stretch of stages either keeps the values that the backward pass reads, or drops them. A dropped stretch keeps only
the values that later stages read (and the results of products, if they are spared). When the backward pass reaches the
stretch, it recomputes the others, which needs memory in addition to the values kept by earlier stretches. A dynamic
program over the end of a stretch and the bytes kept so far, in steps of a thousandth of the limit, chooses the
stretches and which to drop, with the fewest recomputed operations. The memory model is that of Chen et al. 2016,
"Training deep nets with sublinear memory cost", with individual bytes and operations for each stage as in Beaumont,
Eyraud-Dubois, Herrmann, Joly and Shilova 2019, "Optimal checkpointing for heterogeneous chains", but without their
nested stretches, which compute some values more than twice.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

LEVELS = 1000


@dataclass(frozen=True)
class Choice:
    """A dropped stretch of stages, from `begin` up to `end`; `spared` if the results of products are kept."""

    begin: int
    end: int
    spared: bool


@dataclass(frozen=True)
class Chain:
    """The memory and operations of the stages of a forward pass.

    Attributes:
        sizes: bytes of each stage that the backward pass reads.
        products: bytes of the results of its products, which are kept if products are spared.
        flops, other_flops: operations of each stage, and those that are not products.
        spare, other_spare: the part of both that is not recomputed if a stretch ends with the stage.
        crossing: [p, q]: bytes written in stage p and last read, in the forward pass, by stage q.
    """

    sizes: Sequence[int]
    products: Sequence[int]
    flops: Sequence[int]
    other_flops: Sequence[int]
    spare: Sequence[int]
    other_spare: Sequence[int]
    crossing: Any

    def total(self) -> int:
        """Return the bytes of a step that drops nothing."""
        return sum(self.sizes)

    def cheapest(self, limit: float) -> tuple[float, list[Choice]] | None:
        """Return the recomputed operations and the stretches to drop within `limit` bytes; None if impossible."""
        if limit <= 0:
            return None
        unit = limit / LEVELS
        cost, back = self._start(len(self.sizes))
        for begin, end, spared, kept, needed, flops in self._stretches():
            places = int(LEVELS - math.ceil(needed / unit)) + 1
            shift = math.ceil(kept / unit)
            _better(cost, back, (begin, end, spared), min(places, LEVELS + 1 - shift), shift, cost[begin] + flops)
        best = int(np.argmin(cost[-1]))
        return (float(cost[-1][best]), _chosen(back, best)) if np.isfinite(cost[-1][best]) else None

    def least(self) -> float:
        """Return the least limit for which a choice exists."""
        unit = max(self.total(), 1) / LEVELS
        most, back = self._start(len(self.sizes))
        held = np.arange(LEVELS + 1) * unit
        for begin, end, spared, kept, needed, _ in self._stretches():
            shift = math.ceil(kept / unit)
            if shift <= LEVELS:
                reached = np.maximum(most[begin], held + needed)
                _better(most, back, (begin, end, spared), LEVELS + 1 - shift, shift, reached)
        return float(np.min(np.maximum(most[-1], held)))

    @staticmethod
    def _start(stages: int) -> tuple[list[Any], list[Any]]:
        cost = [np.full(LEVELS + 1, np.inf) for _ in range(stages + 1)]
        cost[0][0] = 0
        # The predecessor of each: level, begin of the stretch, kept (0), dropped (1) or dropped with products spared
        # (2).
        return cost, [np.zeros((3, LEVELS + 1), np.int64) for _ in range(stages + 1)]

    def _stretches(self) -> list[tuple[int, int, int, float, float, float]]:
        """Return (begin, end, how, bytes kept, bytes needed during recomputation, operations), sorted by end."""
        stages = len(self.sizes)
        sums: Mapping[str, Any] = {
            name: np.concatenate([[0.0], np.cumsum(np.asarray(getattr(self, name), float))])
            for name in ("sizes", "products", "flops", "other_flops")
        }
        found: list[tuple[int, int, int, float, float, float]] = []
        for end in range(1, stages + 1):
            size = float(self.sizes[end - 1])
            found.append((end - 1, end, 0, size, size, 0.0))
            # The bytes of each earlier stage that are read from `end` on.
            ahead = np.cumsum(self.crossing[:end, end:].sum(axis=1)[::-1])[::-1]
            for begin in range(end):
                kept = float(ahead[begin])
                size, products, flops, others = (float(one[end] - one[begin]) for one in sums.values())
                found.append((begin, end, 1, kept, max(size, kept), max(flops - self.spare[end - 1], 1.0)))
                if products:
                    most, others = max(size, kept + products), max(others - self.other_spare[end - 1], 1.0)
                    found.append((begin, end, 2, kept + products, most, others))
        return found


def _better(
    cost: list[Any], back: list[Any], stretch: tuple[int, int, int], count: int, shift: int, reached: Any
) -> None:
    """Take a stretch from the first `count` levels to those `shift` above them wherever that is cheaper."""
    if count <= 0:
        return
    begin, end, how = stretch
    target = cost[end][shift : shift + count]
    wins = np.flatnonzero(reached[:count] < target)
    if len(wins):
        target[wins] = reached[wins]
        back[end][0][shift + wins], back[end][1][shift + wins], back[end][2][shift + wins] = wins, begin, how


def _chosen(back: list[Any], level: int) -> list[Choice]:
    found, end = [], len(back) - 1
    while end:
        level, begin, how = (int(one[level]) for one in back[end])
        if how:
            found.append(Choice(begin, end, how == 2))
        end = begin
    return found[::-1]
