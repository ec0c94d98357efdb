"""Measure the cost of `Trainer` over the bare compiled step, and the cost of a batch of the in-memory loaders.

The bare step is the compiled program that `Trainer` itself calls, with batches made in advance. `Trainer` takes them
from a `DataLoader`, checks them for NaN, adds up losses and times, and writes metrics.jsonl. Both take short turns in
one process, because two processes that run the same program differ by more than the measured cost, depending on the
placement of their memory. The benchmark first checks that the losses equal those of the workload's own peer.
"""

from __future__ import annotations

import dataclasses
import importlib
import itertools
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks import harness, quiet, results, worker
from benchmarks.workload import Workload
from benchmarks.workloads import WORKLOADS

LIMIT = 1.03
FEED_LIMIT = 3e-6
FEEDS = {"RandomBatches": "feed-random", "DataLoader": "feed-loader"}
TITLE = "What Trainer costs over the bare compiled step"
KEYS = ("w2", "w3", "w5")
TURN = 0.5  # seconds


def build(mode: str) -> Any:
    """Return the work of a process: "both-w2" and so on, "feed-random" or "feed-loader"."""
    kind, _, what = mode.partition("-")
    return feed(what) if kind == "feed" else Both(what)


class Both:
    """One model whose steps run bare and through `Trainer.fit` in turn."""

    def __init__(self, key: str) -> None:
        import glassgrad as gg
        from glassgrad.train import Callback, MetricsLog, Trainer, TrainingConfig
        from glassgrad.utils.data import DataLoader, TensorDataset

        class Last(Callback):
            """Keeps the loss of the last step."""

            def on_train_end(self, run: Any) -> None:
                self.loss = run.loss

        self.key, self.last = key, Last()
        package = WORKLOADS[key].package
        self.peer = importlib.import_module(f"{package}.glassgrad_peer")
        batches = importlib.import_module(f"{package}.problem").batches()
        self.ready = [tuple(gg.tensor(part) for part in batch) for batch in zip(*batches, strict=True)]
        data = TensorDataset(*(gg.tensor(part.reshape(-1, *part.shape[2:])) for part in batches))
        model, optimizer, loss_fn = self.peer.parts()
        self.trainer = Trainer(
            model,
            optimizer,
            loss_fn,
            DataLoader(data, batch_size=batches[0].shape[1]),
            config=TrainingConfig(epochs=10**6, progress="none"),
            callbacks=[self.last],
            more_loggers=[MetricsLog(Path(tempfile.mkdtemp()) / "metrics.jsonl")],
        )

    def trained(self, count: int) -> float:
        """Make steps through `fit`; each turn is a stretch of one long run."""
        self.trainer.fit(until=self.trainer.loop.step + count)
        return float(self.last.loss)

    def bare(self, count: int) -> float:
        """Make only steps."""
        step, ready = self.trainer.learner.step, self.ready
        for place in range(count):
            loss = step(*ready[place % len(ready)])
        return float(loss)

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """Check the losses, then take turns."""
        check = WORKLOADS[self.key]
        reference = self.peer.build("llvm")
        mine = [self.trained(1) for _ in range(check.check_steps)]
        theirs = [reference(1) for _ in range(check.check_steps)]
        if found := harness.disagreement(mine, theirs, check.tolerance):
            return {"failed": f"disagrees: {found}"}
        count = worker.calibrate(self.bare, TURN)
        turns: dict[str, list[float]] = {"bare": [], "trained": []}
        for index in range(request["rounds"]):
            for name in ("bare", "trained") if index % 2 else ("trained", "bare"):
                began = time.perf_counter()
                getattr(self, name)(count)
                turns[name].append((time.perf_counter() - began) / count)
        return {"turns": turns}


def feed(kind: str) -> Callable[[int], float]:
    """Return the requested number of batches of W1's size."""
    import numpy as np

    import glassgrad as gg
    from glassgrad.data import RandomBatches
    from glassgrad.utils.data import DataLoader, TensorDataset

    generator = np.random.default_rng(1)
    inputs, targets = generator.integers(0, 27, (200_000, 3)), generator.integers(0, 27, 200_000)
    if kind == "random":
        at, step = RandomBatches(inputs, targets, batch=32, seed=1).at, itertools.count()
        draw: Callable[[], Any] = lambda: at(next(step))  # noqa: E731 - one of two ways, beside each other
    else:
        loader = DataLoader(TensorDataset(gg.tensor(inputs), gg.tensor(targets)), batch_size=32, shuffle=True)
        endless = itertools.chain.from_iterable(itertools.repeat(loader))
        draw = lambda: next(endless)  # noqa: E731 - as above

    def run(count: int) -> float:
        for _ in range(count):
            draw()
        return 0.0

    return run


def feeds() -> Workload:
    """The in-memory loaders on batches of W1's size."""
    return Workload(
        key="trainer-feed",
        title="W1",
        package="benchmarks",
        peers={name: f"trainer:{mode}" for name, mode in FEEDS.items()},
        reference="RandomBatches",
        check_steps=2,
        seconds=0.2,
    )


def take_turns(key: str, threads: int | None, rounds: int) -> tuple[dict[str, list[float]], float, str]:
    """Return the seconds per step of every turn, the work of other processes meanwhile, and any errors."""
    peer = harness.Peer("benchmarks.trainer", f"both-{key}", threads)
    try:
        peer.read(harness.START_LIMIT)
        watch = quiet.Watch([peer.process.pid])
        return peer.ask(do="turns", rounds=rounds)["turns"], watch.others(), ""
    except harness.PeerError as error:
        return {}, 0.0, str(error)
    finally:
        peer.close()


def measure(threads: int | None, rounds: int) -> tuple[str, str, dict[str, Any]]:
    """Title, text and raw numbers."""
    rows, verdicts, others, raw = [], [], [], {}
    for key in KEYS:
        turns, meanwhile, trouble = take_turns(key, threads, 3 * rounds)
        others.append(meanwhile)
        raw[key] = turns
        if trouble:
            verdicts.append(f"- {key.upper()}: {trouble.strip().splitlines()[-1][:200]}")
            continue
        # Ratios of neighbouring turns, so that an hour in which the machine slows down slows both.
        ratio = statistics.median(b / a for a, b in zip(turns["bare"], turns["trained"], strict=True))
        medians = [results.duration(statistics.median(turns[name])) for name in ("bare", "trained")]
        rows.append([key.upper(), *medians, results.number(ratio, ".3f")])
        verdicts.append(f"- {key.upper()} through Trainer at most {LIMIT:g} of the bare step: {_verdict(ratio, LIMIT)}")
    fed = harness.run(feeds(), rounds=rounds, threads=threads)
    for one in fed:
        shown = f"{results.duration(one.median)}, " if one.rounds else ""
        verdicts.append(f"- a batch of W1 from {one.name} at most 3 µs: {shown}{_verdict(one.median, FEED_LIMIT, '')}")
    busy = quiet.verdict(max([*others, *(one.others for one in fed if one.rounds)]))
    table = results.markdown_table(["workload", "bare compiled step", "through Trainer", "ratio"], rows) if rows else ""
    text = "\n\n".join([*filter(None, [busy, table]), "\n".join(verdicts)])
    return TITLE, text, {**raw, "feed": [dataclasses.asdict(one) for one in fed]}


def _verdict(value: float, limit: float, form: str = "{:.3f}, ") -> str:
    return form.format(value) + ("met" if value <= limit else "missed")
