"""Training runs: the loop, run directories, configurations, checkpoints, logs and displays."""

from __future__ import annotations

from .callbacks import Callback, RunState
from .loop import Loop, Plan
from .metrics import MetricsLog, read_metrics
from .rundir import RunDirectory
from .signals import StopSignals

__all__ = ["Callback", "Loop", "MetricsLog", "Plan", "RunDirectory", "RunState", "StopSignals", "read_metrics"]
