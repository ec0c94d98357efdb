"""The result of a check of gradients: one verdict, its worst entry, and a line per input."""

from __future__ import annotations

from dataclasses import dataclass

RIGHT = "right"
WRONG = "wrong"
NOISE = "float32 noise"
KINK = "kink here"
NONDETERMINISTIC = "nondeterministic"

SMALL = 1e-6  # values below this count as 0, since differences are not more accurate


def relative_error(analytic: float, numeric: float) -> float:
    """|a - n| / (|a| + |n| + eps): 0 for equal numbers, 1 for a wrong sign or a missing gradient."""
    return abs(analytic - numeric) / (abs(analytic) + abs(numeric) + SMALL)


@dataclass(frozen=True)
class Entry:
    """One entry of a Jacobian, from the rule and from differences.

    Attributes:
        name: the varied argument or parameter.
        variable: its number among the varied ones, arguments first.
        position: the index in the variable; None if it was varied along a random direction.
        output: the element of the results, as (result, position); None if the results were summed with
            random weights.
        analytic, numeric: the derivative by the rule and by central differences. For the verdict
            "nondeterministic", the values of two runs.
        left, right: the slopes on either side.
        status: the verdict about this entry.
        note: a further remark.

    Example:
        >>> import numpy as np
        >>> from glassgrad.verify import gradcheck
        >>> worst = gradcheck(lambda x: x.sin(), np.array([0.5])).worst
        >>> worst.position, round(worst.analytic, 4)
        ((0,), 0.8776)
    """

    name: str
    variable: int
    position: tuple[int, ...] | None
    output: tuple[int, tuple[int, ...]] | None
    analytic: float
    numeric: float
    left: float = float("nan")
    right: float = float("nan")
    status: str = RIGHT
    note: str = ""

    @property
    def absolute(self) -> float:
        """|analytic - numeric|."""
        return abs(self.analytic - self.numeric)

    @property
    def relative(self) -> float:
        """|analytic - numeric| / (|analytic| + |numeric| + 1e-6)."""
        return relative_error(self.analytic, self.numeric)

    @property
    def place(self) -> str:
        """The place of the entry in words."""
        where = self.name if self.position is None else f"{self.name}{_index(self.position)}"
        if self.position is None:
            where += " along a random direction"
        if self.output is not None and (self.output[0] or self.output[1]):
            where += f", result {self.output[0]}{_index(self.output[1])}"
        return where


def _index(position: tuple[int, ...]) -> str:
    return f"[{', '.join(map(str, position))}]" if position else ""


@dataclass(frozen=True)
class Row:
    """The comparison of one argument's or parameter's gradient: number of entries, and largest errors.

    Example:
        >>> import numpy as np
        >>> from glassgrad.verify import gradcheck
        >>> row = gradcheck(lambda x: x.sin(), np.array([0.5, 1.0])).rows[0]
        >>> row.name, row.shape
        ('x', (2,))
    """

    name: str
    shape: tuple[int, ...]
    checked: int
    disagree: int
    relative: float
    absolute: float

    def __str__(self) -> str:
        of = f"{self.checked} entries" if self.checked != 1 else "1 entry"
        errors = f"relative {self.relative:<9.2e} absolute {self.absolute:.2e}"
        disagree = f"   {self.disagree} disagree" if self.disagree else ""
        return f"{self.name:<24} {self.shape!s:<16} {of:>12}   {errors}{disagree}"


@dataclass(frozen=True)
class Verdict:
    """The outcome of `gradcheck`. True for "right" and for "float32 noise".

    Attributes:
        kind: "right", "wrong", "float32 noise", "kink here" or "nondeterministic".
        worst: the entry that decided it (for a right gradient, the one with the largest error).
        rows: one line per argument and parameter.
        why: the reason for the verdict.
        subject: the name of the checked function.

    Example:
        >>> import numpy as np
        >>> from glassgrad.verify import gradcheck
        >>> verdict = gradcheck(lambda x: x.sin(), np.array([0.5]))
        >>> verdict.kind, bool(verdict), [row.name for row in verdict.rows]
        ('right', True, ['x'])
    """

    kind: str
    worst: Entry | None
    rows: tuple[Row, ...] = ()
    why: str = ""
    subject: str = "gradcheck"

    def __bool__(self) -> bool:
        return self.kind in {RIGHT, NOISE}

    def __str__(self) -> str:
        lines = [f"{self.subject}: {self.kind}" + (f" - {self.why}" if self.why else "")]
        if self.worst is not None:
            lines += _describe(self.worst, self.kind)
        lines += [f"  {row}" for row in self.rows]
        return "\n".join(lines)


def _describe(entry: Entry, kind: str) -> list[str]:
    if kind == NONDETERMINISTIC:
        return [
            f"  differs first at   {entry.place}",
            f"  one run, another   {entry.analytic:.10g}, {entry.numeric:.10g}",
        ]
    lines = [
        f"  {'largest error at' if kind == RIGHT else 'worst entry':<18} {entry.place}",
        f"  analytic           {entry.analytic:.10g}",
        f"  numeric            {entry.numeric:.10g}",
    ]
    if kind != RIGHT and abs(entry.left - entry.right) > 1e-3 * (abs(entry.left) + abs(entry.right)):
        lines[-1] += f"   (from the left {entry.left:.6g}, from the right {entry.right:.6g})"
    lines.append(f"  error              relative {entry.relative:.2e}, absolute {entry.absolute:.2e}")
    if entry.note:
        lines.append(f"  note               {entry.note}")
    return lines


__all__ = ["KINK", "NOISE", "NONDETERMINISTIC", "RIGHT", "WRONG", "Entry", "Row", "Verdict", "relative_error"]
