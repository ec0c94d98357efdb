"""A server of pages for this machine, and only for the browser that was given the whole address.

Any program on this machine, and any page in its browser, can reach a port of the loopback address. Therefore an address
has a token; requests for other host names are refused, since a foreign name can be made to resolve to this machine; and
whatever changes something must come from the page itself.
"""

from __future__ import annotations

import json
import secrets
import sys
from collections.abc import Mapping
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import TCPServer
from typing import Any

from glassgrad import errors

HEADERS = {
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
"""What every answer says: it is neither kept, nor framed, nor read by other pages."""
MOST_SENT = 1 << 20
"""Bytes of a request's body; nothing that a person writes is as long."""


class LocalServer(ThreadingHTTPServer):
    """Serves pages on the loopback address, each request in a thread of its own.

    Attributes:
        token: what an address must contain.
        address: the address without the token.

    Raises:
        InputError: the port is in use.
    """

    daemon_threads = True
    allow_reuse_address = sys.platform != "win32"  # there it would let two servers share one port

    def __init__(self, handler: type[LocalHandler], port: int = 0) -> None:
        self.token = secrets.token_urlsafe(16)
        try:
            super().__init__(("127.0.0.1", port), handler)
        except OSError as error:
            raise errors.LIVE_PORT(port=port, reason=error.strerror or error) from None
        self.address = f"http://127.0.0.1:{self.server_port}/"
        self.hosts = {f"{name}:{self.server_port}" for name in ("127.0.0.1", "localhost")}

    def server_bind(self) -> None:
        """Bind to the address without looking up its name, which can take seconds and is not used."""
        TCPServer.server_bind(self)
        self.server_name, self.server_port = str(self.server_address[0]), int(self.server_address[1])

    def handle_error(self, request: Any, client_address: object) -> None:
        """Ignore a browser that closed its connection."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


class LocalHandler(BaseHTTPRequestHandler):
    """Answers a request by `get` or `post`, and knows who may ask."""

    server: LocalServer
    protocol_version = "HTTP/1.1"
    timeout = 30
    disable_nagle_algorithm = True  # an answer is several small writes, each of which would wait for the one before

    def get(self) -> None:
        """Answer a GET."""
        self.refuse(HTTPStatus.NOT_FOUND)

    def post(self) -> None:
        """Answer a POST."""
        self.refuse(HTTPStatus.NOT_FOUND)

    def do_GET(self) -> None:
        """Answer a GET, as Python's server calls it."""
        self.get()

    def do_POST(self) -> None:
        """Answer a POST, as Python's server calls it."""
        self.post()

    def is_for_here(self) -> bool:
        """Tell whether a request names this machine as its host."""
        return self.headers.get("Host", "") in self.server.hosts

    def is_from_page(self) -> bool:
        """Tell whether a page of this server has sent a request."""
        return self.headers.get("Origin", "").removeprefix("http://") in self.server.hosts

    def has_token(self, *given: str) -> bool:
        """Tell whether one of some texts is the token, in a time that does not depend on where they differ."""
        return any(secrets.compare_digest(one.encode(), self.server.token.encode()) for one in given)

    def given(self) -> Mapping[str, object] | None:
        """Return the object in the body of a page's request, empty without a body.

        Anything else is refused, and the result is None.
        """
        length = self.headers.get("Content-Length", "")
        if not self.is_from_page():
            self.refuse(HTTPStatus.FORBIDDEN)
        elif not (length.isascii() and length.isdigit()):
            self.refuse(HTTPStatus.LENGTH_REQUIRED)
        elif len(length) > len(str(MOST_SENT)) or int(length) > MOST_SENT:
            self.refuse(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
        else:
            found: object = None
            with suppress(ValueError, RecursionError):
                found = json.loads(self.rfile.read(int(length)) or b"{}")
            if isinstance(found, dict):
                return found
            self.refuse(HTTPStatus.BAD_REQUEST)
        return None

    def refuse(self, status: HTTPStatus) -> None:
        """Answer with a status, and close the connection: a body is not read."""
        self.close_connection = True
        self.send(status, "text/plain; charset=utf-8", f"{status.phrase}\n".encode())

    def send(self, status: HTTPStatus, kind: str, content: bytes, more: Mapping[str, str] | None = None) -> None:
        """Answer with a content and its type."""
        self.head(status, {"Content-Type": kind, "Content-Length": str(len(content)), **(more or {})})
        self.wfile.write(content)

    def head(self, status: HTTPStatus, own: Mapping[str, str]) -> None:
        """Send the head of an answer: some fields, and those of `HEADERS`."""
        self.send_response(status)
        for name, value in {**HEADERS, **own}.items():
            self.send_header(name, value)
        self.end_headers()

    def log_message(self, *given: object) -> None:
        """Log nothing: the terminal shows only the address."""
