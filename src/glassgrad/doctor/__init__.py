"""Diagnose training runs: quantities as plain arrays, and rules that turn them into findings.

Nothing here draws; `glassgrad.report` draws the pictures from quantities computed here, under the same names. Models
may be ours or PyTorch's. Judging a finished run does not import the engine: files are imported on first use of their
names.

The files beside this one hold the names that users call. `observers/` listens to calls, backward passes and steps;
`quantities/` measures, `rules/` judges, `reports/` words the findings; `nans/` finds the origin of a NaN, `bisection/`
the first difference between two runs, `memory_use/` what a backward pass keeps; all use `graphs/` and `restoring/`.
"""

from __future__ import annotations

from glassgrad.base.families import serve

# Names from other packages that users find here; each file is loaded on first use.
_ELSEWHERE = {
    "allow_nonfinite": "glassgrad.engine.reports.nonfinite",
    "plot_activations": "glassgrad.report.activations",
    "plot_gradient_flow": "glassgrad.report.flow",
    "plot_total_norm": "glassgrad.report.flow",
    "visualize_gradient_flow": "glassgrad.report.flow",
    "plot_gradient_histograms": "glassgrad.report.histograms",
    "plot_statistics": "glassgrad.report.statistics",
}

_ROOMS = ("bisection", "memory_use", "nans", "quantities", "restoring")

__getattr__, __dir__ = serve(__name__, __path__, inner=_ROOMS, elsewhere=_ELSEWHERE)
