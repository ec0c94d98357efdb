"""A watched loop shown as its findings: printed, in the interpreter and in a notebook."""

from __future__ import annotations

from typing import Any


class Shown:
    """Shows a watch as the report of its findings so far."""

    def __str__(self) -> str:
        from glassgrad.doctor.reports.wording import lines

        watch: Any = self
        return "\n".join(lines(watch.findings, watch.calls.steps, len(watch._samples), watch._unseen))

    def __repr__(self) -> str:
        watch: Any = self
        return f"watch of {type(watch.model).__name__}\n{self}"

    def _repr_html_(self) -> str:
        from glassgrad.engine.reports import notebook

        watch: Any = self
        return notebook.findings(repr(self).splitlines()[:2], watch.findings)
