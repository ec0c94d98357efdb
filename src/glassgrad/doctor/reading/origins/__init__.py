"""From the line where a run has seen a fault back to the line that made it.

In come the findings of a run and the script; out come the findings with the lines of their origin. `chains.py` follows
a value back, `places.py` finds the expressions that a run has passed, `data.py` and `parts.py` find what was made
where, and `blamed.py` is the table of findings.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from glassgrad.doctor.facts import Finding
from glassgrad.doctor.reading.origins.asked import Asked, Origin
from glassgrad.doctor.reading.origins.blamed import lines_of, origins
from glassgrad.doctor.reading.origins.places import Places, Trails
from glassgrad.doctor.reading.program import Program


def traced(
    program: Program, file: str, findings: Iterable[Finding], trails: Trails | None = None
) -> tuple[Finding, ...]:
    """Return findings with the lines that made what they blame, as far as the script tells.

    Args:
        program: the script.
        file: its name in the findings.
        findings: those of a run.
        trails: where the run made its calls; see `Places`.

    Example:
        >>> import ast
        >>> lines = "from torch import nn", "act = nn.Softmax(1)", "loss = nn.NLLLoss()", "error = loss(act(x), y)"
        >>> found = Finding("no logarithm in nll_loss", "error", "softmax at a.py:4 makes them", "", "a.py:4")
        >>> traced(Program(ast.parse(chr(10).join(lines))), "a.py", [found])[0].what
        'softmax at a.py:4 makes them (Softmax is made at a.py:2)'
    """
    places = Places(program, file, trails or {})
    return tuple(_traced(one, places) for one in findings)


def _traced(finding: Finding, places: Places) -> Finding:
    lines = lines_of(f"{finding.where} {finding.what}", places.file)
    try:
        found = origins(Asked(finding, places, lines)) if lines or not finding.where else []
    except RecursionError:  # an expression of a thousand terms
        return finding
    return _told(finding, found, places.file) if found else finding


def _told(finding: Finding, found: list[Origin], file: str) -> Finding:
    """Return a finding that says what was made where."""
    said: dict[str, list[str]] = {}
    for one in found:
        said.setdefault(one.what, []).append(f"{file}:{one.line}")
    text = ", ".join(f"{what} at {' and '.join(lines)}" for what, lines in said.items())
    seen = "" if not finding.where or finding.where in finding.what else f"seen at {finding.where}; "
    where = f"{file}:{found[0].line}" if found[0].certain else finding.where
    return replace(finding, what=f"{finding.what} ({seen}{text})", where=where)


__all__ = ["traced"]
