"""Measure the cost of `doctor.watch` over an unwatched loop: W2, compiled, each preset in turn with the plain loop.

One process runs one compiled step: plain, economy, standard, plain, and so on for some rounds, with a plain turn at the
end. A watched turn begins its own watch, so its first steps, which are always sampled, are part of the measurement: a
shorter turn is the harder test. Each turn is compared with the mean of the plain turns before and after its round. The
result is the median of these ratios, for wall-clock time and for processor time, which other programs disturb less.
Beside them stands the watch's own report of its time, as a share of the plain loop's time. Python calls are counted in
steps that are not sampled.
"""

from __future__ import annotations

import contextlib
import statistics
import sys
import time
from typing import Any

from benchmarks import results
from benchmarks.workloads import WORKLOADS

LIMITS = {"economy": 1.03, "standard": 1.10}
TITLE = "What doctor.watch costs over the plain loop, W2 compiled"
STEPS = 150


class Loop:
    """The compiled step of W2, its model and its batches."""

    def __init__(self) -> None:
        import importlib

        import glassgrad as gg

        package = WORKLOADS["w2"].package
        peer = importlib.import_module(f"{package}.glassgrad_peer")
        batches = importlib.import_module(f"{package}.problem").batches()
        self.data = [tuple(gg.tensor(part) for part in batch) for batch in zip(*batches, strict=True)]
        self.model, self.optimizer, loss_fn = peer.parts()
        model, optimizer = self.model, self.optimizer

        def step(images: Any, labels: Any) -> Any:
            loss = loss_fn(model(images), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            return loss

        self.step = gg.compile(step)
        self.run(3)

    def run(self, steps: int) -> None:
        """Make steps, and wait for the last."""
        loss = None
        for at in range(steps):
            loss = self.step(*self.data[at % len(self.data)])
        assert loss is not None
        loss.item()

    def watched(self, preset: str | None) -> contextlib.AbstractContextManager[Any]:
        """Return a watch, or nothing for a plain turn."""
        from glassgrad.doctor import watch

        if preset is None:
            return contextlib.nullcontext()
        return watch(self.model, self.optimizer, preset=preset, report=False)

    def turn(self, preset: str | None, steps: int) -> tuple[float, float, int, float]:
        """Return wall-clock and processor seconds, the number of sampled steps, and the seconds of sampling."""
        clock, processor = time.perf_counter(), time.process_time()
        with self.watched(preset) as seen:
            self.run(steps)
        spent = time.perf_counter() - clock, time.process_time() - processor
        return (*spent, 0, 0.0) if seen is None else (*spent, len(seen.data), seen.spent)

    def calls(self, preset: str | None) -> int:
        """Return the number of Python calls in a step that is not sampled."""
        count = 0

        def told(_frame: Any, event: str, _argument: Any) -> None:
            nonlocal count
            count += event == "call"

        with self.watched(preset) as seen:
            self.run(20)
            while seen is not None and seen.sampling:
                self.run(1)
            sys.setprofile(told)
            try:
                self.step(*self.data[0])
            finally:
                sys.setprofile(None)
        return count


def measure(threads: int | None, rounds: int, steps: int = STEPS) -> tuple[str, str, dict[str, Any]]:
    """Return title, text and raw numbers; the compiled step chooses `threads`."""
    loop = Loop()
    ratios: dict[str, list[tuple[float, float, int, float]]] = {preset: [] for preset in LIMITS}
    before = loop.turn(None, steps)
    for _ in range(rounds):
        turns = {preset: loop.turn(preset, steps) for preset in ratios}
        after = loop.turn(None, steps)
        clock, processor = ((one + other) / 2 for one, other in zip(before[:2], after[:2], strict=True))
        for preset, turn in turns.items():
            ratios[preset].append((turn[0] / clock, turn[1] / processor, turn[2], turn[3] / clock))
        before = after
    bare = loop.calls(None)
    rows, verdicts, data = [], [], {}
    for preset, found in ratios.items():
        clock, processor, samples, share = (statistics.median(column) for column in zip(*found, strict=True))
        calls = loop.calls(preset) - bare
        sampled = f"{samples:.0f} of {steps}"
        rows.append([preset, f"{clock:.3f}", f"{processor:.3f}", sampled, f"{share:.3f}", f"{calls}"])
        met = "met" if clock <= LIMITS[preset] else "missed"
        verdicts.append(f"- {preset} at most {LIMITS[preset]:.2f} of the plain loop: {clock:.3f}, {met}")
        data[preset] = {"ratios": found, "calls": calls}
    heads = ["preset", "time", "processor time", "sampled steps", "their share", "more Python calls in a step"]
    table = results.markdown_table(heads, rows)
    text = f"{table}\n\nRatios to the plain loop, medians of {rounds} turns of {steps} steps.\n\n" + "\n".join(verdicts)
    return TITLE, text, data
