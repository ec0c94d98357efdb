"""A server for the playground's page that runs nothing: it answers as the real one does, from what a text contains."""

from __future__ import annotations

import base64
import json
import re
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import numpy as np

import glassgrad

PAGE = Path(glassgrad.__file__).parent / "lessons" / "playground" / "page"
KINDS = {".html": "text/html; charset=utf-8", ".js": "text/javascript", ".css": "text/css"}
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
    "connect-src 'self'; font-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
TEXT = "a = 2.0\nb = -3.5\nc = 40\n"
EXAMPLES = {
    "product": ("A product", "x = 6.0\ny = 7.0\n"),
    "lesson-07": ("Lesson 7", "w = 1.5\n"),
    "exercise-07": ("Exercise 7", "answer = 1\n"),
}
PLANTED = "<img src=x onerror='window.planted=1'><script>window.planted=1</script>"

Data = dict[str, Any]


def array(value: Any) -> Data:
    """Return an array as the page wants it."""
    numbers = np.asarray(value, np.float64)
    finite = numbers[np.isfinite(numbers)]
    found: Data = {"shape": list(numbers.shape)}
    for name in ("min", "max", "mean"):
        found[name] = float(getattr(finite, name)()) if finite.size else None
    if numbers.size <= 64:
        found["nonfinite"] = [
            [*(int(at) for at in place), str(numbers[tuple(place)])] for place in np.argwhere(~np.isfinite(numbers))
        ]
        found["numbers"] = np.where(np.isfinite(numbers), numbers, None).tolist()
        return found
    rows = numbers.reshape(-1, numbers.shape[-1]).astype("<f4")
    data = base64.b64encode(rows.tobytes()).decode()
    return {**found, "heat": {"rows": rows.shape[0], "columns": rows.shape[1], "data": data}}


def assigned(text: str) -> list[tuple[str, int, float]]:
    """Return the numbers that a text gives names to, with their lines.

    Python's own parser is no choice in a thread of a server: that of 3.11 fails while another thread parses.
    """
    lines = enumerate(text.splitlines(), start=1)
    found = [(match, number) for number, line in lines if (match := re.fullmatch(r"(\w+) = (-?[\d.]+)", line.strip()))]
    return [(match[1], number, float(match[2])) for match, number in found]


def broken(text: str) -> int | None:
    """Return the line that ends within an expression."""
    return next((number for number, line in enumerate(text.splitlines(), start=1) if line.rstrip().endswith("+")), None)


def variable(name: str, line: int | None, value: Any, grad: Any = None, dtype: str = "float32") -> Data:
    """Return one entry of the pane Values."""
    made: Data = {"name": name, "line": line, "kind": "tensor", "dtype": dtype, "requires_grad": grad is not None}
    made |= {"shape": list(np.shape(value)), "value": array(value), "text": ""}
    return {**made, "grad": None if grad is None else array(grad)}


def pane(name: str, text: str) -> Data:
    """Return the data of a pane for a text."""
    if name == "values":
        many = np.sin(np.arange(600.0)).reshape(20, 30)
        found = [variable(name, line, value, 1.0) for name, line, value in assigned(text)]
        found += [variable("many", None, many, many), variable("odd", None, [1.0, np.nan, -np.inf])]
        other: Data = {"name": PLANTED, "line": None, "kind": "other", "shape": None, "dtype": "str", "value": None}
        return {"variables": [*found, {**other, "grad": None, "requires_grad": False, "text": PLANTED}]}
    return PANES[name]


def _node(name: str, op: str, line: int, value: float, grad: float, **more: Any) -> Data:
    made: Data = {"id": name, "op": op, "label": name, "line": line, "shape": [], "dtype": "float32"}
    return {**made, "value": array(value), "grad": array(grad), "saved": None, "formula": None, "group": None, **more}


NEST = "for i in range(8):\n    y[i] = a[i] * b[i]\n"
ASM = "step:\n\tvmovups (%rdi), %ymm0\n\tvmulps (%rsi), %ymm0, %ymm0\n\tvmovups %ymm0, (%rdx)\n\tretq\n"
LONG = (
    r"\mathit{loss} = \text{binary\_cross\_entropy\_with\_logits(v3, array(4, 1), reduction='mean')} "
    r"+ \mathit{penalty} \, \mathit{weights\_of\_the\_first\_layer} = 3"
)
PANES: dict[str, Data] = {
    "graph": {
        "nodes": [
            _node("a", "input", 1, 2.0, -3.5),
            _node("b", "parameter", 2, -3.5, 2.0),
            _node("y", "mul", 3, -7.0, 1.0, formula="a * b", saved="its arguments"),
        ],
        "edges": [{"from": "a", "to": "y"}, {"from": "b", "to": "y"}],
        "order": ["a", "b", "y"],
        "backward": ["y", "b", "a"],
    },
    "backward": {
        "program": "def gradient(a, b):\n    y = a * b\n    dy = 1.0\n    da = dy * b\n    return da\n",
        "lines": [{"line": 2, "source_line": 3}, {"line": 4, "source_line": 1}],
        "note": None,
    },
    "derivation": {
        "steps": [
            {"line": 3, "tex": r"y = a \cdot b = -7", "text": "y = a * b = -7", "name": "y"},
            {"line": 1, "tex": r"\bar{a} = \bar{y} \cdot \frac{\partial y}{\partial a}", "text": "da = dy * b",
             "name": "a"},
            {"line": 3, "tex": LONG, "text": "loss = binary_cross_entropy(...) + ... = 3", "name": "loss"},
        ]
    },
    "check": {
        "inputs": [
            {"name": "a", "passed": True, "worst": 1e-9, "where": [], "numeric": -3.5, "analytic": -3.5, "text": ""},
            {"name": "b", "passed": False, "worst": 0.5, "where": [1], "numeric": 2.0, "analytic": 1.0,
             "text": "smooth"},
        ],
        "note": None,
    },
    "kernels": {
        "kernels": [
            {"name": "map 1", "ops": ["mul", "mul"], "lines": [3], "nest": NEST,
             "llvm": "define void @f() {\n  ret void\n}", "asm": ASM, "c": None},
            {"name": "reduce 2", "ops": ["sum"], "lines": [2], "nest": NEST, "llvm": None, "asm": None, "c": None},
        ],
        "note": None,
    },
    "cost": {
        "kernels": [
            {"name": "map 1", "flops": 1e6, "bytes": 1.2e7, "seconds": 1e-3, "lines": [3]},
            {"name": "product 2", "flops": 2e9, "bytes": 3e6, "seconds": 0.03, "lines": [2]},
        ],
        "peak_flops": 1e11, "peak_bandwidth": 2e10, "total_seconds": 0.031, "note": None,
    },
    "doctor": {
        "findings": [
            {"name": "gradients-added", "severity": "error", "title": "zero_grad is missing", "text": "No zero_grad.",
             "line": 2, "remedy": "optimizer.zero_grad()", "page": "findings.html#gradients-added"},
            {"name": "rate", "severity": "info", "title": "the rate is high", "text": PLANTED, "line": None,
             "remedy": None, "page": None},
        ],
        "note": "The program was read.",
    },
}  # fmt: skip  # a table


class PlaygroundServer(ThreadingHTTPServer):
    """Serves the built page, and remembers what it was asked."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, port: int = 0, text: str = TEXT) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.text = text
        self.ended = False
        self.asked: list[tuple[str, Data]] = []
        self.stopping = threading.Event()
        self.paused = threading.Event()
        self.step = threading.Event()
        self.url = f"http://127.0.0.1:{self.server_port}/"
        threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True).start()

    def handle_error(self, request: Any, client_address: object) -> None:
        """Ignore a browser that closed its connection."""

    def end(self) -> None:
        """Answer nothing any more."""
        self.ended = True
        self.stopping.set()
        self.shutdown()
        self.server_close()

    def state(self) -> Data:
        """Return what the page begins with."""
        examples = [
            {"name": name, "title": title, "about": f"About {title}.", "lesson": not name.startswith("product")}
            for name, (title, _) in EXAMPLES.items()
        ]
        return {"text": self.text, "file": None, "examples": examples, "version": "1.0"}

    def events(self, text: str, panes: list[str]) -> Iterator[Data]:
        """Yield what a run of a text does."""
        self.stopping.clear()
        yield {"event": "started"}
        line = broken(text)
        if line is not None:
            place: Data = {"line": line, "column": 4, "traceback": f"line {line}"}
            yield {"event": "error", "kind": "SyntaxError", "message": "invalid syntax", **place}
            yield {"event": "done", "ms": 1.0}
            return
        if "print" in text:
            yield {"event": "output", "text": f"{PLANTED}\n", "stream": "stdout"}
        if "while True" in text:
            self.stopping.wait(20)
            yield {"event": "stopped", "reason": "killed", "message": "stopped"}
            return
        if "train" in text:
            yield from self._loop()
        for name in panes:
            yield {"event": "pane", "name": name, "data": pane(name, text)}
        yield {"event": "done", "ms": 1.0}

    def _loop(self) -> Iterator[Data]:
        cells = base64.b64encode(np.linspace(0, 1, 16, dtype="<f4").tobytes()).decode()
        grid: Data = {
            "rows": 4,
            "columns": 4,
            "data": cells,
            "low": [-1, -1],
            "high": [1, 1],
            "points": [[0.0, 0.5, 1]],
        }
        for step in range(1, 61):
            while self.paused.is_set() and not self.step.is_set():
                time.sleep(0.01)
            self.step.clear()
            yield {"event": "progress", "loop": {"step": step, "loss": 1 / step, "values": {"rate": 0.1}, "grid": grid}}
            time.sleep(0.03)


class _Handler(BaseHTTPRequestHandler):
    server: PlaygroundServer
    protocol_version = "HTTP/1.1"

    def log_message(self, *given: object) -> None:
        """Log nothing."""

    def parse_request(self) -> bool:
        """Hang up if the server has ended: connections that were open outlive it."""
        self.close_connection = self.server.ended
        return not self.server.ended and super().parse_request()

    def do_GET(self) -> None:
        """Answer with a file of the page, its state or an example."""
        place = urlsplit(self.path)
        if place.path == "/api/state":
            self._json(self.server.state())
        elif place.path == "/api/example":
            name = parse_qs(place.query)["name"][0]
            title, text = EXAMPLES[name]
            self._json({"name": name, "title": title, "text": text, "questions": ["Why?", PLANTED]})
        else:
            file = PAGE / (place.path.strip("/") or "playground.html")
            self._send(KINDS.get(file.suffix, "text/plain"), file.read_bytes())

    def do_POST(self) -> None:
        """Run, complete, judge, pause, stop."""
        given = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        what = self.path.removeprefix("/api/")
        self.server.asked.append((what, given))
        if what == "run":
            self._stream(given)
            return
        if what == "stop":
            self.server.stopping.set()
        if what == "pause":
            (self.server.paused.set if given["paused"] else self.server.paused.clear)()
        if what == "step":
            self.server.step.set()
        doc: Data = {"name": "tensor", "type": "function", "signature": "tensor(data, dtype=None)", "doc": PLANTED}
        signature: Data = {
            "label": "tensor(data, dtype=None)",
            "params": ["data", "dtype=None"],
            "index": 0,
            "doc": "Make one.",
        }
        passed = "42" in str(given.get("text"))
        answers: dict[str, Data] = {
            "complete": {"completions": [doc, {**doc, "name": "tensordot"}]},
            "signature": {"signatures": [signature]},
            "judge": {
                "passed": passed,
                "message": "It is 42." if passed else "It is not 1.",
                "hints": ["Six by nine."],
            },
        }
        if what == "export":
            self._send("text/plain", str(given["text"]).encode())
        else:
            self._json(answers.get(what, {}))

    def _stream(self, given: Data) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/x-ndjson")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for event in self.server.events(given["text"], given["panes"]):
            line = json.dumps({**event, "run": given["run"]}).encode() + b"\n"
            self.wfile.write(b"%x\r\n%s\r\n" % (len(line), line))
        self.wfile.write(b"0\r\n\r\n")

    def _json(self, data: Data) -> None:
        self._send("application/json", json.dumps(data).encode())

    def _send(self, kind: str, content: bytes) -> None:
        self.send_response(200)
        for name, value in {
            "Content-Type": kind,
            "Content-Length": str(len(content)),
            "Content-Security-Policy": POLICY,
        }.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)
