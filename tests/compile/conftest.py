"""Backend tests compile afresh: their cache is a folder of their own."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _own_cache(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("GLASSGRAD_CACHE_DIR", "")
