"""Fetching data: mirrors in order, checksums, the cache, and no network; the server is on this machine."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from glassgrad.data.download import cache_folder, fetch
from glassgrad.errors import InputError

GOOD = b"the right content"
FILES = {"a.gz": hashlib.sha256(GOOD).hexdigest()}


class Mirror(ThreadingHTTPServer):
    """Serves GOOD under /good, something else under /bad, and remembers what was asked for."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.asked: list[str] = []
        self.root = f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        content = {"/good/a.gz": GOOD, "/bad/a.gz": b"an error page"}.get(self.path)
        self.send_response(404 if content is None else 200)
        self.end_headers()
        self.wfile.write(content or b"")

    def log_message(self, *arguments: object) -> None:
        pass


@pytest.fixture
def mirror(monkeypatch: pytest.MonkeyPatch) -> Iterator[Mirror]:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    server = Mirror()
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_file_is_fetched_once(mirror: Mirror, tmp_path: Path) -> None:
    folder = tmp_path / "cache" / "mnist"
    for _ in range(2):
        assert fetch(FILES, [f"{mirror.root}/good/"], folder) == folder
    assert (folder / "a.gz").read_bytes() == GOOD
    assert mirror.asked == ["/good/a.gz"]


def test_a_wrong_or_missing_file_sends_to_the_next_mirror(mirror: Mirror, tmp_path: Path) -> None:
    fetch(FILES, [f"{mirror.root}/missing", f"{mirror.root}/bad", f"{mirror.root}/good"], tmp_path)
    assert mirror.asked == ["/missing/a.gz", "/bad/a.gz", "/good/a.gz"]
    assert (tmp_path / "a.gz").read_bytes() == GOOD


def test_a_damaged_copy_in_the_cache_is_fetched_again(mirror: Mirror, tmp_path: Path) -> None:
    (tmp_path / "a.gz").write_bytes(GOOD[:-1])
    fetch(FILES, [f"{mirror.root}/good"], tmp_path)
    assert (tmp_path / "a.gz").read_bytes() == GOOD


def test_without_a_mirror_that_serves_it_nothing_is_kept(mirror: Mirror, tmp_path: Path) -> None:
    closed = "http://127.0.0.1:9"  # the discard port: nobody listens
    with pytest.raises(InputError) as caught:
        fetch(FILES, [closed, f"{mirror.root}/bad", "file:///etc"], tmp_path / "cache")
    text = str(caught.value)
    assert text.startswith("cannot fetch a.gz (http://127.0.0.1:9/a.gz: ")
    assert "another file than expected" in text
    assert "neither http nor https" in text
    assert "put MNIST's four files into a folder and give it with --data" in text
    assert not (tmp_path / "cache").exists()


def test_a_cache_that_cannot_be_written(mirror: Mirror, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=r"cannot store .*; set XDG_CACHE_HOME to another folder"):
        fetch(FILES, [f"{mirror.root}/good"], tmp_path / "file" / "mnist")


def test_the_cache_follows_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
    assert cache_folder() == Path("/somewhere/glassgrad")
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", "/home/someone")
    assert cache_folder() == Path("/home/someone/.cache/glassgrad")
