"""The choice of stretches of a chain to drop: the dynamic program against all possible choices."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from glassgrad.compile.plan.chain import Chain

STAGES = 5


def random_chain(seed):
    draw = np.random.default_rng(seed)
    sizes = draw.integers(1, 60, STAGES)
    flops = draw.integers(20, 90, STAGES)
    others = np.minimum(draw.integers(1, 20, STAGES), flops)
    crossing = np.triu(draw.integers(0, 9, (STAGES, STAGES)) * (draw.random((STAGES, STAGES)) < 0.4))
    for at in range(STAGES - 1):
        crossing[at, at + 1] += 5
    spare = np.minimum(draw.integers(0, 15, STAGES), others)
    return Chain(sizes, draw.integers(0, 25, STAGES), flops, others, spare, spare, crossing)


def needed(chain, choices):
    """Bytes and operations of a choice: the greatest of what is kept so far and is in use, stretch by stretch."""
    kept = most = flops = 0
    at = 0
    for begin, end, spared in [*choices, (STAGES, STAGES, False)]:
        kept += sum(chain.sizes[at:begin])
        most, at = max(most, kept), end
        if begin == end:
            break
        ahead = sum(chain.crossing[p, q] for p in range(begin, end) for q in range(end, STAGES))
        mine = ahead + (sum(chain.products[begin:end]) if spared else 0)
        most = max(most, kept + max(sum(chain.sizes[begin:end]), mine))
        again, spare = (chain.other_flops, chain.other_spare) if spared else (chain.flops, chain.spare)
        flops += max(sum(again[begin:end]) - spare[end - 1], 1)
        kept += mine
    return max(most, kept), flops


def every_choice(chain):
    for cuts in itertools.product((False, True), repeat=STAGES - 1):
        edges = [0, *(at + 1 for at, cut in enumerate(cuts) if cut), STAGES]
        pieces = list(itertools.pairwise(edges))
        for modes in itertools.product((None, False, True), repeat=len(pieces)):
            chosen = [(*piece, mode) for piece, mode in zip(pieces, modes, strict=True) if mode is not None]
            if all(any(chain.products[begin:end]) for begin, end, spared in chosen if spared):
                yield needed(chain, chosen)


@pytest.mark.parametrize("seed", range(6))
def test_no_choice_is_cheaper(seed):
    chain = random_chain(seed)
    choices = set(every_choice(chain))
    least = min(size for size, _ in choices)
    assert least <= chain.least() <= least + chain.total() * STAGES / 1000
    assert chain.cheapest(least * 0.98) is None
    for limit in np.linspace(least, chain.total(), 7) * 1.006:
        cost, dropped = chain.cheapest(limit)
        size, flops = needed(chain, [(one.begin, one.end, one.spared) for one in dropped])
        assert size <= limit
        assert flops == cost
        assert cost >= min(flops for size, flops in choices if size <= limit)
        # Levels are rounded up, by a thousandth of the limit for each stretch at most.
        assert cost <= min(flops for size, flops in choices if size <= limit * (1 - STAGES / 1000))


def test_a_chain_that_fits_drops_nothing():
    chain = random_chain(1)
    assert chain.cheapest(chain.total() * 1.01) == (0, [])
    assert chain.cheapest(0) is None
