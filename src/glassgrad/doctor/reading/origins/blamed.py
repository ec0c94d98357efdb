"""The table of findings: which value each of them blames."""

from __future__ import annotations

import re

from glassgrad.doctor.reading.names import titles
from glassgrad.doctor.reading.origins import attending, data, kept, parts
from glassgrad.doctor.reading.origins.asked import MOST, Asked, Origin, Role

_OF_TARGETS = titles(
    "labels alike; targets out of range; output cannot reach the targets; classes as numbers; "
    "targets of 0 instead of -1; same targets in each step; labels begin at 1; classes that never come; "
    "targets of cross entropy do not add up; NaN in the targets"
)
_OF_INPUTS = "inputs unnormalised", "inputs constant", "NaN in the data"
_OF_SCHEDULES = titles(
    "rate decays to nothing; rate is 0 at first; schedule stepped for each batch; warm-up begins again; "
    "schedule goes round"
)
_OF_SETTINGS = titles(
    "learning rate out of the usual; rate unfit for the weights; rate above the curvature; "
    "weight decay out of the usual; dropout out of the usual"
)
ROLES: dict[str, Role] = {
    **dict.fromkeys(_OF_TARGETS, data.targets),
    **dict.fromkeys(_OF_INPUTS, data.inputs),
    **dict.fromkeys(_OF_SCHEDULES, parts.schedule),
    **dict.fromkeys(_OF_SETTINGS, parts.setting),
    "labels alike": data.alike,
    "targets unnormalised": data.scaled,
    "target among the inputs": data.both,
    "held-out inputs of another scale": data.apart,
    "validated on training data": data.apart,
    "targets shifted twice": data.shifted,
    "labels do not belong to the inputs": data.reordered,
    "inputs change from epoch to epoch": data.changed,
    "data not shuffled": data.loaders,
    "outputs bounded before cross entropy": parts.predictions,
    "class weights favour the frequent": parts.weights,
    "sigmoids too deep": parts.sigmoids,
    "linear layers in a row": parts.linear,
    "mask inverted": parts.mask,
    "targets seen by the model": attending.ahead,
    "axes mixed by a reshape": attending.cut_anew,
    "examples mixed": attending.along_batch,
    "loss is 0": parts.bounds,
    "loss detached": parts.cut,
    "no step": parts.guards,
    "no gradient": kept.dropped,
    "copies in a batch": kept.copies,
    "parameters without an optimizer": parts.optimizer,
    "layers nobody trains": parts.lacking,
}
"""For each finding, how to find the origin of what it blames."""


def lines_of(text: str, file: str) -> tuple[int, ...]:
    """Return the lines of a file that a text names, in their order.

    Example:
        >>> lines_of("the step at train.py:12 uses what train.py:9 made", "train.py")
        (12, 9)
    """
    return tuple(dict.fromkeys(int(one) for one in re.findall(rf"(?<![\w/.]){re.escape(file)}:(\d+)", text)))


def origins(asked: Asked) -> list[Origin]:
    """Return the lines where what a finding blames was made, without those that it names already; few, or none."""
    role = ROLES.get(asked.finding.rule)
    own = _new(asked, role) if role is not None else []
    of_layers = sorted(_new(asked, parts.layers), key=lambda one: not one.certain)
    room = max(1, MOST + 1 - len(asked.lines))
    return [*(own if len(own) <= MOST else []), *of_layers][:room]


def _new(asked: Asked, role: Role) -> list[Origin]:
    found: dict[int, Origin] = {}
    for one in role(asked):
        if one.line not in asked.lines:
            found.setdefault(one.line, one)
    return list(found.values())
