"""HTML of objects in a notebook: small, without its own styles, with everything escaped.

The notebook chooses the colours, so both light and dark themes read well.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from html import escape
from typing import Any

import numpy as np

from glassgrad.ops.core import Array

_MOST = 8  # rows and columns shown; of more, only the first and the last


def table(caption: str, rows: Iterable[Sequence[object]], heads: Sequence[object] = (), align: str = "left") -> str:
    """Return an HTML table; caption and cells are plain text."""
    cells = "".join(f'<th scope="col" style="text-align:inherit">{escape(str(cell))}</th>' for cell in heads)
    head = f"<tr>{cells}</tr>" if heads else ""
    body = "".join("<tr>" + "".join(f"<td>{escape(str(cell))}</td>" for cell in row) + "</tr>" for row in rows)
    title = f'<caption style="white-space:nowrap;text-align:left">{escape(caption)}</caption>'
    return f'<table style="text-align:{align}">{title}{head}{body}</table>'


def text(shown: str) -> str:
    """Return escaped text in its own layout."""
    return f"<pre>{escape(shown)}</pre>"


def tensor(x: Array) -> str:
    """Return a table of the numbers of a vector or a matrix, of others the text, both with shape and dtype."""
    array = x.array
    if not isinstance(array, np.ndarray) or array.ndim not in {1, 2} or not array.size:
        return f"<div>{escape(_caption(x))}{text(repr(x))}</div>"
    matrix = array[None] if array.ndim == 1 else array
    columns = list(_ends(matrix.shape[1]))
    rows = [
        ["…" if row is None or column is None else _number(matrix[row, column]) for column in columns]
        for row in _ends(matrix.shape[0])
    ]
    return f"<div>{table(_caption(x), rows, align='right')}</div>"


def _caption(x: Array) -> str:
    parts = [type(x).__name__, str(tuple(x.shape)), str(x.dtype)]
    if x.node is not None:
        parts.append(f"from {x.node.name} at {x.node.place}")
    elif x.requires_grad:
        parts.append("requires grad")
    return " · ".join(parts)


def _ends(count: int) -> Iterator[int | None]:
    """Yield all positions, or the first and the last ones with None between them."""
    if count <= _MOST:
        yield from range(count)
        return
    half = _MOST // 2
    yield from range(half)
    yield None
    yield from range(count - half, count)


def _number(value: Array) -> str:
    return f"{value:.4g}" if value.dtype.kind in "fcV" else str(value)


def module(model: Any, name: str = "") -> str:
    """Return a model as a tree that opens: its layers, their arguments, and their parameters."""
    count = sum(parameter.numel() for parameter in model.parameters())
    label = f"({name}): " if name else ""
    extra = model.extra_repr()
    head = f"{label}{type(model).__name__}" + (f"({extra})" if extra else "")
    summary = f"<code>{escape(head)}</code>" + (f" · {count:,} parameters" if count else "")
    own = [(key, value) for key, value in vars(model).items() if hasattr(value, "requires_grad")]
    inner = "".join(
        f"<div><code>{escape(key)}</code> · {escape(' · '.join([type(value).__name__, str(tuple(value.shape))]))}</div>"
        for key, value in own
    ) + "".join(module(child, key) for key, child in model.named_children())
    if not inner:
        return f'<div style="margin-left:1em">{summary}</div>'
    opened = "" if name else " open"
    return f'<details style="margin-left:1em"{opened}><summary>{summary}</summary>{inner}</details>'


def compiled(program: Any) -> str:
    """Describe a compiled function: its traces, why there are several, and what runs eagerly."""
    name = getattr(program.function, "__qualname__", None) or type(program.function).__name__
    rows = [("backend", program.backend), ("traces", program.traces)]
    rows += [("traced again", reason) for reason in program.retraces]
    rows += [("runs eagerly", reason) for reason in program.refusals]
    return table(f"compiled {name}", rows)


def finding(found: Any) -> str:
    """Return one finding of the doctor: what, where, and what to do."""
    rows = [
        ("seen", found.what),
        ("do", found.advice),
        ("line", found.remedy),
        ("where", found.where),
        ("see", found.page),
    ]
    return table(f"{found.severity}: {found.rule}", [row for row in rows if row[1]])


def findings(head: Iterable[str], found: Iterable[Array]) -> str:
    """Return the findings of a watched loop, the worst first, below lines about all of them."""
    return f"<div><code>{'<br>'.join(map(escape, head))}</code>{''.join(map(finding, found))}</div>"


def monitored(data: Any) -> str:
    """Return the latest sample of a record of gradients, a row for each parameter."""
    if not len(data):
        return table("no step was sampled yet", [])
    shown = (data.gradient_norm, data.parameter_norm, data.update_ratio, data.gradient_zeros)
    columns = [[f"{number:.3g}" for number in numbers[-1]] for numbers in shown]
    rows = zip(data.parameters, *columns, strict=True)
    loss = f" · loss {data.loss[-1]:.4g}" if np.isfinite(data.loss[-1]) else ""
    caption = f"step {data.steps[-1]}{loss} · {len(data)} samples"
    return table(caption, rows, ["parameter", "gradient norm", "weight norm", "update / weights", "zeros"], "right")


def optimizer(rule: Any) -> str:
    """Return an optimizer as a table of its groups."""
    options = [key for key in rule.param_groups[0] if key != "params"]
    rows = [
        [place, sum(parameter.numel() for parameter in group["params"]), *(group.get(key) for key in options)]
        for place, group in enumerate(rule.param_groups)
    ]
    return table(type(rule).__name__, rows, ["group", "parameters", *options])
