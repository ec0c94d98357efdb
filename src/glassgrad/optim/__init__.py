"""Optimizers and schedules with PyTorch's names; each file reads like its paper and is loaded when it is first used."""

from __future__ import annotations

import importlib
from typing import Any

_HOME = {
    "ASGD": "asgd", "Adadelta": "adadelta", "Adafactor": "adafactor", "Adagrad": "adagrad", "Adam": "adam",
    "AdamW": "adam", "Adamax": "adamax", "EMA": "ema", "GradientAccumulator": "accumulate", "LBFGS": "lbfgs",
    "Lion": "lion", "Muon": "muon", "NAdam": "nadam", "Optimizer": "optimizer", "RAdam": "radam", "RMSprop": "rmsprop",
    "Rprop": "rprop", "SGD": "sgd", "SparseAdam": "sparse_adam",
}  # fmt: skip  # a table
_MODULES = ("lr_scheduler", "swa_utils")


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"glassgrad.optim.{name}")
    home = _HOME.get(name)
    if home is None:
        from glassgrad.errors.missing import missing

        raise missing("glassgrad.optim", name, [*_HOME, *_MODULES])
    value = globals()[name] = getattr(importlib.import_module(f"glassgrad.optim.{home}"), name)
    return value


def __dir__() -> list[str]:
    return sorted(__all__)


__all__ = [*_HOME, *_MODULES]  # noqa: PLE0604 - names from the table
