"""The completions of an editor's language server: the part of its protocol for completions."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Self


class Server:
    """A server that talks over its standard input and output, with some folders to find packages in."""

    def __init__(self, command: list[str], root: Path, *paths: Path) -> None:
        self.root, self.paths, self.asked = root, [str(path) for path in paths], 0
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.ask("initialize", processId=None, rootUri=root.as_uri(), capabilities={}, workspaceFolders=None)
        self._send(method="initialized", params={})

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.process.kill()
        self.process.communicate()

    def completions(self, name: str, text: str) -> set[str]:
        """Return the public names offered at the end of a program, which need not be a file."""
        document = {"uri": (self.root / name).as_uri(), "languageId": "python", "version": 1, "text": text}
        self._send(method="textDocument/didOpen", params={"textDocument": document})
        lines = text.split("\n")
        position = {"line": len(lines) - 1, "character": len(lines[-1])}
        found = self.ask("textDocument/completion", textDocument={"uri": document["uri"]}, position=position)
        items = found["items"] if isinstance(found, dict) else found
        return {item["label"] for item in items if not item["label"].startswith("_")}

    def ask(self, method: str, **params: Any) -> Any:
        """Send a request and return its result; questions that the server has meanwhile are answered."""
        self.asked += 1
        self._send(id=self.asked, method=method, params=params)
        while True:
            message = self._read()
            if "method" in message:
                self._answer(message)
            elif message.get("id") == self.asked:
                return message["result"]

    def _answer(self, message: dict[str, Any]) -> None:
        if "id" in message:
            wanted = message.get("params", {}).get("items", [])
            settings = [{"extraPaths": self.paths} for _ in wanted]
            self._send(id=message["id"], result=settings if message["method"] == "workspace/configuration" else None)

    def _send(self, **message: Any) -> None:
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        assert self.process.stdin is not None
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        self.process.stdin.flush()

    def _read(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line: Callable[[], bytes] = self.process.stdout.readline
        length = 0
        while (head := line().strip()) or not length:
            name, _, value = head.partition(b":")
            length = int(value) if name.lower() == b"content-length" else length
            assert head, "the server has ended"
        return json.loads(self.process.stdout.read(length))


__all__ = ["Server"]
