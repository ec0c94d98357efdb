"""Suspects about models."""

from __future__ import annotations

from tests.doctor.reading.case import Case

CASES = (
    Case(
        "view of several axes",
        """
def images(x):
    return x.view(len(x), 3, 8, 8)  #!
""",
        (("x.view(len(x), 3, 8, 8)", "x.permute(0, 3, 1, 2)"),),
    ),
)
