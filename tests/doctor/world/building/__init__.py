"""Faults that people reported, for building rules: each program states its source in `Program.source`.

The programs are written here; what is of the source is the fault, and the answer that was accepted. Those of `wider`
were written in rounds, each before the doctor had seen it; a few have the page of the manual that warns of the fault.
"""

from __future__ import annotations

from itertools import chain

from tests.doctor.world.building import (
    data,
    loops,
    losses,
    modules,
    players,
    sequences,
    wider1,
    wider2,
    wider3,
    wider4,
    wider5,
    wider6,
    wider7,
    wider8,
    wider9,
    wider10,
)

_WIDER = wider1, wider2, wider3, wider4, wider5, wider6, wider7, wider8, wider9, wider10
_FILES = modules, losses, loops, data, sequences, players, *_WIDER
PROGRAMS = tuple(chain.from_iterable(one.PROGRAMS for one in _FILES))
WIDER = tuple(chain.from_iterable(one.PROGRAMS for one in _WIDER))
