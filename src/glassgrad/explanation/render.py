"""The tables of an explanation as text, Markdown, LaTeX and HTML."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

import numpy as np

from glassgrad.explanation.record import Edge, Record, Step
from glassgrad.ops import formulas
from glassgrad.ops.core import Array

FEW = 9  # arrays of up to this many elements are written out


@dataclass(frozen=True)
class Table:
    """A title, the heads of the columns, and the cells."""

    title: str
    heads: tuple[str, ...]
    rows: list[tuple[str, ...]]


def value_text(value: Array) -> str:
    """A number, a few numbers, or the shape with statistics and corners."""
    if isinstance(value, tuple | list):
        return ", ".join(value_text(part) for part in value)
    array = np.asarray(value)
    if array.ndim == 0:
        return formulas.number(array.item())
    if array.size <= 4:
        return np.array2string(array, precision=4, separator=", ", floatmode="maxprec").replace("\n", "")
    if array.size <= FEW:
        return _listed(array.tolist())
    return f"{array.dtype} {array.shape}".replace(",)", ")") + _statistics(array)


def _statistics(array: Array) -> str:
    """Mean and deviation, and the corners: the first and last number of the first and the last row."""
    if array.dtype.kind == "c" or not array.size:
        return ""
    if array.dtype.kind != "f":
        return f" from {array.min()} to {array.max()}"
    rows = array.reshape(-1, array.shape[-1]) if array.ndim > 1 else array.reshape(1, -1)
    ends = [f"{_brief(row[0])} .. {_brief(row[-1])}" for row in rows[:: max(1, len(rows) - 1)][:2]]
    with np.errstate(all="ignore"):
        mean, deviation = array.mean(dtype=np.float64), array.std(dtype=np.float64)
    return f" mean {_brief(mean)} std {_brief(deviation)} [{'; '.join(ends)}]"


def _listed(value: Array) -> str:
    return f"[{', '.join(map(_listed, value))}]" if isinstance(value, list) else _brief(value)


def _brief(number: Array) -> str:
    return formulas.number(number) if isinstance(number, complex) else f"{float(number):.3g}"


def tables(record: Record) -> list[Table]:
    """The forward pass, the backward pass, and the gradients."""
    forward: list[tuple[str, ...]] = [
        (step.name, step.expression, value_text(step.value), f"{step.file}:{step.line}", step.source)
        for step in record.steps
    ]
    backward = [row for step in reversed(record.steps) for row in _backward_rows(step)]
    gradients: list[tuple[str, ...]] = [
        (entry.name, value_text(entry.value), value_text(entry.gradient)) for entry in record.inputs
    ]
    found = [
        Table("Forward", ("name", "formula", "value", "line", "source"), forward),
        Table("Backward", ("of", "cotangent", "to", "local derivative", "=", "adds"), backward),
        Table("Gradient", ("input", "value", "gradient"), gradients),
    ]
    sweeps = _sweeps(record)
    return found if sweeps is None else [*found, sweeps]


def _sweeps(record: Record) -> Table | None:
    """Forward mode: the derivative of every step with respect to each input, where all of them are numbers."""
    if any(step.tangents is None for step in record.steps):
        return None
    names = [entry.name for entry in record.inputs]
    rows = [
        (step.name, *(formulas.number(step.tangents.get(name, 0.0)) for name in names))
        for step in record.steps
        if step.tangents is not None
    ]
    return Table("Forward mode", ("name", *(f"d/d{name}" for name in names)), rows)


def _backward_rows(step: Step) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for i, edge in enumerate(step.edges):
        head = (step.name, value_text(step.cotangent)) if i == 0 else ("", "")
        slope = "" if edge.number is None else formulas.number(edge.number)
        local = "" if edge.local == slope else edge.local
        rows.append((*head, edge.name, local, slope, value_text(edge.sent)))
    return rows


def cost_text(record: Record) -> str:
    """The cost of both modes for this function."""
    sweeps = record.forward_sweeps
    return (
        f"Cost of the gradient: reverse mode 1 sweep, {_count(record.reverse_products, 'product')}; "
        f"forward mode {_count(sweeps, 'sweep')}, one for each input number, "
        f"{_count(record.forward_products, 'product')}."
    )


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def as_text(record: Record) -> str:
    """Aligned columns for a terminal."""
    parts = []
    for table in tables(record):
        cells = [table.heads, *table.rows]
        widths = [max(len(row[column]) for row in cells) for column in range(len(table.heads))]
        lines = [
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in cells
        ]
        lines.insert(1, "  ".join("-" * width for width in widths))
        parts.append(f"{table.title} of {record.function}\n" + "\n".join(lines))
    return "\n\n".join([*parts, cost_text(record)])


def as_markdown(record: Record) -> str:
    """The tables in Markdown."""
    parts = []
    for table in tables(record):
        lines = [_markdown_row(table.heads), _markdown_row(["---"] * len(table.heads))]
        lines += [_markdown_row([_code(cell) for cell in row]) for row in table.rows]
        parts.append(f"**{table.title} of `{record.function}`**\n\n" + "\n".join(lines))
    return "\n\n".join([*parts, cost_text(record), ""])


def _markdown_row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _code(cell: str) -> str:
    return f"`{cell.replace('|', chr(92) + '|')}`" if cell else ""


def as_html(record: Record) -> str:
    """The tables for a notebook."""
    parts = ['<div class="ggexplain">']
    for table in tables(record):
        heads = "".join(f"<th>{escape(head)}</th>" for head in table.heads)
        rows = "".join(
            "<tr>" + "".join(f"<td><code>{escape(cell)}</code></td>" for cell in row) + "</tr>" for row in table.rows
        )
        caption = f"{escape(table.title)} of <code>{escape(record.function)}</code>"
        parts.append(f"<table><caption>{caption}</caption><tr>{heads}</tr>{rows}</table>")
    return "\n".join([*parts, f"<p>{escape(cost_text(record))}</p></div>"])


def as_latex(record: Record) -> str:
    """Two aligned blocks as in a textbook: values forward, derivatives backward."""
    forward = [
        rf"{formulas.name_latex(step.name)} &= {formulas.latex(step.expression)} &&= {_value_latex(step.value)} \\"
        for step in record.steps
    ]
    last = record.steps[-1].name
    backward = [_seed_latex(last)]
    backward += [_edge_latex(step, edge, last) for step in reversed(record.steps) for edge in step.edges]
    gradient = [
        rf"\frac{{\partial {formulas.name_latex(last)}}}{{\partial {formulas.name_latex(entry.name)}}} "
        rf"&= {_value_latex(entry.gradient)} \\"
        for entry in record.inputs
    ]
    blocks = [("Forward", forward), ("Backward", backward), ("Gradient", gradient)]
    return "\n".join(
        rf"\paragraph{{{title}}}" + "\n" + r"\begin{align*}" + "\n" + "\n".join(lines) + "\n" + r"\end{align*}"
        for title, lines in blocks
    )


def _seed_latex(last: str) -> str:
    name = formulas.name_latex(last)
    return rf"\bar{{{name}}} &= 1 \\"


def _edge_latex(step: Step, edge: Edge, _last: str) -> str:
    to, of = formulas.name_latex(edge.name), formulas.name_latex(step.name)
    local = formulas.latex(edge.local)
    if edge.number is None:
        return rf"\bar{{{to}}} &\mathrel{{+}}= \bar{{{of}}} \text{{ through }} {local} \\"
    product = rf"{_value_latex(step.cotangent)} \cdot {_signed(edge.number)} = {_value_latex(edge.sent)}"
    partial = rf"\bar{{{of}}} \cdot \frac{{\partial {of}}}{{\partial {to}}}"
    shown = rf" = \bar{{{of}}} \cdot \left({local}\right)" if edge.local != formulas.number(edge.number) else ""
    return rf"\bar{{{to}}} &\mathrel{{+}}= {partial}{shown} = {product} \\"


def _signed(value: float) -> str:
    text = formulas.number_latex(formulas.number(value))
    return rf"\left({text}\right)" if value < 0 else text


def _value_latex(value: Array) -> str:
    text = value_text(value)
    try:
        float(text)
    except ValueError:
        return rf"\text{{{text}}}"
    return formulas.number_latex(text)


@dataclass(frozen=True)
class Line:
    """A line of a derivation, in TeX and as plain text, with the step that it belongs to."""

    step: Step
    tex: str
    text: str


def derivation(record: Record) -> list[Line]:
    """Return both passes line by line; the cotangent of v is written dv, as in the backward program.

    Example:
        >>> import glassgrad as gg
        >>> def f(x):
        ...     y = x.exp()
        ...     return y
        >>> [line.text for line in derivation(gg.explain(f, 0.0).record)]
        ['y = exp(x) = 1', 'dy = 1', 'dx += dy * (y) = 1']
    """
    last = record.steps[-1]
    lines = [_forward_line(step) for step in record.steps]
    lines.append(Line(last, f"{_cotangent(last.name)} = 1", f"d{last.name} = 1"))
    return lines + [_backward_line(step, edge) for step in reversed(record.steps) for edge in step.edges]


def _forward_line(step: Step) -> Line:
    shown = value_text(step.value)
    number = f" = {formulas.number_latex(shown)}" if np.ndim(step.value) == 0 else ""
    tex = f"{formulas.name_latex(step.name)} = {formulas.latex(step.expression)}{number}"
    return Line(step, tex, f"{step.name} = {step.expression} = {shown}")


def _cotangent(name: str) -> str:
    """Write the cotangent of a value as the backward program does; MathML draws a bar over one letter alone."""
    return rf"\mathrm{{d}}{formulas.name_latex(name)}"


def _backward_line(step: Step, edge: Edge) -> Line:
    to, of = formulas.name_latex(edge.name), formulas.name_latex(step.name)
    local = formulas.latex(edge.local)
    if edge.number is None:
        tex = rf"{_cotangent(edge.name)} \text{{ += }} {_cotangent(step.name)} \text{{ through }} {local}"
        return Line(step, tex, f"d{edge.name} += d{step.name} through {edge.local}")
    sent, shown = value_text(edge.sent), formulas.number(edge.number)
    tex = (
        rf"{_cotangent(edge.name)} \text{{ += }} {_cotangent(step.name)} \cdot \frac{{\partial {of}}}{{\partial {to}}}"
    )
    came, times, goes = map(formulas.number_latex, (value_text(step.cotangent), shown, sent))
    values = rf"{came} \cdot \left({times}\right) = {goes}"
    tex += rf" = {_cotangent(step.name)} \cdot \left({local}\right) = {values}"
    return Line(step, tex, f"d{edge.name} += d{step.name} * ({edge.local}) = {sent}")
