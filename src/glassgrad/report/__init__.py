"""Pictures and texts from records of `glassgrad.doctor`; this package only draws."""

from __future__ import annotations

from glassgrad.errors.missing import lister
from glassgrad.report.activations import plot_activations
from glassgrad.report.checkup import check_up_lines, debug_training
from glassgrad.report.flow import plot_gradient_flow, plot_total_norm, visualize_gradient_flow
from glassgrad.report.histograms import plot_gradient_histograms
from glassgrad.report.statistics import plot_statistics

__all__ = [
    "check_up_lines",
    "debug_training",
    "plot_activations",
    "plot_gradient_flow",
    "plot_gradient_histograms",
    "plot_statistics",
    "plot_total_norm",
    "visualize_gradient_flow",
]
__dir__ = lister(__name__)
