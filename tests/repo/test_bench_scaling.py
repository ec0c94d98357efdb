"""The model of `benchmarks/scaling.py`, against sums of messages worked out by hand and against a simulation."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from benchmarks import scaling
from benchmarks.scaling import Machine, Network, Step, all_reduce, buckets, step_time

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


HERE = Machine("here", cores=2, alpha=1e-4, rate=1e10, crowd=1.5)


def test_ranks_that_share_memory_and_cores() -> None:
    """Two ranks copy n bytes, read n twice and write n; four take turns on two cores with everything that they do."""
    step = Step("step", forward=0.01, backward=0.02, update=0.004, gradients=2e6)
    assert HERE.step_time(step, 1) == pytest.approx(0.034)
    read_and_written = 2 * (1e-4 + 5 * 1e6 / 1e10)  # buckets of 1 MB each
    assert HERE.step_time(step, 2) == pytest.approx(0.03 + 0.004 * 1.5 + read_and_written)
    assert HERE.step_time(step, 4) == pytest.approx(2 * (0.03 + 0.006 + 2 * (1e-4 + 7 * 1e6 / 1e10)))
    assert [HERE.turns(ranks) for ranks in (1, 2, 3, 8)] == [1.0, 1.0, 1.5, 4.0]


def measured_by(machine: Machine) -> list[dict]:
    """What the benchmark finds on a machine that behaves as the model says."""
    parts = {count: {"forward": 0.04 / count + 0.001, "backward": 0.08 / count, "update": 0.004} for count in (2, 4)}
    alone = {str(count): {key: {**one, "gradients": 3e6} for key in scaling.KEYS} for count, one in parts.items()}
    found: list[dict] = [{"ranks": 1, "alone": alone}]
    for count, one in parts.items():
        turns = machine.turns(count)
        times = {str(size): turns * machine.average(size, count) for size in scaling.SIZES}
        step = Step("step", one["forward"], one["backward"], one["update"], 3e6)
        busy = {**one, "update": one["update"] * machine.crowd * turns}
        found.append({
            "ranks": count, "message": times, "all_reduce": times, "average": times,
            "parts": dict.fromkeys(scaling.KEYS, busy),
            "together": dict.fromkeys(scaling.KEYS, machine.step_time(step, count)),
        })  # fmt: skip  # a table
    return found


def test_the_machine_is_found_from_two_ranks_and_predicts_four() -> None:
    found = measured_by(HERE)
    machine = scaling.fitted_machine(found[0]["alone"], found[1], 2)
    assert machine.alpha == pytest.approx(HERE.alpha, rel=0.05)
    assert machine.rate == pytest.approx(HERE.rate, rel=0.05)
    assert machine.crowd == pytest.approx(HERE.crowd)
    assert [row[-1] for row in scaling.step_rows(found, machine)] == ["1.00"] * 4
    assert "the most at 2" in scaling.paying(found[0]["alone"], "w2", machine)
    assert scaling.report(found).count("| W2") == 2


def test_the_page_shows_what_the_model_says() -> None:
    page = (Path(__file__).parents[2] / "docs" / "distributed.md").read_text(encoding="utf-8")
    rows = [line for line in scaling.tables().splitlines() if line.startswith("| ")]
    assert len(rows) > 20
    assert [row for row in rows if row not in page] == []


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
