"""Lessons with other roundings: their first numbers are moved by a rounding error, as another processor moves later ones.

A training that is near chaos makes a large difference of it, so what a lesson checks has to hold for all of them.
`python -m tests.lessons.rounding 13 15` says which checks of these lessons fail, and which numbers they print differ.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
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
    """Run a lesson; return what it printed, and the check that failed, if one did."""
    try:
        return "".join(build_lessons.run(lesson, folder)), ""
    except AssertionError as error:
        line = error.__traceback__
        while line is not None and line.tb_next is not None:
            line = line.tb_next
        number = line.tb_lineno if line else 0
        return "", f"line {number}: {lesson.path.read_text(encoding='utf-8').splitlines()[number - 1].strip()}"


def main(numbers: list[int], seeds: int = 10) -> None:
    """Print what differs between runs."""
    with tempfile.TemporaryDirectory() as folder:
        for lesson in programs():
            if numbers and lesson.number not in numbers:
                continue
            usual, failed = outcome(lesson, Path(folder))
            print(f"== {lesson.path.stem} {failed}", flush=True)
            seen: dict[str, int] = {}
            for seed in range(seeds):
                with other_roundings(seed):
                    text, failed = outcome(lesson, Path(folder))
                if failed:
                    seen[f"FAILED {failed}"] = seen.get(f"FAILED {failed}", 0) + 1
                for line in text.splitlines():
                    if line not in usual.splitlines():
                        seen[line] = seen.get(line, 0) + 1
            for line, count in sorted(seen.items()):
                print(f"  {count:3}  {line}", flush=True)


if __name__ == "__main__":
    main([int(one) for one in sys.argv[1:]])
