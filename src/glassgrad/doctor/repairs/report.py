"""The result of a search as a finding, and as lines below the findings."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from glassgrad.doctor.deeper.choice import experiments_for
from glassgrad.doctor.facts import Finding
from glassgrad.doctor.reading import suspects
from glassgrad.doctor.repairs.search import Repair, Search, search

TITLE = "a change helps"
ADVICE = (
    "Read the line: it is the fault, or the change makes up for one elsewhere. The change was found by trying, so "
    "check that it means what you meant."
)


def finding_of(found: Search, path: str | Path) -> Finding | None:
    """Return what a search says; None if no change helped."""
    if not found.repairs:
        return None
    best, *others = found.repairs
    name = Path(path).name
    figure = best.figure.name if not best.figure.own else f"{best.figure.name!r} of the script"
    values = " and ".join(f"{one:.4g}" for one in best.after)
    what = (
        f"with `{_short(best)}` at {name}:{best.edit.line} instead of `{textwrap.shorten(best.old, 70)}` the {figure} "
        f"is {values} with two seeds, and not {best.figure.value:.4g}: {best.edit.means}"
    )
    alike = [one for one in others if one.gain >= best.gain / 2 and one.edit.line != best.edit.line]
    if alike:
        told = ", ".join(f"`{_short(one)}` at {name}:{one.edit.line}" for one in alike)
        what += f". As good: {told}"
    severity = "info" if best.edit.tunes else "warning"  # a better choice is no fault
    return Finding(TITLE, severity, what, ADVICE, f"{name}:{best.edit.line}", remedy=best.edit.new)


def changes(
    path: str | Path,
    arguments: Sequence[str],
    findings: Sequence[Finding],
    seconds: float,
    tell: Callable[[str], object] = str,
) -> Search | None:
    """Try changes of a script if none of its findings names a cause, and tell so before; None if one does."""
    if not experiments_for(findings):
        return None
    tell(f"no rule names a cause: trying changes of {path} for {seconds:.0f} s at most; Ctrl-C ends it")
    return search(str(path), arguments, seconds)


def _short(one: Repair) -> str:
    return textwrap.shorten(one.edit.new, 90, placeholder=" ...") or "(left out)"


def lines(found: Search | None) -> Iterator[str]:
    """Yield what was tried."""
    if found is None:
        return
    if found.trouble:
        yield f"changes      none tried: {found.trouble}"
        return
    helped = f"{len(found.repairs)} of them help" if found.repairs else "none of them helps"
    yield f"changes      {found.tried} of {found.known} changes of the script tried, each in its own run: {helped}"


def with_repairs(findings: Sequence[Finding], found: Search, path: str | Path) -> tuple[Finding, ...]:
    """Return findings with the one of a search: before symptoms that it may explain, behind them if it is a choice.

    Lines worth a look follow a change that helps: both say where the cause may stand, and a symptom does not.
    """
    one = finding_of(found, path)
    if one is None:
        return tuple(findings)
    if one.severity == "info":
        return (*findings, one)
    return (one, *sorted(findings, key=lambda other: other.rule != suspects.TITLE))
