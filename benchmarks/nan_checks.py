"""Measure the cost of `doctor.watch(nan=True)` over the plain loop: compiled and eager steps of several sizes.

Two copies of a training take turns, one of them watched for NaN. The watch samples only the first step (`every` is
larger than the number of steps), and the first steps are not timed, so the difference is the cost of the check and its
copies. Each turn is compared with the plain turn right before it; the result is the median ratio of wall-clock times.
Processor time stands beside it: it is more reliable on a busy machine, but it also counts threads that spin while they
wait for Python.
"""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from benchmarks import results

LIMIT = 1.03
TITLE = "What doctor.watch(nan=True) costs over the plain loop"
_NEVER = 1 << 30
_TURNS = 3  # for each round that was asked for


@dataclass(frozen=True)
class Case:
    """An MLP with SGD or Adam on a batch of noise: its widths, the steps of a turn, and those before it."""

    name: str
    widths: tuple[int, ...]
    batch: int
    optimizer: str
    compiled: bool
    steps: int
    before: int = 30


CASES = (
    Case("MLP 200-200-27, Adam, compiled", (200, 200, 27), 64, "Adam", True, 600),
    Case("MLP 784-128-10, SGD, compiled", (784, 128, 10), 128, "SGD", True, 400),
    Case("W2's MLP, SGD, compiled", (784, 1024, 1024, 1024, 10), 512, "SGD", True, 8, 4),
    Case("MLP 784-128-10, SGD, eager", (784, 128, 10), 128, "SGD", False, 150),
    Case("nine layers of 64, Adam, eager", (*[64] * 9, 10), 64, "Adam", False, 150),
)


class Training:
    """One model with its step."""

    def __init__(self, case: Case, threads: int | None) -> None:
        import glassgrad as gg
        from glassgrad import nn

        gg.manual_seed(0)
        layers: list[Any] = []
        for before, after in zip(case.widths, case.widths[1:], strict=False):
            layers += [nn.Linear(before, after), nn.ReLU()]
        self.model = model = nn.Sequential(*layers[:-1])
        self.optimizer = optimizer = getattr(gg.optim, case.optimizer)(model.parameters(), lr=1e-4)
        self.data = gg.randn(case.batch, case.widths[0]), gg.randint(0, case.widths[-1], (case.batch,))

        def step(x: Any, y: Any) -> Any:
            loss = nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            return loss

        self.step: Callable[..., Any] = gg.compile(step, threads=threads) if case.compiled else step

    def turn(self, steps: int) -> tuple[float, float]:
        """Return the seconds of a step: wall-clock and processor time."""
        began, spent = time.perf_counter(), time.process_time()
        for _ in range(steps):
            self.step(*self.data)
        return (time.perf_counter() - began) / steps, (time.process_time() - spent) / steps


def ratios(case: Case, turns: int, threads: int | None) -> list[tuple[float, float, float]]:
    """Return, for each turn, the ratios of the clock and of the processor, and the plain seconds of a step."""
    from glassgrad.doctor import watch

    plain, watched = Training(case, threads), Training(case, threads)
    plain.turn(case.before)
    found = []
    for _ in range(turns):
        gc.collect()
        clock, processor = plain.turn(case.steps)
        with watch(watched.model, watched.optimizer, preset="economy", every=_NEVER, nan=True, report=False):
            watched.turn(case.before)
            checked = watched.turn(case.steps)
        found.append((checked[0] / clock, checked[1] / processor, clock))
    return found


def measure(threads: int | None, rounds: int) -> tuple[str, str, dict[str, Any]]:
    """Title, text and raw numbers."""
    rows, verdicts, data = [], [], {}
    for case in CASES:
        found = ratios(case, rounds * _TURNS, threads)
        ratio, processor, plain = (statistics.median(column) for column in zip(*found, strict=True))
        more = f"{(ratio - 1) * plain * 1e6:.1f}"
        rows.append([case.name, results.duration(plain), f"{ratio:.3f}", more, f"{processor:.3f}"])
        met = "met" if ratio <= LIMIT else "missed"
        verdicts.append(f"- {case.name}, at most {LIMIT:.2f} of the plain loop: {ratio:.3f}, {met}")
        data[case.name] = found
    table = results.markdown_table(["loop", "plain step", "ratio", "more, in microseconds", "of processor time"], rows)
    text = f"{table}\n\nMedians of {rounds * _TURNS} turns.\n\n" + "\n".join(verdicts)
    return TITLE, text, data
