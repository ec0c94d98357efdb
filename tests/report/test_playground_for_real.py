"""The page, the server and the process of the playground together, in a real browser: nothing here is pretended."""

from __future__ import annotations

import math
import re
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from glassgrad.lessons.playground.server import Server
from tests.report.browsing import NEEDS_BROWSER, violations

pytestmark = NEEDS_BROWSER

TEXT = """\
import glassgrad as gg
x = gg.tensor(2.0, requires_grad=True)
y = gg.tensor(-3.0, requires_grad=True)
loss = x * y + x.sin()
"""
LOOP = """\
import glassgrad as gg
from glassgrad import optim
w = gg.ones(2, requires_grad=True)
optimizer = optim.SGD([w], lr=0.25)
samples = []
for step in range(40):
    optimizer.zero_grad()
    (w * w).sum().backward()
    optimizer.step()
    samples = [f"step {step}"]
print("<img src=x onerror=window.planted=1>")
"""


@pytest.fixture
def page(browser: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The page of a program, which must ask for nothing from elsewhere."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    path = tmp_path / "mine.py"
    path.write_text(TEXT)
    with Server(path, seconds=5.0) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        opened = browser.new_page(viewport={"width": 1280, "height": 800})
        said: list[str] = []
        opened.on("console", lambda message: said.append(message.text))
        opened.on("pageerror", lambda error: said.append(str(error)))
        opened.on("request", lambda asked: asked.url.startswith((server.address, "data:")) or said.append(asked.url))
        opened.goto(server.url)
        yield opened
        assert opened.evaluate("window.planted") is None
        assert said == []
        assert path.read_text() == TEXT  # nobody has saved it
        opened.close()
        server.shutdown()
        thread.join()


def until(condition: Callable[[], bool]) -> None:
    """Wait until something holds; the page's policy forbids Playwright's own way."""
    last = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < last, "it never comes true"
        time.sleep(0.02)


def put(page: Any, text: str) -> None:
    """Replace the program."""
    page.locator(".cm-content").click()
    page.keyboard.press("Control+a")
    page.keyboard.insert_text(text)


def shown(page: Any, name: str, what: str) -> float:
    """Return the number that Values shows of a variable; `what` is value or gradient."""
    text = page.locator(f"section.variable[aria-label='{name}'] .{what}").inner_text()
    return float(re.findall(r"-?\d+(?:\.\d+)?", text.replace("\N{MINUS SIGN}", "-"))[-1])


def test_a_program_is_typed_played_trained_and_survived(page: Any) -> None:
    page.wait_for_selector("section.variable[aria-label='loss']")
    assert shown(page, "loss", "value") == pytest.approx(-6 + math.sin(2), rel=1e-3)
    assert shown(page, "x", "gradient") == pytest.approx(-3 + math.cos(2), rel=1e-3)

    page.keyboard.press("Control+Home")
    put(page, TEXT.replace("2.0", "1.5"))
    until(lambda: shown(page, "x", "value") == 1.5)
    assert shown(page, "x", "gradient") == pytest.approx(-3 + math.cos(1.5), rel=1e-3)
    assert shown(page, "y", "gradient") == 1.5

    page.get_by_role("tab", name="Graph").click()
    page.wait_for_selector("svg.graph g.box >> text=sin")
    page.get_by_role("tab", name="Backward").click()
    page.locator("#panel-backward .row", has_text="np.cos(x)").hover()
    assert page.locator(".cm-linked").inner_text().startswith("loss = x * y")
    page.get_by_role("tab", name="Kernels").click()
    page.wait_for_selector(".kernel")
    page.get_by_label("shown as").select_option("assembly")
    assert "ret" in page.inner_text("#panel-kernels .listing")

    page.get_by_role("tab", name="Output").click()
    put(page, LOOP)
    until(lambda: page.inner_text(".training output").startswith("step 40 of 40"))
    page.wait_for_selector("#panel-output >> text=onerror")
    assert page.inner_text(".training .samples") == "step 39"

    put(page, "import os\nos._exit(3)\n")
    page.wait_for_selector(".notice >> text=exit code 3")
    put(page, "after = 5.0\n")
    page.get_by_role("tab", name="Values").click()
    page.wait_for_selector("section.variable[aria-label='after']")
    until(lambda: not page.locator(".notice").is_visible())  # it goes when the run has ended, just after its values
    assert violations(page) == []
