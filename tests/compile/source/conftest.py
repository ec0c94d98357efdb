"""Printed programs are the same for every backend: without a named backend, these tests compile to NumPy."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _no_native_code(numpy_target: None) -> None:
    """See `numpy_target`."""
