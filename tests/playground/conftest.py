"""One server and one set of processes for all tests of this folder, and a home folder of their own."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPMessage
from typing import Any

import pytest

from glassgrad.lessons.playground.runner import Runner
from glassgrad.lessons.playground.server import Server

BYTES = 1 << 30


@dataclass(frozen=True)
class Answer:
    """What the server has sent."""

    status: int
    headers: HTTPMessage
    body: bytes


@dataclass
class Client:
    """Asks a server as its page does; headers can be replaced, None leaves one out."""

    server: Server

    def send(self, method: str, path: str, body: Any = None, **headers: str | None) -> Answer:
        """Send a request and return the answer."""
        host = f"127.0.0.1:{self.server.server_port}"
        given = {"Host": host, "Origin": f"http://{host}", "X-Token": self.server.token}
        given |= {name.replace("_", "-"): value for name, value in headers.items()}
        content = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        connection = HTTPConnection("127.0.0.1", self.server.server_port, timeout=60)
        connection.putrequest(method, path, skip_host=True)
        for name, value in {"Content-Length": str(len(content)), **given}.items():
            if value is not None:
                connection.putheader(name, value)
        connection.endheaders()
        if content and method == "POST":
            connection.send(content)
        with contextlib.closing(connection):
            answer = connection.getresponse()
            return Answer(answer.status, answer.headers, answer.read())

    def json(self, method: str, path: str, body: Any = None) -> Any:
        """Return the answer to a request as data."""
        answer = self.send(method, path, body)
        return json.loads(answer.body)

    def run(self, text: str, *panes: str, run: int = 1, **more: Any) -> list[dict[str, Any]]:
        """Run a program and return its events."""
        answer = self.send("POST", "/api/run", {"text": text, "panes": list(panes), "run": run, **more})
        assert answer.status == 200, answer.body
        return [json.loads(line) for line in answer.body.splitlines()]


@pytest.fixture(scope="session")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """A server in a thread, whose programs have a second."""
    home = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(home))
        patch.setenv("USERPROFILE", str(home))
        with Server(seconds=1.0, most=BYTES) as server:
            thread = threading.Thread(target=server.serve_forever, daemon=True)
            thread.start()
            yield Client(server)
            server.shutdown()
            thread.join()


@pytest.fixture(scope="session")
def runner(client: Client) -> Runner:
    """The processes behind the server."""
    return client.server.runner
