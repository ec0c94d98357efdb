"""Suspects about models: layers and their order, shapes, normalisation, weights, graphs, derivatives of one's own.

`layers` has what they look up.
"""

from __future__ import annotations

from glassgrad.doctor.reading.suspects.form import Suspect
from glassgrad.doctor.reading.suspects.models import flows, graphs, norms, shapes, special, weights

SUSPECTS: tuple[Suspect, ...] = (
    *norms.SUSPECTS,
    *shapes.SUSPECTS,
    *graphs.SUSPECTS,
    *special.SUSPECTS,
    *flows.SUSPECTS,
    *weights.SUSPECTS,
)
