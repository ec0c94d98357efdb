"""Training runs: `Trainer` for a model of one's own, and the pieces it is made of for a loop of one's own.

Names are loaded when they are first used, so that the tasks of the command line start quickly.
"""

from __future__ import annotations

import importlib
from typing import Any

_HOME = {
    "AverageMeter": "meters", "BestWeights": "stopping", "CSVLogger": "kept.loggers", "Callback": "callbacks",
    "Checkpoint": "kept.keeping", "EarlyStopping": "stopping", "FitResult": "trainer", "Loop": "loop",
    "MetricsLog": "kept.metrics", "Monitoring": "show.monitoring", "Plan": "loop",
    "RandomState": "kept.randomness", "RunDirectory": "kept.rundir", "RunState": "callbacks", "StopSignals": "signals",
    "TensorBoardLogger": "kept.loggers", "Trainer": "trainer", "TrainingConfig": "training_config",
    "WandbLogger": "kept.loggers", "accuracy": "meters", "find_rate": "rate_finder", "load_weights": "kept.weights",
    "option": "config", "read_metrics": "kept.metrics",
}  # fmt: skip  # a table


def __getattr__(name: str) -> Any:
    home = _HOME.get(name)
    if home is None:
        from glassgrad.errors.missing import missing

        raise missing("glassgrad.train", name, [*_HOME], {})
    value = globals()[name] = getattr(importlib.import_module(f"glassgrad.train.{home}"), name)
    return value


def __dir__() -> list[str]:
    return sorted(__all__)


__all__ = [*_HOME]  # noqa: PLE0604 - names from the table
