"""`glassgrad live`: serve the page of a run on the loopback address, with updates and a button to stop the run.

Any program on this machine, and any page in its browser, can reach a port of the loopback address. Therefore the
address has a token, requests for other host names are refused (a foreign name can be made to resolve to this machine),
and a stop must come from the page itself.
"""

from __future__ import annotations

import json
import secrets
import sys
from collections.abc import Callable
from functools import partial
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from socketserver import TCPServer
from typing import Any
from urllib.parse import parse_qs

from glassgrad import errors
from glassgrad.report.page import html_page
from glassgrad.train.kept import rundir
from glassgrad.train.kept.rundir import GRAPH
from glassgrad.train.show.run_data import run_data
from glassgrad.train.show.run_page import page_data

SECONDS = 2.0
"""The time between two requests of the page."""


class PageServer(ThreadingHTTPServer):
    """Serves the page of one run to this machine; `url` is its address, including the token.

    Raises `errors.InputError` if there is no run or the port is in use.
    """

    daemon_threads = True
    allow_reuse_address = sys.platform != "win32"  # there it would let two servers share one port

    def __init__(self, run: Path, port: int = 0) -> None:
        run_data(run, after=0)  # refuse anything but a run before serving
        self.run = run
        self.token = secrets.token_urlsafe(16)
        try:
            super().__init__(("127.0.0.1", port), _Handler)
        except OSError as error:
            raise errors.LIVE_PORT(port=port, reason=error.strerror or error) from None
        self.url = f"http://127.0.0.1:{self.server_port}/{self.token}/"
        self.hosts = {f"{name}:{self.server_port}" for name in ("127.0.0.1", "localhost")}

    def server_bind(self) -> None:
        """Bind to the address without looking up its name, which can take seconds and is not used."""
        TCPServer.server_bind(self)
        self.server_name, self.server_port = str(self.server_address[0]), int(self.server_address[1])

    def handle_error(self, request: Any, client_address: object) -> None:
        """Ignore a browser that closed its connection."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)

    def page(self) -> str:
        """Return the page with all current data."""
        graph = GRAPH if (self.run / GRAPH).is_file() else ""
        data = page_data([{**run_data(self.run), "graph": graph}])
        return html_page(self.run.resolve().name, {**data, "live": {"seconds": SECONDS}}, live=True)

    def news(self, after: int, watched: tuple[int, int] | None) -> str:
        """Return the data after `after` records, the new samples of layers, and everything else that changes."""
        return json.dumps(run_data(self.run, after=after, watched=watched), allow_nan=False)


def _count(given: str) -> int | None:
    return int(given) if given.isascii() and given.isdigit() and len(given) < 12 else None


class _Handler(BaseHTTPRequestHandler):
    server: PageServer
    protocol_version = "HTTP/1.1"
    timeout = 30

    def do_GET(self) -> None:
        """Send the page, or the new data of the run."""
        place = self._place()
        if place == "":
            self._answer("text/html; charset=utf-8", self.server.page)
        elif place == "data":
            given = parse_qs(self.path.partition("?")[2])
            after, first, last = (_count(given.get(name, [""])[0]) for name in ("after", "first", "last"))
            watched = None if first is None or last is None else (first, last)
            self._answer("application/json", partial(self.server.news, after or 0, watched))
        elif place == GRAPH and (self.server.run / GRAPH).is_file():
            self._answer("text/html; charset=utf-8", partial((self.server.run / GRAPH).read_text, encoding="utf-8"))
        elif place is not None:
            self._refuse(HTTPStatus.NOT_FOUND)

    def do_POST(self) -> None:
        """Ask the run to stop."""
        self.close_connection = True  # the body is not read
        place = self._place()
        if place is None:
            return
        if self.headers.get("Origin", "").removeprefix("http://") not in self.server.hosts:
            self._refuse(HTTPStatus.FORBIDDEN)
        elif place != "stop":
            self._refuse(HTTPStatus.NOT_FOUND)
        else:
            self._answer("application/json", self._stop)

    def _stop(self) -> str:
        (self.server.run / rundir.STOP).touch()
        return "{}"

    def _place(self) -> str | None:
        """Return the path after the token; None if the request is refused."""
        if self.headers.get("Host", "") not in self.server.hosts:
            self._refuse(HTTPStatus.FORBIDDEN)
            return None
        _, token, place, *_ = [*self.path.partition("?")[0].split("/", 2), "", ""]
        if not secrets.compare_digest(token.encode(), self.server.token.encode()):
            self._refuse(HTTPStatus.NOT_FOUND)
            return None
        return place

    def _answer(self, kind: str, make: Callable[[], str]) -> None:
        try:
            content = make().encode()
        except (OSError, errors.GlassgradError):
            self._refuse(HTTPStatus.SERVICE_UNAVAILABLE)
            return
        self._send(HTTPStatus.OK, kind, content)

    def _refuse(self, status: HTTPStatus) -> None:
        self.close_connection = True
        self._send(status, "text/plain; charset=utf-8", f"{status.phrase}\n".encode())

    def _send(self, status: HTTPStatus, kind: str, content: bytes) -> None:
        self.send_response(status)
        headers = {
            "Content-Type": kind,
            "Content-Length": str(len(content)),
            "Cache-Control": "no-store",
            "Cross-Origin-Resource-Policy": "same-origin",
            "Referrer-Policy": "no-referrer",
            "X-Content-Type-Options": "nosniff",
            "X-Frame-Options": "DENY",
        }
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *given: object) -> None:
        """Log nothing: the terminal shows only the address."""
