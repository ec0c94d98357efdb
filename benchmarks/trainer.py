"""What `Trainer` costs over the bare compiled step, and what a batch of the in-memory loaders costs.

Both peers of a workload make the same steps of the same batches from the same weights. The bare one calls a compiled
step with batches that were made before; `Trainer` takes them from a `DataLoader`, looks for NaN in them, adds up losses
and times, and writes metrics.jsonl.
"""

from __future__ import annotations

import dataclasses
import importlib
import itertools
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks import harness, quiet, results
from benchmarks.workload import Bar, Workload
from benchmarks.workloads import WORKLOADS

BARE, TRAINER = "bare compiled step", "through Trainer"
LIMIT = 1.03
FEED_LIMIT = 3e-6
FEEDS = {"RandomBatches": "feed-random", "DataLoader": "feed-loader"}
TITLE = "What Trainer costs over the bare compiled step"
KEYS = ("w2", "w3", "w5")


def build(mode: str) -> Callable[[int], float]:
    """The peer's `run`: "bare-w2", "trainer-w2" and so on, "feed-random" or "feed-loader"."""
    kind, _, what = mode.partition("-")
    if kind == "feed":
        return feed(what)
    package = WORKLOADS[what].package
    peer = importlib.import_module(f"{package}.glassgrad_peer")
    if kind == "bare":
        bare: Callable[[int], float] = peer.build("llvm")
        return bare
    return through_trainer(*peer.parts(), importlib.import_module(f"{package}.problem").batches())


def through_trainer(model: Any, optimizer: Any, loss_fn: Any, batches: Any) -> Callable[[int], float]:
    """Steps of `Trainer.fit`; a turn of the harness is a stretch of one long run."""
    import glassgrad as gg
    from glassgrad.train import Callback, MetricsLog, Trainer, TrainingConfig
    from glassgrad.utils.data import DataLoader, TensorDataset

    class Last(Callback):
        """Keeps the loss of the last step."""

        def on_train_end(self, run: Any) -> None:
            self.loss = run.loss

    last = Last()
    inputs, targets = (gg.tensor(part.reshape(-1, *part.shape[2:])) for part in batches)
    loader = DataLoader(TensorDataset(inputs, targets), batch_size=batches[0].shape[1])
    log = MetricsLog(Path(tempfile.mkdtemp()) / "metrics.jsonl")
    config = TrainingConfig(epochs=10**6, progress="none")
    trainer = Trainer(model, optimizer, loss_fn, loader, config=config, callbacks=[last], more_loggers=[log])

    def run(count: int) -> float:
        trainer.fit(until=trainer.loop.step + count)
        return float(last.loss)

    return run


def feed(kind: str) -> Callable[[int], float]:
    """Batches of W1's size, as many as are asked for."""
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


def workload(key: str) -> Workload:
    """One of the workloads, bare and through `Trainer`."""
    whole = WORKLOADS[key]
    return Workload(
        key=f"trainer-{key}",
        title=whole.title,
        package="benchmarks",
        peers={BARE: f"trainer:bare-{key}", TRAINER: f"trainer:trainer-{key}"},
        reference=BARE,
        bars=(Bar(TRAINER, (BARE,), LIMIT),),
        check_steps=whole.check_steps,
        tolerance=whole.tolerance,
        seconds=whole.seconds,
    )


def feeds() -> Workload:
    """The in-memory loaders on batches of W1's size."""
    return Workload(
        key="trainer-feed", title="W1", package="benchmarks",
        peers={name: f"trainer:{mode}" for name, mode in FEEDS.items()}, reference="RandomBatches", check_steps=2,
        seconds=0.2,
    )  # fmt: skip


def measure(threads: int | None, rounds: int) -> tuple[str, str, dict[str, Any]]:
    """Title, text and raw numbers."""
    found = {key: harness.run(workload(key), rounds=2 * rounds, threads=threads) for key in KEYS}
    rows, verdicts = [], []
    for key, outcomes in found.items():
        bare, trained = ({one.name: one for one in outcomes}[name] for name in (BARE, TRAINER))
        ratio = trained.median / bare.median
        rows.append([key.upper(), *map(results.duration, (bare.median, trained.median)), results.number(ratio, ".3f")])
        verdicts.append(results.judge(workload(key).bars[0], outcomes).replace("- ", f"- {key.upper()}: ", 1))
        verdicts += [f"- {one.name}: {results.trouble_line(one)}" for one in outcomes if one.trouble]
    fed = harness.run(feeds(), rounds=rounds, threads=threads)
    for one in fed:
        verdict = "not measured" if not one.rounds else "met" if one.median <= FEED_LIMIT else "missed"
        verdicts.append(f"- a batch of W1 from {one.name} at most 3 µs: {results.duration(one.median)}, {verdict}")
    everything = [one for outcomes in (*found.values(), fed) for one in outcomes]
    busy = quiet.verdict(max(one.others for one in everything if one.rounds))
    table = results.markdown_table(["workload", BARE, TRAINER, "ratio"], rows)
    text = "\n\n".join([*filter(None, [busy]), table, "\n".join(verdicts)])
    return TITLE, text, {**{key: _plain(outcomes) for key, outcomes in found.items()}, "feed": _plain(fed)}


def _plain(outcomes: list[harness.Outcome]) -> list[dict[str, Any]]:
    return [dataclasses.asdict(one) for one in outcomes]
