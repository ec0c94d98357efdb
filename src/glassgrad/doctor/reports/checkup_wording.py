"""Check-ups as lines of text."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from glassgrad.doctor.facts import CheckUp, Facts, Gradient, Layer
from glassgrad.doctor.reports.wording import lines

_MOST_LAYERS = 40


def check_up_lines(found: CheckUp) -> Iterator[str]:
    """Yield the lines of a check-up.

    Example:
        >>> import glassgrad as gg
        >>> from glassgrad.report import check_up_lines
        >>> model = gg.nn.Linear(4, 3)
        >>> batch = gg.randn(16, 4), gg.randint(0, 3, (16,))
        >>> lines = list(check_up_lines(gg.doctor.check_up(model, batch, gg.nn.functional.cross_entropy)))
    """
    yield from facts_lines(found)
    yield from lines(found.findings)


def facts_lines(found: CheckUp) -> Iterator[str]:
    """Yield the lines of a check-up without its findings."""
    mode = "training" if found.training else "evaluation"
    yield f"check-up of {found.model}, {found.parameters:,} trainable numbers, {mode} mode"
    yield ""
    yield from _data(found)
    yield from _forward(found)
    yield from _loss(found)
    yield from _gradients(found)


def _data(found: CheckUp) -> Iterator[str]:
    rows = [_row(facts.name, facts) for facts in found.inputs]
    targets = found.targets
    if targets is not None:
        row = _row("targets", targets.facts)
        if targets.classes:
            row[-1] = f"{targets.distinct} different, room for {targets.classes} classes"
        rows.append(row)
    yield from _table(("data", "shape", "dtype", "from", "to", "mean", "std", ""), rows)
    yield ""


def _row(name: str, facts: Facts) -> list[str]:
    return [name, _shape(facts), facts.dtype, *_spread(facts), facts.bad]


def _spread(facts: Facts) -> list[str]:
    known = facts.summary
    return [_number(value) for value in (known.minimum, known.maximum, known.mean, known.std)]


def _forward(found: CheckUp) -> Iterator[str]:
    rows = []
    shown, left_out = _some(found.layers)
    for layer in shown:
        gradient = "" if layer.gradient is None else _number(layer.gradient.summary.abs_mean)
        kind = "" if " before " in layer.name else layer.kind
        rows.append([layer.name, kind, _shape(layer.output), *_spread(layer.output), gradient, _remark(layer)])
    if rows:
        titles = ("forward", "", "shape", "from", "to", "mean", "std", "|gradient|", "")
        yield from _table(titles, rows)
        if left_out:
            yield f"  ... and {left_out} more; `layers` of the result has all"
        yield ""


def _some(layers: Sequence[Layer]) -> tuple[list[Layer], int]:
    """For a very deep net, choose the first and last layers and remarkable ones in between."""
    if len(layers) <= _MOST_LAYERS:
        return list(layers), 0
    half = _MOST_LAYERS // 2
    ends = set(range(half)) | set(range(len(layers) - half, len(layers)))
    first_bad = next((at for at, layer in enumerate(layers) if layer.output.bad), 0)
    shown = [layer for at, layer in enumerate(layers) if at in ends or at == first_bad]
    return shown, len(layers) - len(shown)


def _remark(layer: Layer) -> str:
    parts = [layer.output.bad] if layer.output.bad else []
    if not math.isnan(layer.dead):
        parts.append(f"{layer.dead:.0%} dead")
    if not math.isnan(layer.saturated):
        parts.append(f"{layer.saturated:.0%} saturated")
    if layer.gradient is not None and layer.gradient.bad:
        parts.append(f"gradient: {layer.gradient.bad}")
    return ", ".join(parts)


def _loss(found: CheckUp) -> Iterator[str]:
    if found.failure and math.isnan(found.loss):
        return
    text = f"loss         {found.loss:.4f}" if not math.isnan(found.loss) else "loss         NaN"
    if found.loss_kind:
        text += f"   {found.loss_kind}"
    if found.expected_why:
        text += f"; a constant guess has {found.expected:.4f} ({found.expected_why})"
    yield text
    yield ""


def _gradients(found: CheckUp) -> Iterator[str]:
    if found.failure and all(entry.gradient is None for entry in found.gradients):
        return
    rows = [[entry.name, _shape(entry.values), *_weights(entry), *_gradient_cells(entry)] for entry in found.gradients]
    yield from _table(
        ("parameter", "shape", "mean", "std", "norm", "gradient", "ratio", "from", "to", "zeros", ""), rows
    )
    yield f"total norm of all gradients {found.total_norm:.4g}"
    yield ""


def _weights(entry: Gradient) -> list[str]:
    known = entry.values.summary
    return [_number(known.mean), _number(known.std), _number(known.norm)]


def _gradient_cells(entry: Gradient) -> list[str]:
    if entry.gradient is None:
        return ["", "", "", "", "", "no gradient" if entry.trainable else "frozen"]
    known, weights = entry.gradient.summary, entry.values.summary.norm
    ratio = _number(known.norm / weights) if weights else ""
    zeros = f"{known.zeros:.0%}" if known.zeros >= 0.005 else ""
    return [_number(known.norm), ratio, _number(known.minimum), _number(known.maximum), zeros, entry.gradient.bad]


def _shape(facts: Facts) -> str:
    return "x".join(map(str, facts.shape)) or "-"


def _number(value: float) -> str:
    if math.isnan(value):
        return "nan"
    if value == 0:
        return "0"
    return f"{value:.3g}" if 1e-3 <= abs(value) < 1e5 else f"{value:.1e}"


def _table(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield aligned lines: text to the left, numbers to the right."""
    widths = [max(len(row[at]) for row in [titles, *rows]) for at in range(len(titles))]
    right = [all(_is_number(row[at]) for row in rows) for at in range(len(titles))]
    for row in [titles, *rows]:
        cells = [
            text.rjust(width) if to_right else text.ljust(width)
            for text, width, to_right in zip(row, widths, right, strict=True)
        ]
        yield "  ".join(cells).rstrip()


def _is_number(text: str) -> bool:
    return text in {"", "nan"} or (text[0] in "-0123456789" and "x" not in text)
