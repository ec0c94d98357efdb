"""Backend tests compile without earlier entries: their cache is a separate folder."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _own_cache(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("GLASSGRAD_CACHE_DIR", "")
