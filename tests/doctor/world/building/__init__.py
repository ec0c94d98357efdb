"""Faults that people reported, for building rules: each program states its source in `Program.source`.

The programs are written here; what is of the source is the fault, and the answer that was accepted.
"""

from __future__ import annotations

from itertools import chain

from tests.doctor.world.building import data, loops, losses, modules, players, sequences

PROGRAMS = tuple(chain.from_iterable(one.PROGRAMS for one in (modules, losses, loops, data, sequences, players)))
