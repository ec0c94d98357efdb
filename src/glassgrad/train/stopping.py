"""Common callbacks: stop when nothing improves, keep the best weights."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from glassgrad import errors
from glassgrad.train.callbacks import Callback, RunState
from glassgrad.train.kept.rundir import BEST
from glassgrad.train.kept.weights import write_weights


def measured(monitor: str, measures: Mapping[str, float]) -> float:
    """Return a measure by its name. Raises `errors.InputError` for an unknown one."""
    if monitor not in measures:
        raise errors.FIT_NO_SUCH_MEASURE(given=monitor, known=", ".join(measures))
    return measures[monitor]


class Watched:
    """A validation measure, and whether higher or lower is better."""

    def __init__(self, monitor: str, higher: bool) -> None:
        self.monitor, self.higher = monitor, higher

    def of(self, measures: Mapping[str, float]) -> float:
        """Return the measure, negated if higher is better. Raises like `measured`."""
        value = measured(self.monitor, measures)
        return math.inf if math.isnan(value) else -value if self.higher else value


class EarlyStopping(Callback):
    """Ends a run when a measure has not improved for `patience` validations.

    Your own loop can call `update`.

    Args:
        patience: validations without improvement after which to stop.
        monitor: the measure: "loss" or the name of a metric.
        min_delta: the smallest change that counts as an improvement.
        higher: whether larger is better.

    Example:
        >>> stopping = EarlyStopping(patience=2)
        >>> [stopping.update(loss) for loss in (1.0, 0.8, 0.9, 0.8)]
        [False, False, False, True]
    """

    def __init__(self, patience: int = 5, monitor: str = "loss", min_delta: float = 0.0, higher: bool = False) -> None:
        self.patience, self.min_delta = patience, min_delta
        self.watched = Watched(monitor, higher)
        self.best = math.inf
        self.waited = 0

    def update(self, value: float) -> bool:
        """Add a new value; return whether to stop."""
        return self._take(self.watched.of({self.watched.monitor: float(value)}))

    def _take(self, value: float) -> bool:
        if value < self.best - self.min_delta:
            self.best, self.waited = value, 0
        else:
            self.waited += 1
        return self.waited >= self.patience

    def on_validation_end(self, run: RunState, measures: Mapping[str, float]) -> None:
        """Add the new measure."""
        if self._take(self.watched.of(measures)):
            name = self.watched.monitor
            run.stop(f"{name} has not improved for {self.waited} validations")

    def state_dict(self) -> dict[str, Any]:
        """Return the best value and how long ago it occurred."""
        return {"best": None if math.isinf(self.best) else self.best, "waited": self.waited}

    def load_state_dict(self, state: dict[str, Any], /) -> None:
        self.best, self.waited = math.inf if state["best"] is None else state["best"], state["waited"]


class BestWeights(Callback):
    """Keeps the weights of the best validations in the run's directory: best/step-00001200.safetensors and so on.

    Args:
        count: how many files to keep.
        monitor: the measure that decides: "loss" or the name of a metric.
        higher: whether larger is better.

    Attributes:
        kept: (value, step) of the kept weights, the best first.

    Example:
        >>> from glassgrad.train import BestWeights
        >>> keep = BestWeights(count=3, monitor="accuracy", higher=True)
    """

    def __init__(self, count: int = 1, monitor: str = "loss", higher: bool = False) -> None:
        self.count = count
        self.watched = Watched(monitor, higher)
        self._ranking: list[tuple[float, int]] = []

    @property
    def kept(self) -> list[tuple[float, int]]:
        sign = -1 if self.watched.higher else 1
        return [(sign * value, step) for value, step in self._ranking]

    @staticmethod
    def path(directory: Path, step: int) -> Path:
        """Return the path of the weights of a step."""
        return directory / BEST / f"step-{step:08d}.safetensors"

    def on_train_start(self, run: RunState) -> None:
        """Remove files newer than the checkpoint from which the run resumes; they will be written again."""
        if run.directory is None:
            return
        known = {self.path(run.directory, step) for _, step in self._ranking}
        for path in (run.directory / BEST).glob("step-*.safetensors"):
            if path not in known:
                path.unlink()

    def on_validation_end(self, run: RunState, measures: Mapping[str, float]) -> None:
        """Write the weights if they are among the best, and remove files that are not any more."""
        value = self.watched.of(measures)
        entry = (value, run.step)
        if math.isinf(value) or entry in self._ranking:
            return
        ranking = sorted([*self._ranking, entry])[: self.count]
        if entry not in ranking:
            return
        if run.directory is not None and run.task.learner is not None:
            learner = run.task.learner
            weights = getattr(learner, "best_weights", learner.weights)()
            path = self.path(run.directory, run.step)
            with run.saving():
                path.parent.mkdir(exist_ok=True)
                write_weights(path, weights, {"step": run.step, "measures": dict(measures)})
                for _, step in set(self._ranking) - set(ranking):
                    self.path(run.directory, step).unlink(missing_ok=True)
        self._ranking = ranking

    def state_dict(self) -> dict[str, Any]:
        """Return the ranking."""
        return {"ranking": [list(entry) for entry in self._ranking]}

    def load_state_dict(self, state: dict[str, Any], /) -> None:
        self._ranking = [(value, step) for value, step in state["ranking"]]


__all__ = ["BestWeights", "EarlyStopping"]
