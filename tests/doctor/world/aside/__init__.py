"""The half of the reported faults that is kept aside: no rule is built on it, and it is run only at the end.

Each program has the address of its fault in `source`. The SHA-256 of an address decides the half: the addresses here
begin with 8 to f, those of the building half with 0 to 7.
"""

from __future__ import annotations

from tests.doctor.world.aside import births, data, losses, modes, modules, order, players, sequences

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
