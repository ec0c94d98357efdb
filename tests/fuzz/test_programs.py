"""Random programs in child processes, so that a crash is a failed test and not the end of the suite."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import glassgrad as gg
from tests.fuzz import check
from tests.fuzz.programs import DENSE, OPS, WITH_PRODUCTS, leaves_of, loss_of, make

ROOT = Path(__file__).resolve().parents[2]
AUTOCAST_IN_THE_SUITE = 5
IN_THE_SUITE, CHUNK = 25, 25  # a process for each chunk takes as long to start as ten programs


def failures(first: int, last: int, *options: str) -> list[str]:
    """Check the programs of some seeds; go on behind one that ended its process."""
    found = []
    while first < last:
        process = subprocess.run(
            [sys.executable, "-m", "tests.fuzz.check", str(first), str(last), *options],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
        records = [json.loads(line) for line in process.stdout.splitlines() if line.startswith("{")]
        found += ["\n".join([one["program"], *one["wrong"]]) for one in records if one.get("wrong")]
        started = max((record["started"] for record in records if "started" in record), default=first)
        if process.returncode == 0:
            break
        found.append(f"program {started} ended its process with {process.returncode}:\n{process.stderr[-2000:]}")
        first = started + 1
    return found


@pytest.mark.parametrize("first", range(0, IN_THE_SUITE, CHUNK))
def test_every_interpreter_agrees(first: int) -> None:
    found = failures(first, first + CHUNK)
    assert not found, "\n\n".join(found)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(IN_THE_SUITE, 10_000, 225))
def test_every_interpreter_agrees_on_many(first: int) -> None:
    found = failures(first, first + 225)
    assert not found, "\n\n".join(found)


def test_autocast_is_off_by_its_rounding_only() -> None:
    found = failures(0, AUTOCAST_IN_THE_SUITE, "autocast")
    assert not found, "\n\n".join(found)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(AUTOCAST_IN_THE_SUITE, 300, 59))
def test_autocast_is_off_by_its_rounding_only_in_many(first: int) -> None:
    found = failures(first, first + 59, "autocast")
    assert not found, "\n\n".join(found)


def test_programs_are_of_the_size_and_kind_they_claim() -> None:
    programs = [make(seed) for seed in range(60)]
    assert all(5 <= len(one.statements) <= 40 for one in programs)
    dense = [{statement.op for statement in make(seed, WITH_PRODUCTS).statements} for seed in range(20)]
    assert sum(bool(ops & {*DENSE}) for ops in dense) > 0.8 * len(dense)
    assert {*DENSE} <= set().union(*dense)
    used = {statement.op for one in programs for statement in one.statements}
    assert len(used) > 0.9 * len(OPS)
    assert any(0 in shape for one in programs for shape in one.shapes)
    assert any(back for one in programs for back in one.backwards)


def test_a_wrong_interpreter_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(program: check.Program) -> check.Numbers:
        numbers = check.by_eager(program)
        return [numbers[0] * 1.0001 + 1e-4, *numbers[1:]]

    monkeypatch.setattr(check, "INTERPRETERS", {"wrong": wrong})
    assert [one for one in check.differences(make(3), have_torch=False) if one.startswith("wrong: the loss")]


def test_a_wrong_product_under_autocast_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(program: check.Program) -> check.Numbers:
        return [1.1 * one for one in check.narrow_eager(program)]

    monkeypatch.setattr(check, "NARROW_INTERPRETERS", {"wrong": wrong})
    assert [one for one in check.narrow_differences(make(3, WITH_PRODUCTS), have_torch=False) if "wrong: the" in one]


def test_a_process_that_ends_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(command: list[str], **_options: object) -> subprocess.CompletedProcess[str]:
        first = int(command[-2])
        lines = [json.dumps({"started": first}), json.dumps({"seed": first, "wrong": [], "program": ""})]
        ended = first == 0
        return subprocess.CompletedProcess(command, -6 if ended else 0, "\n".join(lines), "LLVM ERROR")

    monkeypatch.setattr(subprocess, "run", run)
    (found,) = failures(0, 2)
    assert "LLVM ERROR" in found


def test_gradients_of_a_program_are_those_of_differences() -> None:
    """Independently of PyTorch, so that the suite says something without it."""
    program = make(5)
    *_, gradient = check.by_eager(program)
    leaves = leaves_of(program)
    last = np.array(leaves[-1])
    step = np.random.default_rng(0).normal(size=last.shape) * 1e-6
    up, down = (
        float(loss_of(program, gg, [*map(gg.from_numpy, leaves[:-1]), gg.from_numpy(last + sign * step)]).item())
        for sign in (1, -1)
    )
    assert np.isclose(up - down, 2 * (gradient * step).sum(), rtol=1e-5, atol=1e-12)
