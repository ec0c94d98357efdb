"""Draw numbers for the lessons: tables of cells, and surfaces with paths on them, as small SVG files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from html import escape
from typing import Any

import numpy as np

from glassgrad.lessons.figures import COLOURS

__all__ = ["linear_gradient", "pull_and_push", "surface"]

Array = np.ndarray
Point = tuple[float, float]

INK, LINE, FONT = "#52606d", "#cbd2d9", 'font-family="ui-monospace,Menlo,Consolas,monospace" font-size="11"'
WARM, COLD, PAPER = (203, 110, 23), (47, 111, 159), (255, 255, 255)
_GRID = (44, 28)  # cells in which contour lines are searched


def svg(width: float, height: float, label: str, parts: Sequence[str]) -> str:
    """Return a picture with a background, so that it is readable on dark pages."""
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{escape(label)}" width="{width:g}" '
        f'height="{height:g}" viewBox="0 0 {width:g} {height:g}" {FONT} fill="{INK}">'
    )
    return "\n".join([head, f'<rect width="{width:g}" height="{height:g}" fill="#ffffff"/>', *parts, "</svg>\n"])


def words(x: float, y: float, text: str, anchor: str = "start", fill: str = INK) -> str:
    """Return a line of text."""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{fill}">{escape(text)}</text>'


def colour(number: float, largest: float) -> str:
    """Return a colour between blue for -largest, white for 0 and orange for largest."""
    share = min(abs(number) / largest, 1.0) ** 0.7 if largest else 0.0
    end = WARM if number > 0 else COLD
    return "#" + "".join(f"{round(p + share * (e - p)):02x}" for p, e in zip(PAPER, end, strict=True))


def cells(
    numbers: Array,
    x: float,
    y: float,
    *,
    width: float = 44,
    height: float = 22,
    largest: float | None = None,
    form: str = "{:.1f}",
    marked: Sequence[tuple[int, int]] = (),
) -> Iterator[str]:
    """Yield a table: one cell for each number, coloured by it, some with a frame."""
    top = float(np.abs(numbers).max()) if largest is None else largest
    for row, line in enumerate(numbers):
        for column, number in enumerate(line):
            left, above = x + column * width, y + row * height
            yield (
                f'<rect x="{left:g}" y="{above:g}" width="{width:g}" height="{height:g}" '
                f'fill="{colour(number, top)}" stroke="{LINE}"/>'
            )
            if form:
                yield words(left + width / 2, above + height / 2 + 4, form.format(number + 0.0), "middle", "#1f2933")
    for row, column in marked:
        yield (
            f'<rect x="{x + column * width + 1:g}" y="{y + row * height + 1:g}" width="{width - 2:g}" '
            f'height="{height - 2:g}" fill="none" stroke="#1f2933" stroke-width="2"/>'
        )


# --- surfaces -------------------------------------------------------------------------------------------------------


def surface(
    height: Callable[[Array, Array], Array],
    box: tuple[float, float, float, float],
    paths: Mapping[str, Sequence[Point]],
    levels: Sequence[float],
    *,
    size: tuple[int, int] = (560, 300),
) -> str:
    """Draw contour lines, and on them paths of steps, one colour each.

    Args:
        height: a function of two arrays.
        box: left, right, bottom and top of the visible area.
        paths: points by name; all begin at the same place.
        levels: the heights of the lines.
        size: of the picture.
    """
    left, right, low, high = box
    wide, tall = size

    def place(x: float, y: float) -> str:
        return f"{(x - left) / (right - left) * wide:.1f} {(high - y) / (high - low) * tall:.1f}"

    xs, ys = np.linspace(left, right, _GRID[0] + 1), np.linspace(low, high, _GRID[1] + 1)
    z = height(*np.meshgrid(xs, ys))
    parts = []
    for level in levels:
        lines = " ".join(f"M{place(*a)}L{place(*b)}" for a, b in _crossings(xs, ys, z - level))
        parts.append(f'<path d="{lines}" fill="none" stroke="{LINE}"/>')
    for number, (name, points) in enumerate(paths.items()):
        ink = COLOURS[number % len(COLOURS)]
        seen = [place(*p) for p in points if left <= p[0] <= right and low <= p[1] <= high]
        parts.append(f'<path d="M{" L".join(seen)}" fill="none" stroke="{ink}" stroke-width="1.6"/>')
        dots = " ".join(f"M{at}h0" for at in seen)
        parts.append(f'<path d="{dots}" stroke="{ink}" stroke-width="4.5" stroke-linecap="round"/>')
        parts.append(words(wide - 12, 20 + 15 * number, name, "end", ink))
    begin = place(*next(iter(paths.values()))[0]).split()
    parts.append(f'<circle cx="{begin[0]}" cy="{begin[1]}" r="5" fill="none" stroke="#1f2933" stroke-width="1.6"/>')
    return svg(wide, tall, f"paths of {', '.join(paths)} on a surface", parts)


def _crossings(xs: Array, ys: Array, z: Array) -> Iterator[tuple[Point, Point]]:
    """Yield the pieces of the line z = 0: within each cell, from edge to edge (marching squares)."""
    for i in range(len(ys) - 1):
        for j in range(len(xs) - 1):
            corners = [(i, j), (i, j + 1), (i + 1, j + 1), (i + 1, j)]
            found: list[Point] = []
            for (a, b), (c, d) in zip(corners, [*corners[1:], corners[0]], strict=True):
                if (z[a, b] > 0) != (z[c, d] > 0):
                    share = z[a, b] / (z[a, b] - z[c, d])
                    found.append((xs[b] + share * (xs[d] - xs[b]), ys[a] + share * (ys[c] - ys[a])))
            yield from zip(found[::2], found[1::2], strict=True)


# --- tables ---------------------------------------------------------------------------------------------------------


def linear_gradient(x: Array, w: Array, dy: Array, entry: tuple[int, int]) -> str:
    """Draw the gradients of `y = x @ w + b` cell by cell; one entry of `dw` is framed with its row and column.

    Args:
        x, w: the input, rows of samples, and the weights; small whole numbers are the most readable.
        dy: the gradient of the loss for every entry of y.
        entry: row and column of `dw`.
    """
    row, column = entry
    dw, dx, db = x.T @ dy, dy @ w.T, dy.sum(0, keepdims=True)
    samples = range(len(x))
    wide, tall = 32.0, 22.0
    largest = max(float(np.abs(a).max()) for a in (dw, dx, db))
    parts: list[str] = []

    def table(name: str, numbers: Array, left: float, top: float, marked: Sequence[tuple[int, int]] = ()) -> float:
        drawn = cells(numbers, left, top, width=wide, height=tall, largest=largest, form="{:g}", marked=marked)
        parts.extend([words(left, top - 6, name), *drawn])
        return left + wide * len(numbers[0])

    def sign(left: float, top: float, text: str) -> float:
        parts.append(words(left + 15, top, text, "middle"))
        return left + 30

    def product(names: Sequence[str], numbers: Sequence[Array], top: float, marked: Sequence[Any]) -> float:
        middle = top + tall * max(len(a) for a in numbers) / 2 + 4
        at = table(names[0], numbers[0], 20, top, marked[0])
        at = table(names[1], numbers[1], sign(at, middle, "@"), top, marked[1])
        return table(names[2], numbers[2], sign(at, middle, "="), top, marked[2])

    at = product(
        ("xᵀ", "dy", "dw"), (x.T, dy, dw), 30, ([(row, n) for n in samples], [(n, column) for n in samples], [entry])
    )
    terms = " + ".join(f"({x[n, row]:g})({dy[n, column]:g})" for n in samples)
    note = f"dw[{row}, {column}] = {terms} = {dw[row, column]:g}".replace("(-", "(−")
    second = 30 + tall * len(x) + 34
    parts.append(words(20, second - 12, note))
    end = product(("dy", "wᵀ", "dx"), (dy, w.T, dx), second + 24, ((), (), ()))
    table("db, the sums of dy", db, end + 40, second + 24)
    height = second + 24 + tall * len(x) + 12
    return svg(
        max(at, end + 40 + 5 * wide, 20 + 6.7 * len(note)) + 16, height, "the gradients of a linear layer", parts
    )


def pull_and_push(dlogits: Array, rows: Sequence[str], columns: Sequence[str], right: Sequence[int]) -> str:
    """Draw the gradient of scores: blue where a score is pulled up, orange where pushed down; targets are framed."""
    wide, tall, left, top = 19.0, 19.0, 54.0, 42.0
    marked = [(row, column) for row, column in enumerate(right)]
    parts = [words(left, 15, "blue: pulled up    orange: pushed down    framed: the right letter")]
    parts += [words(left + (i + 0.5) * wide, top - 6, name, "middle") for i, name in enumerate(columns)]
    parts += [words(left - 8, top + (i + 0.5) * tall + 4, name, "end") for i, name in enumerate(rows)]
    parts += cells(dlogits, left, top, width=wide, height=tall, form="", marked=marked)
    return svg(left + wide * len(columns) + 16, top + tall * len(rows) + 14, "pull and push on the scores", parts)
