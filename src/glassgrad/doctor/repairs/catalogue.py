"""All changes, the likely ones first."""

from __future__ import annotations

from collections.abc import Callable

from glassgrad.doctor.reading.suspects import places
from glassgrad.doctor.repairs import layers, statements, values
from glassgrad.doctor.repairs.edits import Edit
from glassgrad.doctor.repairs.zones import Zones

CHANGES: tuple[Callable[[Zones], values.Edits], ...] = (
    values.signs,
    values.sums,
    values.applied,
    layers.activations,
    layers.words,
    values.masks,
    values.axes,
    values.places,
    layers.copies,
    layers.backwards,
    statements.left_out,
    statements.moved,
    statements.inserted,
    layers.optimizers,
    values.operands,
    values.shapes,
    values.exchanges,
    values.numbers,
    statements.exchanged,
)
"""The kinds of changes; a new one is a function of its file that yields edits."""
PER_WEIGHT = 0.3
"""How much earlier a change of a line worth a look is tried, for each unit of its weight."""


def edits_of(source: str) -> list[Edit]:
    r"""Return the changes of a script, the likely ones first; each result once.

    Example:
        >>> text = "for x, y in data:\n    loss = model(x).sum()\n    (-loss).backward()\n"
        >>> edits_of(text)[0].new
        '((loss)).backward()'
    """
    zones = Zones(source)
    found: dict[str, Edit] = {}
    for change in CHANGES:
        for one in change(zones):
            if one is not None and one.text != source and one.text not in found:
                found[one.text] = one
    weights = {line: one.words.weight for one, lines, _ in places(zones.program) for line in lines}
    return sorted(found.values(), key=lambda one: -one.prior - weights.get(one.line, 0) * PER_WEIGHT)
