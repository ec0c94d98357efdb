"""What can be known of a training run: quantities as plain arrays, and rules that turn them into findings.

Nothing here draws; `glassgrad.report` does, from what is computed here, and its pictures are found under both names.
Models may be ours or PyTorch's, and what a finished run is judged by loads nothing of the engine: files are loaded on
first use of their names.
"""

from __future__ import annotations

from glassgrad.base.families import serve

# Names that people type here, from other rooms; nothing of these is loaded before.
_ELSEWHERE = {
    "allow_nonfinite": "glassgrad.engine.reports.nonfinite",
    "plot_activations": "glassgrad.report.activations",
    "plot_gradient_flow": "glassgrad.report.flow", "plot_total_norm": "glassgrad.report.flow",
    "visualize_gradient_flow": "glassgrad.report.flow",
    "plot_gradient_histograms": "glassgrad.report.histograms",
    "plot_statistics": "glassgrad.report.statistics",
}  # fmt: skip  # a table

__getattr__, __dir__ = serve(__name__, __path__, elsewhere=_ELSEWHERE)
