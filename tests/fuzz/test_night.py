"""The search of every night: other programs each night, and an end that tells."""

from __future__ import annotations

import itertools
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.fuzz import night, test_programs

ROOT = Path(__file__).resolve().parents[2]


def test_nights_do_not_overlap() -> None:
    days = [datetime(2026, 12, 30, tzinfo=UTC) + timedelta(days=n) for n in range(5)]
    seeds = [night.seed_of(day) for day in days]
    assert all(b - a == night.A_NIGHT for a, b in itertools.pairwise(seeds))
    assert min(seeds) > 10_000  # beyond the suite's
    assert max(seeds) < 2**32


def test_one_chunk_at_least_is_searched(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    asked: list[tuple[int, int, tuple[str, ...]]] = []

    def failures(first: int, last: int, *options: str) -> list[str]:
        asked.append((first, last, options))
        return ["a program that is wrong"]

    monkeypatch.setattr(night, "failures", failures)
    assert night.search(1_000, 0.0) == (night.CHUNK, ["a program that is wrong"])
    assert asked == [(1_000, 1_000 + night.CHUNK, ())]
    assert "a program that is wrong" in capsys.readouterr().out


def test_it_is_the_suites_check() -> None:
    assert night.failures is test_programs.failures


@pytest.mark.slow
def test_a_short_night() -> None:
    command = [sys.executable, "-m", "tests.fuzz.night", "--minutes", "0", "--first", "20000"]
    process = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    assert process.returncode == 0, process.stdout + process.stderr
    assert "200 programs from seed 20,000: 0 wrong" in process.stdout
