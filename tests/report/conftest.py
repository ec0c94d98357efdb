"""One browser for all tests that need it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest


@pytest.fixture(scope="package")
def browser() -> Iterator[Any]:
    from tests.report import browsing

    with browsing.sync_api.sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=browsing.BROWSER, args=["--no-sandbox", "--disable-gpu"])
        yield found
        found.close()
