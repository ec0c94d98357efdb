"""Drawn programs are the same in every process, and the same training in both libraries."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import glassgrad as gg
from benchmarks import wild
from benchmarks.harness import Outcome
from benchmarks.wild.draw import Draw, Program, dense
from benchmarks.wild.programs import FAMILIES, Wild

SEEDS = [2 * number for number in range(len(FAMILIES))]
QUICK = 8


def losses_of(seed: int, library: Any, count: int = 2) -> list[float]:
    drawn = Wild(seed)
    step = drawn.step(library, 0)
    batches = drawn.program.batches[-count:]  # with the last, which is smaller in some
    return [step(*(library.tensor(part) for part in batch)).item() for batch in batches]


@pytest.mark.parametrize(
    "seed", [pytest.param(seed, marks=pytest.mark.slow if seed >= QUICK else ()) for seed in SEEDS]
)
def test_a_program_is_the_same_training_in_both_libraries(seed: int) -> None:
    torch = pytest.importorskip("torch", reason="this peer is not installed")
    theirs = losses_of(seed, torch)
    assert len(set(theirs)) == 2, "the loss does not move: a comparison would show nothing"
    assert losses_of(seed, gg) == pytest.approx(theirs, rel=1e-3)


def test_a_seed_gives_the_same_program_again_and_another_seed_another() -> None:
    first, again, other = Wild(6), Wild(6), Wild(7)
    assert first.text == again.text != other.text
    for one, same in zip(first.program.batches, again.program.batches, strict=True):
        for mine, theirs in zip(one, same, strict=True):
            np.testing.assert_array_equal(mine, theirs)


def test_odd_seeds_are_kept_aside_and_every_family_is_in_both_halves() -> None:
    assert wild.seeds(0, 3, aside=False) == wild.seeds(-1, 3, aside=False) == [0, 2, 4]
    assert wild.seeds(0, 3, aside=True) == wild.seeds(1, 3, aside=True) == [1, 3, 5]
    for aside in (False, True):
        turns = [seed // 2 % len(FAMILIES) for seed in wild.seeds(0, len(FAMILIES), aside)]
        assert sorted(turns) == list(range(len(FAMILIES)))


def test_some_last_batches_are_smaller() -> None:
    rows = {len(draw.batches(lambda n: (np.zeros(n),))[-1][0]) / draw.batch for draw in map(Draw, range(40))}
    assert max(rows) == 1
    assert min(rows) < 0.7


def test_dropout_is_in_what_is_timed_and_not_in_what_is_compared() -> None:
    program = Program(
        "", lambda T, dropout: dense(T, (4, 64, 1), dropout=0.5 * dropout), lambda T, m, x: m(x).sum(), ()
    )
    x = gg.ones(3, 4)
    assert program.model(gg, 0)(x).std().item() < 1e-6
    assert program.model(gg, 1)(x).std().item() > 1e-3


def found(seed: int, eager: float, compiled: float | None) -> dict[str, Any]:
    ratios = {"glassgrad eager": eager} | ({} if compiled is None else {"glassgrad compiled": compiled})
    troubles = {} if compiled is not None else {"glassgrad compiled": "CompileError: no"}
    return {"seed": seed, "text": f"program {seed}", "ratios": ratios, "troubles": troubles, "seconds": {}}


def test_the_summary_has_the_spread_the_slowest_and_the_refused() -> None:
    text = wild.summary([found(2 * number, 0.1 * number, None if number == 3 else 0.3) for number in range(1, 12)])
    rows = [
        [cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines() if line.startswith("| glass")
    ]
    assert rows[0] == ["glassgrad eager", "11", "0.60", "1.00", "1.10", "1 above 1"]
    assert rows[1] == ["glassgrad compiled", "10", "0.30", "0.30", "0.30", "0 above 0.8"]
    assert "- 1.10: seed 22, program 22" in text
    assert "program 2\n" not in text.split("compiled, the slowest")[0], "ten are named, not all eleven"
    assert "- seed 6, glassgrad compiled: CompileError: no (program 6)" in text


def test_a_ratio_is_the_median_over_rounds_of_the_two_beside_each_other() -> None:
    ours, theirs = Outcome("ours", [1.0, 6.0, 2.0]), Outcome("theirs", [2.0, 3.0, 4.0])
    assert wild.ratio(ours, theirs) == 0.5


@pytest.mark.slow
def test_a_program_runs_in_three_processes_and_is_timed() -> None:
    pytest.importorskip("torch", reason="this peer is not installed")
    one = wild.program(12, rounds=2, threads=None)
    assert one["troubles"] == {}
    assert set(one["ratios"]) == set(wild.OURS)
    assert wild.line(one).endswith(Wild(12).text)
