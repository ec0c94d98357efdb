"""Checks of gradients: against finite differences, against other gradients, and of hand-written derivations."""

from __future__ import annotations

from glassgrad.errors.missing import lister
from glassgrad.verify.check_my_backward import BackwardReport, CheckedLine, check_my_backward
from glassgrad.verify.compare import Comparison, compare
from glassgrad.verify.diagnose import Diagnosis
from glassgrad.verify.gradcheck import gradcheck, gradgradcheck
from glassgrad.verify.verdict import Entry, Row, Verdict

__all__ = [
    "BackwardReport",
    "CheckedLine",
    "Comparison",
    "Diagnosis",
    "Entry",
    "Row",
    "Verdict",
    "check_my_backward",
    "compare",
    "gradcheck",
    "gradgradcheck",
]
__dir__ = lister(__name__)
