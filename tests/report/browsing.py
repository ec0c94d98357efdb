"""A real browser for tests, and pages that record their errors and requests."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright drives the browser")
BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
NEEDS_BROWSER = pytest.mark.skipif(BROWSER is None, reason="no browser is installed (apt-get install chromium)")

AXE = Path(__file__).parents[2] / "web" / "node_modules" / "axe-core" / "axe.min.js"
PHONE = {"width": 360, "height": 740}


class Opened:
    """A page, with what it has complained of and asked for."""

    def __init__(self, browser: Any, path: Path, shown: str = "#curves canvas", **options: Any) -> None:
        self.said: list[str] = []
        self.page = browser.new_page(**options)
        self.page.set_default_timeout(10_000)
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("request", lambda request: self.said.append(request.url))
        self.page.goto(path.as_uri())
        self.page.wait_for_selector(shown)

    def __enter__(self) -> Any:
        return self.page

    def __exit__(self, *raised: object) -> None:
        if raised[0] is None:
            assert len(self.said) == 1, self.said  # the file itself
            assert self.page.evaluate("window.planted") is None
        self.page.close()


def violations(page: Any) -> list[Any]:
    """Return what axe finds; skips where it is not installed."""
    if not AXE.is_file():
        pytest.skip("axe-core is not there: npm ci in web/")
    page.evaluate(AXE.read_text())
    found = page.evaluate("axe.run()")["violations"]
    return [(one["id"], [node["html"][:200] for node in one["nodes"][:3]]) for one in found]
