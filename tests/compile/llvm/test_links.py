"""Groups that may become one: the ranks and bits of `Links` against a search through the whole program."""

from __future__ import annotations

import random

import pytest

from glassgrad.compile.plan.links import Links


def depends_otherwise(readers, start, goal):
    stack, seen = list(readers[start] - {goal}), set()
    while stack:
        group = stack.pop()
        if goal in readers[group]:
            return True
        stack += readers[group] - seen
        seen |= readers[group]
    return False


@pytest.mark.parametrize("seed", range(12))
def test_merging_random_programs(seed):
    """Groups are frozensets of numbers; each pair that may become one does so half of the time."""
    draw = random.Random(seed)
    groups = [frozenset([number]) for number in range(40)]
    near = draw.choice([3, 10, 40])
    links = Links(
        {
            group: {groups[draw.randrange(max(0, at - near), at)] for _ in range(draw.randrange(3))} if at else set()
            for at, group in enumerate(groups)
        }
    )
    merged = 0
    for _ in range(250):
        start = draw.choice([group for group in links.rank if links.readers[group]] or [None])
        if start is None:
            break
        goal = draw.choice(sorted(links.readers[start], key=sorted))
        expected = depends_otherwise(links.readers, start, goal)
        assert links.between(start, goal) == expected
        if not expected and draw.random() < 0.5:
            links.join(start | goal, start, goal)
            merged += 1
        assert len(set(links.rank.values())) == len(links.rank)
        assert all(links.rank[one] < links.rank[other] for one in links.rank for other in links.readers[one])
    assert merged > 5
