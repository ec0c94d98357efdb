"""The model of `benchmarks/scaling.py`, against sums of messages worked out by hand and against a simulation."""

from __future__ import annotations

import math

import pytest

from benchmarks import scaling
from benchmarks.scaling import Network, Step, all_reduce, buckets, step_time

SLOW = Network("slow", alpha=1e-3, beta=1e-6, gamma=1e-7)


def ring_by_messages(network: Network, size: float, ranks: int) -> float:
    """Walk around the ring: every message is one of `ranks` pieces; those of the first round are added up."""
    seconds = 0.0
    for number in range(2 * (ranks - 1)):
        piece = size / ranks
        seconds += network.alpha + piece * network.beta + (piece * network.gamma if number < ranks - 1 else 0.0)
    return seconds


def halving_by_messages(network: Network, size: float, ranks: int) -> float:
    """Exchange halves with a partner, then halves of these; and the same way back."""
    there = back = 0.0
    part = size
    while ranks > 1:
        part, ranks = part / 2, ranks // 2
        there += network.alpha + part * (network.beta + network.gamma)
        back += network.alpha + part * network.beta
    return there + back


@pytest.mark.parametrize("ranks", [2, 4, 8, 64])
@pytest.mark.parametrize("size", [1.0, 1e3, 1e7])
def test_all_reduce_is_the_best_of_three(ranks: int, size: float) -> None:
    doubling = math.log2(ranks) * (SLOW.alpha + size * (SLOW.beta + SLOW.gamma))
    best = min(doubling, ring_by_messages(SLOW, size, ranks), halving_by_messages(SLOW, size, ranks))
    assert all_reduce(SLOW, size, ranks) == pytest.approx(best, rel=1e-9)


def test_other_numbers_of_ranks_and_one() -> None:
    assert all_reduce(SLOW, 1e6, 1) == 0.0
    assert all_reduce(SLOW, 8.0, 7) > all_reduce(SLOW, 8.0, 4)


def test_buckets_hold_all_gradients() -> None:
    assert buckets(4e5) == [4e5]
    assert buckets(60e6) == [1e6, 25e6, 25e6, 9e6]


def test_a_step_waits_only_for_what_the_backward_pass_does_not_hide() -> None:
    free = Network("free", 0.0, 0.0, 0.0)
    step = Step("step", forward=1.0, backward=2.0, update=0.5, gradients=26e6)
    assert step_time(step, free, 8) == pytest.approx(step.alone)
    # Two buckets, complete at 1/26 and at the end of the backward pass; the last one alone is not hidden.
    quick = Network("quick", 0.0, 1e-9, 0.0)
    assert step_time(step, quick, 2) == pytest.approx(step.alone + all_reduce(quick, 25e6, 2))
    # A network that takes longer than the backward pass: both buckets, one after the other.
    late = Network("late", 0.0, 1e-5, 0.0)
    both = all_reduce(late, 1e6, 2) + all_reduce(late, 25e6, 2)
    assert step_time(step, late, 2) == pytest.approx(1.0 + 2.0 / 26 + both + 0.5)


def test_predictions_of_the_page() -> None:
    small, large = scaling.STEPS[0], scaling.STEPS[-1]
    slow, _, fast = scaling.NETWORKS
    for step in (small, large):
        assert 0 < scaling.weak(step, slow, 64) < scaling.weak(step, fast, 64) < 1
        assert scaling.strong(step, fast, 64) < 64
    assert scaling.stops_paying(small, slow) == 1


def test_the_fit_gives_back_what_a_network_makes() -> None:
    network = Network("given", 2e-6, 1e-9, Network.gamma)
    times = {4: {size: all_reduce(network, size, 4) for size in scaling.SIZES}}
    found = scaling.fitted(times, 4)
    assert found.alpha == pytest.approx(network.alpha, rel=0.05)
    assert found.beta == pytest.approx(network.beta, rel=0.05)
