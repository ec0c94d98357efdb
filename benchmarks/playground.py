"""Measure the time from a request of the playground to the last event of its values, without the browser's part.

The server and its processes are those of `glassgrad playground`. Each request is a change of the same program, half a
second after the one before, as when somebody types.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

from benchmarks import results

TITLE = "From a request of the playground to its values"
_TURNS = 5  # for each round that was asked for
_PAUSE = 0.5

_TEN = """\
import glassgrad as gg
x = gg.tensor({number}, requires_grad=True)
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
import glassgrad as gg
from glassgrad import nn, optim
from glassgrad.nn import functional as F
gg.manual_seed(0)
model = nn.Sequential(nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 10))
optimizer = optim.Adam(model.parameters(), lr={number} * 1e-3)
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


def first_page() -> float:
    """Return the seconds from the command to its first page."""
    command = [sys.executable, "-m", "glassgrad", "playground", "--no-browser"]
    began = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        host, _, path = address.removeprefix("http://").partition("/")
        connection = HTTPConnection(host)
        connection.request("GET", f"/{path}")
        cookie = connection.getresponse().headers["Set-Cookie"].partition(";")[0]
        connection = HTTPConnection(host)
        connection.request("GET", "/api/state", headers={"Cookie": cookie})
        assert connection.getresponse().status == 200
        found = time.perf_counter() - began
        process.terminate()
    return found


def measure(threads: int | None, rounds: int) -> tuple[str, str, dict[str, Any]]:
    """Title, text and raw numbers."""
    from glassgrad.lessons.playground.server import Server

    del threads
    rows, verdicts, data = [], [], {}
    with tempfile.TemporaryDirectory() as folder, Server(Path(folder) / "playground.py") as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        for name, text, limit in CASES:
            times = []
            for turn in range(rounds * _TURNS + 1):
                times.append(asked(server, text.format(number=1.0 + turn / 8), turn))
                time.sleep(_PAUSE)
            first, *others = times
            middle, worst = statistics.median(others), max(others)
            rows.append([name, results.duration(middle), results.duration(worst), results.duration(first)])
            verdicts.append(f"- {name}, at most {1e3 * limit:.0f} ms: {1e3 * middle:.0f} ms, {_met(middle, limit)}")
            data[name] = times
        server.shutdown()
    opened = [first_page() for _ in range(rounds)]
    page = statistics.median(opened)
    data["first page"] = opened
    verdicts.append(
        f"- the first page, at most {FIRST_PAGE:g} s after the command: {page:.2f} s, {_met(page, FIRST_PAGE)}"
    )
    table = results.markdown_table(["program", "median", "longest", "the first one"], rows)
    return TITLE, f"{table}\n\nOf {rounds * _TURNS} requests each.\n\n" + "\n".join(verdicts), data


def _met(value: float, limit: float) -> str:
    return "met" if value <= limit else "missed"
