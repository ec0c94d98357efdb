"""Figures and a small chart, shared by the lessons."""

from __future__ import annotations

import importlib
import itertools
import math
import os
import sys
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path

__all__ = ["chart", "figure"]

COLOURS = ("#2f6f9f", "#cb6e17", "#3f9142", "#8a4fa3", "#b3413b")
WIDTH, HEIGHT, LEFT, BOTTOM, MARGIN = 620, 260, 72, 40, 16
LETTER, LINE, MOST = 7, 14, 7  # the width of a letter, the height of a line, and the most ticks of an axis


def figure(name: str, svg: str) -> None:
    """Show a figure: in a notebook below the cell, elsewhere as a file in the folder that LESSON_FIGURES names.

    Without such a folder, the figure is not stored.

    Example:
        >>> from glassgrad.lessons import chart, figure
        >>> figure("loss", chart({"loss": [(0, 2.0), (1, 1.0)]}, x="step", y="loss"))
    """
    folder = os.environ.get("LESSON_FIGURES")
    if folder:
        Path(folder).mkdir(parents=True, exist_ok=True)
        (Path(folder) / f"{name}.svg").write_text(svg, encoding="utf-8", newline="\n")
        sys.stdout.write(f"[figure {name}]\n")  # the place of the figure in what the lesson prints
        return
    ipython = sys.modules.get("IPython")
    if ipython is not None and ipython.get_ipython() is not None:
        shown = importlib.import_module("IPython.display")
        shown.display(shown.SVG(svg))


def chart(
    series: Mapping[str, Sequence[tuple[float, float]]], *, x: str, y: str, log_x: bool = False, log_y: bool = False
) -> str:
    """Draw lines through points, one colour each, with its name at its end, as SVG.

    Example:
        >>> from glassgrad.lessons import chart
        >>> chart({"loss": [(0, 2.0), (1, 1.0)]}, x="step", y="loss").startswith("<svg")
        True
    """
    shown = {name: [p for p in points if all(map(math.isfinite, p))] for name, points in series.items()}
    right = WIDTH - MARGIN - max(map(len, shown), default=0) * LETTER
    across = _Axis([p[0] for points in shown.values() for p in points], LEFT, right, log_x)
    up = _Axis([p[1] for points in shown.values() for p in points], HEIGHT - BOTTOM, MARGIN, log_y)
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{escape(y)} over {escape(x)}"',
        f'width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}"',
        'font-family="ui-monospace,Menlo,Consolas,monospace" font-size="11" fill="#52606d">',
        f'<rect x="{LEFT}" y="{MARGIN}" width="{right - LEFT:g}" height="{HEIGHT - BOTTOM - MARGIN}"',
        'fill="none" stroke="#cbd2d9"/>',
    ]
    out += [
        f'<text x="{at:.1f}" y="{HEIGHT - BOTTOM + 14}" text-anchor="middle">{t}</text>' for at, t in across.ticks()
    ]
    out += [f'<text x="{LEFT - 5}" y="{at + 4:.1f}" text-anchor="end">{t}</text>' for at, t in up.ticks()]
    out += [f'<text x="{(LEFT + right) / 2:g}" y="{HEIGHT - 8}" text-anchor="middle">{escape(x)}</text>']
    out += [
        f'<text x="14" y="{HEIGHT / 2}" text-anchor="middle" transform="rotate(-90 14 {HEIGHT / 2})">{escape(y)}</text>'
    ]
    ends = _apart([up.place(points[-1][1]) if points else float(MARGIN) for points in shown.values()])
    for i, ((name, points), end) in enumerate(zip(shown.items(), ends, strict=True)):
        colour = COLOURS[i % len(COLOURS)]
        line = " ".join(f"{across.place(a):.1f},{up.place(b):.1f}" for a, b in points)
        out += [f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="1.8"/>']
        out += [f'<text x="{right + 6:g}" y="{end + 4:.1f}" fill="{colour}">{escape(name)}</text>']
    return "\n".join([*out, "</svg>\n"])


def _apart(heights: Sequence[float]) -> list[float]:
    """Return heights of names, moved so that none is over another, and all are in the picture."""
    order = sorted(range(len(heights)), key=lambda i: heights[i])
    placed = list(heights)
    for before, after in itertools.pairwise(order):
        placed[after] = max(placed[after], placed[before] + LINE)
    lowest = float(HEIGHT - BOTTOM)
    for i in reversed(order):
        placed[i] = lowest = min(placed[i], lowest)
        lowest -= LINE
    return placed


class _Axis:
    """Maps numbers to pixels, linearly or by their logarithm."""

    def __init__(self, numbers: Sequence[float], start: float, end: float, log: bool) -> None:
        self.log, self.start, self.end = log, start, end
        kept = [math.log10(v) for v in numbers if v > 0] if log else list(numbers)
        self.low, self.high = min(kept), max(kept)
        if self.low == self.high:
            self.high = self.low + 1

    def place(self, number: float) -> float:
        return self._at(math.log10(max(number, 1e-300)) if self.log else number)

    def _at(self, value: float) -> float:
        share = (value - self.low) / (self.high - self.low)
        return self.start + min(max(share, 0.0), 1.0) * (self.end - self.start)

    def ticks(self) -> list[tuple[float, str]]:
        """Return places and numbers: round ones, on a logarithmic axis powers of ten if there are three."""
        across = self.high - self.low
        logarithms = self.log and math.floor(self.high) - math.ceil(self.low) >= 2
        if self.log and not logarithms:
            values = [self.low + across * i / 3 for i in range(4)]
            return [(self._at(value), f"{float(f'{10**value:.2g}'):g}") for value in values]
        steps = (10.0**k * m for k in range(-12, 13) for m in (1, 2, 5) if k >= 0 or not logarithms)
        step = next(step for step in steps if across / step < MOST)
        first = math.ceil(self.low / step - 1e-9)
        values = [i * step for i in range(first, math.floor(self.high / step + 1e-9) + 1)]
        return [(self._at(value), f"{10**value:g}" if logarithms else f"{round(value, 12):g}") for value in values]
