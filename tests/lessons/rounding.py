"""Lessons with other roundings: their first numbers are moved by an ulp, as another processor moves later ones.

A nearly chaotic training turns this into a large difference, so the checks of a lesson have to hold for all roundings.
`python -m tests.lessons.rounding 13 15` prints the failing checks of these lessons and the differing lines of output;
with `--once` the lessons run unchanged, for the products of another processor (`OPENBLAS_CORETYPE`).
"""

from __future__ import annotations

import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from glassgrad.lessons import Program, programs
from glassgrad.optim import Optimizer
from tools import build_lessons

_DRAWN = frozenset({"normal", "standard_normal", "uniform", "random"})


class _Draws:
    """A generator of NumPy's whose real numbers are moved."""

    def __init__(self, rng: np.random.Generator, nudge: _Nudge) -> None:
        self._rng, self._nudge = rng, nudge

    def __getattr__(self, name: str) -> Any:
        draw = getattr(self._rng, name)
        return (lambda *args, **options: self._nudge(draw(*args, **options))) if name in _DRAWN else draw


class _Nudge:
    """Moves numbers down or up by the distance to the next one, or leaves them."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.Generator(np.random.PCG64(seed))

    def __call__(self, x: Any) -> Any:
        x = np.asarray(x)
        return x + self.rng.integers(-1, 2, x.shape).astype(x.dtype) * np.spacing(x)


@contextmanager
def other_roundings(seed: int) -> Iterator[None]:
    """Move NumPy's draws, and parameters when an optimizer takes them; the seed says where to."""
    nudge, begin, drawing = _Nudge(seed), Optimizer.__init__, np.random.default_rng

    def begun(self: Any, *args: Any, **options: Any) -> None:
        begin(self, *args, **options)
        for group in self.param_groups:
            for param in group["params"]:
                values = param.detach().numpy()
                values[...] = nudge(values)

    moved = mock.patch.object(np.random, "default_rng", lambda *seeds: _Draws(drawing(*seeds), nudge))
    with moved, mock.patch.object(Optimizer, "__init__", begun):
        yield


def outcome(lesson: Program, folder: Path) -> tuple[str, str]:
    """Run a lesson; return what it printed, and the line of the check that failed, if one did."""
    try:
        return "".join(build_lessons.run(lesson, folder)), ""
    except AssertionError as error:
        frames = traceback.extract_tb(error.__traceback__)
        number = [one.lineno or 0 for one in frames if one.filename == str(lesson.path)][-1]
        return "", f"line {number}: {lesson.text.splitlines()[number - 1].strip()}"


def differences(lesson: Program, usual: str, folder: Path, seeds: int) -> Counter[str]:
    """Return the checks that fail and the lines that differ, with the number of runs in which they do."""
    seen: Counter[str] = Counter()
    for seed in range(seeds):
        with other_roundings(seed):
            text, failed = outcome(lesson, folder)
        seen.update(set(text.splitlines()) - set(usual.splitlines()))
        seen.update([f"FAILED {failed}"] if failed else [])
    return seen


def main(numbers: Sequence[int], seeds: int) -> int:
    """Print the differences between runs; return 1 where a check failed."""
    failures = 0
    with tempfile.TemporaryDirectory() as name:
        for lesson in programs():
            if numbers and lesson.number not in numbers:
                continue
            usual, failed = outcome(lesson, Path(name))
            print(f"== {lesson.path.stem} {failed}".rstrip(), flush=True)
            seen = differences(lesson, usual, Path(name), seeds)
            for line, count in sorted(seen.items()):
                print(f"{count:5}  {line}", flush=True)
            failures += bool(failed) or any(line.startswith("FAILED") for line in seen)
    return min(failures, 1)


if __name__ == "__main__":
    chosen = [one for one in sys.argv[1:] if one != "--once"]
    raise SystemExit(main([int(one) for one in chosen], 0 if "--once" in sys.argv else 10))
