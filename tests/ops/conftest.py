"""Fixtures of the tests of ops."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from glassgrad.ops.kernels import replay


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Record what runs twice."""
    for name, value in (("first", 0), ("repeats", 1), ("off", False)):
        monkeypatch.setattr(replay.settings, name, value)
    yield
    assert not replay.settings.off, "native code could not be loaded"
