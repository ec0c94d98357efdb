"""The front comes before code: its tests run NumPy programs; tests that name a backend run both kinds."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _no_native_code(numpy_target: None) -> None:
    """See `numpy_target`."""
