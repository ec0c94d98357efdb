"""Pictures and texts from what `glassgrad.doctor` has recorded; nothing is computed here that is not drawn."""

from __future__ import annotations

from glassgrad.report.activations import plot_activations
from glassgrad.report.checkup import check_up_lines, debug_training
from glassgrad.report.flow import plot_gradient_flow, plot_total_norm
from glassgrad.report.histograms import plot_gradient_histograms

__all__ = [
    "check_up_lines",
    "debug_training",
    "plot_activations",
    "plot_gradient_flow",
    "plot_gradient_histograms",
    "plot_total_norm",
]
