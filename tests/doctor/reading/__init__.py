"""Scripts with one fault each that their source shows, beside the healthy script."""

from __future__ import annotations

from tests.doctor.reading import calls, data, losses, modules, tensors

CASES = (*modules.CASES, *losses.CASES, *calls.CASES, *data.CASES, *tensors.CASES)
