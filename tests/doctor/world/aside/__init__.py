"""The half of the reported faults that is kept aside: no rule is built on it, and it is run only at the end.

Each program has the address of its fault in `source`. The SHA-256 of an address decides the half: the addresses here
begin with 8 to f, those of the building half with 0 to 7.
"""

from __future__ import annotations

from tests.doctor.world.aside import births, data, losses, modes, modules, order, players, sequences

COMING = frozenset({
    "accumulated without division",
    "axes mixed by a reshape",
    "dropout in evaluation",
    "dropout out of the usual",
    "loss term detached",
    "output cannot reach the targets",
    "padding contributes",
    "seed set in the loop",
    "softmax of one number",
    "state carried over",
    "targets out of range",
    "targets seen by the model",
    "targets unnormalised",
    "validated on training data",
})  # fmt: skip  # one a line
"""Titles of findings that were written at the same time as these programs, and accepted by name alone."""

PROGRAMS = (
    *losses.PROGRAMS,
    *births.PROGRAMS,
    *order.PROGRAMS,
    *modes.PROGRAMS,
    *modules.PROGRAMS,
    *data.PROGRAMS,
    *sequences.PROGRAMS,
    *players.PROGRAMS,
)
