"""Diagnose training runs: quantities as plain arrays, and rules that turn them into findings.

Nothing here draws; `glassgrad.report` does, from what is computed here, and its pictures are found under both names.
Models may be ours or PyTorch's, and the judgement of a finished run loads nothing of the engine: files are loaded on
first use of their names.

The files beside this one are what users call. `observers/` listens to calls, backward passes and steps; `quantities/`
measures, `rules/` judges, `reports/` words the findings; `nans/` finds the origin of a NaN, `bisection/` the first
difference of two runs, `memory_use/` what is kept for a backward pass; `graphs/` and `restoring/` serve them all.
"""

from __future__ import annotations

from glassgrad.base.families import serve

# Names that users type here, from other packages; each file is loaded on first use.
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
