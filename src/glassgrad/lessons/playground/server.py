"""The server of the playground: its page, and what the page asks for. The token is in a cookie or a header."""

from __future__ import annotations

import json
import select
import socket
import threading
from collections.abc import Callable, Generator, Mapping
from contextlib import closing, suppress
from functools import partial
from http import HTTPStatus
from http.cookies import CookieError, SimpleCookie
from pathlib import Path
from typing import TypeVar
from urllib.parse import parse_qs

from glassgrad import errors
from glassgrad._version import __version__
from glassgrad.base.local_server import LocalHandler, LocalServer
from glassgrad.lessons.playground import completing, gallery, saving
from glassgrad.lessons.playground.events import BYTES, SECONDS
from glassgrad.lessons.playground.runner import Runner

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_TYPES = {".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".txt": "text/plain"}

Data = dict[str, object]
T = TypeVar("T")


class Server(LocalServer):
    """Serves the playground to this machine; `url` is its address, including the token.

    Args:
        file: the program to open and to save; by default `~/.glassgrad/playground.py`, once it is saved.
        port: 0 for a free one.
        example: the name of an example to open.
        seconds, most: limits of a run: time without progress, and bytes.

    Raises:
        InputError: the file cannot be read, there is no such example, or the port is in use.
    """

    def __init__(
        self, file: Path | None = None, port: int = 0, example: str = "", seconds: float = SECONDS, most: int = BYTES
    ) -> None:
        self.file = file
        saving.opened(file)  # refuse a file that cannot be read before serving
        self.first = gallery.text_of(example) if example else None
        super().__init__(_Handler, port)
        self.cookie = f"glassgrad_{self.server_port}"
        self.url = f"{self.address}?token={self.token}"
        self.runner = Runner(seconds, most)
        self._keeping = threading.Lock()
        self._latest = ""

    def server_close(self) -> None:
        """Close the port, and end the processes."""
        super().server_close()
        if hasattr(self, "runner"):
            self.runner.close()

    # --- what the page asks for ---------------------------------------------------------------------------------

    def state(self) -> Data:
        """Return the text to begin with, and the examples."""
        text = saving.opened(self.file) if self.first is None else self.first
        name = None if self.file is None else self.file.name
        return {"text": text, "file": name, "examples": gallery.listed(), "version": __version__}

    def save(self, given: Mapping[str, object]) -> Data:
        """Write the text to its file."""
        self._latest = text = _asked(given, "text", str)
        with self._keeping:  # two writers of one file would take each other's temporary file away
            path = saving.save(text, self.file)
        self.first = None
        return {"file": str(path)}

    def run(self, given: Mapping[str, object], wanted: Callable[[], bool]) -> Generator[Data]:
        """Keep the text and run it."""
        given = {"panes": ["values"], "run": 0, "page": "", **given}
        text, number, page = _asked(given, "text", str), _asked(given, "run", int), _asked(given, "page", str)
        panes = [str(one) for one in _asked(given, "panes", list)]
        self._latest = text
        with closing(self.runner.run(text, panes, number, self.file, wanted, page)) as events:
            # Beside the run: writing to a disk takes as long as a small program.
            threading.Thread(target=self._keep, daemon=True).start()
            yield from events

    def _keep(self) -> None:
        with self._keeping, suppress(OSError, errors.GlassgradError):  # a full disk keeps nobody from trying things
            saving.save(self._latest, None)


def _asked(given: Mapping[str, object], name: str, kind: type[T]) -> T:
    value = given.get(name)
    if not isinstance(value, kind):
        raise errors.PLAYGROUND_REQUEST(what=f"{name} is a {kind.__name__}")
    return value


class _Handler(LocalHandler):
    server: Server

    # --- who may ask ----------------------------------------------------------------------------------------------

    def _is_known(self) -> bool:
        """Tell whether a request is for this host and has the token; refuse it otherwise."""
        if not self.is_for_here():
            self.refuse(HTTPStatus.FORBIDDEN)
        elif not self.has_token(self.headers.get("X-Token", ""), self._cookie()):
            self.refuse(HTTPStatus.NOT_FOUND)
        else:
            return True
        return False

    def _cookie(self) -> str:
        with suppress(CookieError, KeyError):
            return SimpleCookie(self.headers.get("Cookie", ""))[self.server.cookie].value
        return ""

    # --- reading ----------------------------------------------------------------------------------------------------

    def get(self) -> None:
        """Send a file of the page, the state, or an example."""
        path, _, query = self.path.partition("?")
        token, name = (parse_qs(query).get(key, [""])[0] for key in ("token", "name"))
        if path == "/" and self.is_for_here() and self.has_token(token):
            # The browser gets its cookie, and an address without the token.
            cookie = f"{self.server.cookie}={self.server.token}; HttpOnly; SameSite=Strict; Path=/"
            self.send(HTTPStatus.SEE_OTHER, "text/plain", b"", {"Set-Cookie": cookie, "Location": "/"})
        elif not self._is_known():
            return
        elif path == "/api/state":
            self._answer(self.server.state)
        elif path == "/api/example":
            self._answer(lambda: gallery.example(name))
        else:
            self._file(saving.PAGE / ("playground.html" if path == "/" else path.removeprefix("/")))

    def _file(self, path: Path) -> None:
        if path.suffix not in _TYPES or path.parent != saving.PAGE or not path.is_file():
            self.refuse(HTTPStatus.NOT_FOUND)
        else:
            self.send(HTTPStatus.OK, f"{_TYPES[path.suffix]}; charset=utf-8", path.read_bytes())

    # --- doing ------------------------------------------------------------------------------------------------------

    def post(self) -> None:
        """Run, steer, complete, judge, save or export."""
        given = self.given() if self._is_known() else None
        if given is None:
            return
        server, runner = self.server, self.server.runner
        text = partial(_asked, given, "text", str)

        def place() -> tuple[str, int, int]:
            return text(), _asked(given, "line", int), _asked(given, "column", int)

        actions: dict[str, Callable[[], object]] = {
            "run": lambda: self._stream(given),
            "stop": runner.stop,
            "pause": lambda: runner.steer("pause", paused=bool(given.get("paused"))),
            "step": lambda: runner.steer("step"),
            "save": lambda: server.save(given),
            "complete": lambda: completing.complete(*place()),
            "signature": lambda: completing.signatures(*place()),
            "judge": lambda: gallery.judged(runner, str(given.get("exercise", "")), text()),
            "export": lambda: self._export(given),
        }
        name = self.path.removeprefix("/api/")
        if name in actions:
            self._answer(actions[name], own=name in {"run", "export"})
        else:
            self.refuse(HTTPStatus.NOT_FOUND)

    def _stream(self, given: Mapping[str, object]) -> None:
        """Send the events of a run, each as soon as it is there."""
        with closing(self.server.run(given, self._is_there)) as events:
            first = next(events)  # or it cannot be run, and this is told
            self.head(HTTPStatus.OK, {"Content-Type": "application/x-ndjson", "Transfer-Encoding": "chunked"})
            self._chunk(first)
            for event in events:
                self._chunk(event)
            self.wfile.write(b"0\r\n\r\n")

    def _is_there(self) -> bool:
        """Tell whether the page still reads."""
        try:
            heard, _, _ = select.select([self.connection], [], [], 0)
            return not heard or bool(self.connection.recv(1, socket.MSG_PEEK))
        except (OSError, ValueError):
            return False

    def _chunk(self, event: Data) -> None:
        line = json.dumps(event).encode() + b"\n"
        self.wfile.write(b"%x\r\n%s\r\n" % (len(line), line))
        self.wfile.flush()

    def _export(self, given: Mapping[str, object]) -> None:
        text, kind = _asked(given, "text", str), str(given.get("format", ""))
        kind, content = saving.exported(text, kind, self.server.runner)
        self.send(HTTPStatus.OK, kind, content, {"Content-Disposition": "attachment"})

    # --- sending ----------------------------------------------------------------------------------------------------

    def _answer(self, make: Callable[[], object], *, own: bool = False) -> None:
        """Send what a function returns, unless it sends its own answer, or why there is nothing to send."""
        status = HTTPStatus.OK
        try:
            found = make()
        except errors.GlassgradError as error:
            status, found, own = HTTPStatus.BAD_REQUEST, {"message": str(error)}, False
        if not own:
            self.send(status, "application/json", json.dumps(found or {}).encode())

    def head(self, status: HTTPStatus, own: Mapping[str, str]) -> None:
        """Send the head of an answer, with the page's policy."""
        super().head(status, {"Content-Security-Policy": POLICY, **own})
