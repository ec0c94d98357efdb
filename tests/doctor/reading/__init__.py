"""Scripts with one fault each that their source shows, beside the healthy script."""

from __future__ import annotations

from tests.doctor.reading import calls, data, formulas, losses, modules, slips, tensors

CASES = (*modules.CASES, *losses.CASES, *calls.CASES, *data.CASES, *tensors.CASES, *slips.CASES, *formulas.CASES)
