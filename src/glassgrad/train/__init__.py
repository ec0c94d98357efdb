"""Training runs: the loop, run directories, configurations, checkpoints, logs and displays."""

from __future__ import annotations

from .metrics import MetricsLog, read_metrics
from .rundir import RunDirectory
from .signals import StopSignals
from .trainer import Plan, Trainer

__all__ = ["MetricsLog", "Plan", "RunDirectory", "StopSignals", "Trainer", "read_metrics"]
