"""Training runs: `Trainer` for a model of one's own, and the pieces it is made of for a loop of one's own.

Names are loaded when they are first used, so that the tasks of the command line start quickly.
"""

from __future__ import annotations

import importlib
from typing import Any

_HOME = {
    "AverageMeter": "meters", "BestWeights": "stopping", "CSVLogger": "loggers", "Callback": "callbacks",
    "Checkpoint": "keeping", "EarlyStopping": "stopping", "FitResult": "trainer", "Loop": "loop",
    "MetricsLog": "metrics", "Monitoring": "monitoring", "Plan": "loop",
    "RandomState": "randomness", "RunDirectory": "rundir", "RunState": "callbacks", "StopSignals": "signals",
    "TensorBoardLogger": "loggers", "Trainer": "trainer", "TrainingConfig": "training_config",
    "WandbLogger": "loggers", "accuracy": "meters", "find_rate": "rate_finder", "load_weights": "weights",
    "option": "config", "read_metrics": "metrics",
}  # fmt: skip


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
