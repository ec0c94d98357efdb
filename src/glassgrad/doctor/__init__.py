"""What can be known of a training run: quantities as plain arrays, and rules that turn them into findings.

Nothing here draws or prints; `glassgrad.report` does, from what is computed here. Models may be ours or PyTorch's.
"""

from __future__ import annotations

from glassgrad.doctor.aside import aside
from glassgrad.doctor.checkup import check_up
from glassgrad.doctor.data_examination import DataExamination, examine_data
from glassgrad.doctor.examination import Examination, examine
from glassgrad.doctor.facts import CheckUp, Finding
from glassgrad.doctor.first_difference import Bisection, Difference, bisect
from glassgrad.doctor.kept_memory import Kept, Memory, memory
from glassgrad.doctor.monitor import GradientMonitor
from glassgrad.doctor.nan_origin import nan_origin
from glassgrad.doctor.norms import GradientNorms, compute_gradient_norms
from glassgrad.doctor.record import MonitorData
from glassgrad.doctor.run import Run
from glassgrad.doctor.statistics import BIN_EDGES, Summary, magnitudes, summarise
from glassgrad.doctor.watching import Watch, watch
from glassgrad.engine.nonfinite import allow_nonfinite
from glassgrad.errors.missing import lister

__all__ = [
    "BIN_EDGES",
    "Bisection",
    "CheckUp",
    "DataExamination",
    "Difference",
    "Examination",
    "Finding",
    "GradientMonitor",
    "GradientNorms",
    "Kept",
    "Memory",
    "MonitorData",
    "Run",
    "Summary",
    "Watch",
    "allow_nonfinite",
    "aside",
    "bisect",
    "check_up",
    "compute_gradient_norms",
    "examine",
    "examine_data",
    "magnitudes",
    "memory",
    "nan_origin",
    "summarise",
    "watch",
]
__dir__ = lister(__name__)
