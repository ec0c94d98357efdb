"""Suspects about models: layers and their order, shapes, normalisation, weights, graphs, derivatives of one's own.

`layers` has what they look up.
"""

from __future__ import annotations

from glassgrad.doctor.reading.suspects.form import suspects_of
from glassgrad.doctor.reading.suspects.models import flows, graphs, norms, shapes, special, weights

SUSPECTS = suspects_of(norms, shapes, graphs, special, flows, weights)
