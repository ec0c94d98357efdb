"""Measure the time from the last key in the playground to the values on its page, in Chromium.

The server and its processes are those of `glassgrad playground`. Each key changes a number of the same program, half a
second after the values of the key before, as when somebody types. The page notes the time of the key, and of the frame
after the one in which the new number stands among the values. The part without the browser is measured beside it: from
a request to the event with the values.
"""

from __future__ import annotations

import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

from benchmarks import results

TITLE = "From the last key in the playground to its values"
_TURNS = 5  # for each round that was asked for
_PAUSE = 0.5
_LIMIT = 20.0  # seconds until a measurement is given up
_BROWSERS = ("chromium", "chromium-browser", "google-chrome")

_TEN = """\
start = {number}
import glassgrad as gg
x = gg.tensor(start, requires_grad=True)
y = gg.tensor(-0.5, requires_grad=True)
a = x * y
b = a.sin()
c = b + x
d = c.exp()
e = d / y
f = e.tanh()
g = f - a
h = g * g
i = h + 1.0
loss = i.log()
"""
_NETWORK = """\
start = {number}
import glassgrad as gg
from glassgrad import nn, optim
from glassgrad.nn import functional as F
gg.manual_seed(0)
model = nn.Sequential(nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 10))
optimizer = optim.Adam(model.parameters(), lr=start * 1e-3)
inputs, targets = gg.randn(64, 784), gg.randint(0, 10, (64,))
optimizer.zero_grad()
loss = F.cross_entropy(model(inputs), targets)
loss.backward()
optimizer.step()
"""
CASES = (("a function of ten ops", _TEN, 0.150), ("a network with a training step", _NETWORK, 0.400))
FIRST_PAGE = 1.5


def asked(server: Any, text: str, number: int) -> float:
    """Return the seconds from a request to the pane of values."""
    host = f"127.0.0.1:{server.server_port}"
    body = json.dumps({"text": text, "panes": ["values"], "run": number})
    headers = {"Host": host, "Origin": f"http://{host}", "X-Token": server.token}
    began = time.perf_counter()
    connection = HTTPConnection(host)
    connection.request("POST", "/api/run", body, headers)
    answer = connection.getresponse()
    found = 0.0
    for line in answer:
        event = json.loads(line)
        if event["event"] == "pane":
            assert event["data"]["variables"], event
            found = time.perf_counter() - began
    connection.close()
    assert found, "there are no values"
    return found


_WATCH = """() => {
  window.measured = {};
  window.addEventListener("keydown", () => { window.measured = { key: performance.now() }; }, true);
  const look = () => {
    const shown = document.querySelector("section.variable[aria-label='start'] .value");
    if (window.measured.end || !shown || shown.textContent.trim() !== window.wanted) return;
    window.measured.end = -1;
    requestAnimationFrame(() => setTimeout(() => { window.measured.end = performance.now(); }));
  };
  const all = { subtree: true, childList: true, characterData: true };
  new MutationObserver(look).observe(document.querySelector("#panel-values"), all);
}"""


@contextmanager
def chromium() -> Iterator[Any]:
    """Start the browser; give None where it or Playwright is missing."""
    found = next(filter(None, map(shutil.which, _BROWSERS)), None)
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        found = None
    if found is None:
        yield None
        return
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()


def until(condition: Any) -> None:
    """Wait until a condition holds."""
    end = time.monotonic() + _LIMIT
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError("the page does not show what was typed")
        time.sleep(0.01)


def typed(browser: Any, server: Any, turns: int) -> list[float]:
    """Return the seconds from a key to the frame with its values, for several keys in the first line of a program."""
    page = browser.new_page(viewport={"width": 1280, "height": 800})
    page.goto(server.url)
    page.wait_for_selector("section.variable[aria-label='start']")
    page.evaluate(_WATCH)
    page.locator(".cm-content").click()
    page.keyboard.press("Control+Home")
    page.keyboard.press("End")
    found = []
    for turn in range(turns):
        time.sleep(_PAUSE)
        digit = 1 + turn % 9
        page.evaluate(f"window.wanted = '1.{digit}'")
        page.keyboard.press("Backspace")
        page.keyboard.press(str(digit))
        until(lambda: (page.evaluate("window.measured.end") or -1) > 0)
        measured = page.evaluate("window.measured")
        found.append((measured["end"] - measured["key"]) / 1e3)
    page.close()
    return found


def first_page(browser: Any) -> tuple[float, float]:
    """Return the seconds from the command to its editor in the browser, and to the first values."""
    command = [sys.executable, "-m", "glassgrad", "playground", "--no-browser"]
    page = browser.new_page()  # the command asks a browser that runs already for a page
    began = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        page.goto(address)
        page.wait_for_selector(".cm-line")
        editor = time.perf_counter() - began
        page.wait_for_selector("section.variable")
        values = time.perf_counter() - began
        page.close()
        process.terminate()
    return editor, values


def _case(browser: Any, text: str, turns: int) -> tuple[list[float], list[float]]:
    """Return the times of keys in the browser, and those of requests."""
    from glassgrad.lessons.playground.server import Server

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "playground.py"
        path.write_text(text.format(number=1.0))
        with Server(path) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            requests = []
            for turn in range(turns + 1):
                requests.append(asked(server, text.format(number=1.0 + turn / 8), turn))
                time.sleep(_PAUSE)
            keys = typed(browser, server, turns + 1) if browser is not None else []
            server.shutdown()
    return keys[1:], requests[1:]  # the first ones warm up


def measure(threads: int | None, rounds: int) -> tuple[str, str, dict[str, Any]]:
    """Title, text and raw numbers."""
    del threads
    rows, verdicts = [], []
    data: dict[str, Any] = {}
    with chromium() as browser:
        for name, text, limit in CASES:
            keys, requests = _case(browser, text, rounds * _TURNS)
            data[name] = {"keys": keys, "requests": requests}
            shown = [results.duration(statistics.median(keys)), results.duration(max(keys))] if keys else ["-", "-"]
            rows.append([name, *shown, results.duration(statistics.median(requests))])
            if keys:
                verdicts.append(_verdict(f"{name}: values at most {1e3 * limit:.0f} ms after a key", keys, limit))
        if browser is not None:
            opened = [first_page(browser) for _ in range(rounds)]
            editors, values = [one for one, _ in opened], [one for _, one in opened]
            data["first page"] = {"editor": editors, "values": values}
            verdicts.append(_verdict(f"the page at most {FIRST_PAGE:g} s after the command", editors, FIRST_PAGE))
            verdicts.append(f"- its first values: {1e3 * statistics.median(values):.0f} ms after the command")
        else:
            verdicts.append("- not measured: Chromium or Playwright is missing")
    heads = ["program", "key to values", "the longest", "request to values"]
    table = results.markdown_table(heads, rows)
    return TITLE, f"{table}\n\nMedians of {rounds * _TURNS} keys and requests each.\n\n" + "\n".join(verdicts), data


def _verdict(what: str, times: list[float], limit: float) -> str:
    middle = statistics.median(times)
    return f"- {what}: {1e3 * middle:.0f} ms, {'met' if middle <= limit else 'missed'}"
