"""Plans are made for native code, from traces of NumPy programs, which are fast to make."""

from __future__ import annotations

import pytest

pytest.importorskip("llvmlite", reason="plans are made for native code")


@pytest.fixture(autouse=True)
def _no_native_code(numpy_target: None) -> None:
    """See `numpy_target`."""
