"""What can be known of a training run: quantities as plain arrays, and rules that turn them into findings.

Nothing here draws or prints; `glassgrad.report` does, from what is computed here. Models may be ours or PyTorch's.
"""

from __future__ import annotations

from .aside import aside
from .checkup import check_up
from .facts import CheckUp, Finding
from .monitor import GradientMonitor
from .norms import GradientNorms, compute_gradient_norms
from .record import MonitorData
from .statistics import BIN_EDGES, Summary, magnitudes, summarise

__all__ = [
    "BIN_EDGES",
    "CheckUp",
    "Finding",
    "GradientMonitor",
    "GradientNorms",
    "MonitorData",
    "Summary",
    "aside",
    "check_up",
    "compute_gradient_norms",
    "magnitudes",
    "summarise",
]
