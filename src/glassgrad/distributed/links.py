"""Connections of the guards: every rank has one over TCP to rank 0, which decides."""

from __future__ import annotations

import hmac
import json
import os
import select
import selectors
import socket
import time
from contextlib import suppress
from typing import Any, Protocol

from glassgrad import errors
from glassgrad.distributed.monitor import Monitor

_EVERY = 0.5  # seconds between two reports of a rank


class Owner(Protocol):
    """The interface of the guard that a connection belongs to."""

    rank: int
    names: list[str]
    patience: float
    all_left: Any

    def verdict(self, text: str, code: int) -> None:
        """Print the failure, inform all ranks, and end."""

    def end(self, code: int) -> None:
        """End this process at once."""


def say(text: str) -> None:
    """Write a line to standard error, even if the program has replaced Python's stream."""
    with suppress(OSError):
        os.write(2, f"{text}\n".encode(errors="replace"))


def listen(one_host: bool) -> socket.socket:
    """Return a socket that the other ranks can reach; it is local if all ranks are on this machine."""
    listener = socket.create_server(("127.0.0.1" if one_host else "", 0), backlog=1024)
    listener.setblocking(False)
    return listener


class Lines:
    """Messages over a socket: a line of JSON each."""

    def __init__(self, end: socket.socket) -> None:
        self.socket = end
        self._rest = b""

    def send(self, message: dict[str, object]) -> None:
        self.socket.sendall(json.dumps(message).encode() + b"\n")

    def read(self) -> list[dict[str, Any]] | None:
        """Return the messages that have arrived; None when the other side has closed."""
        try:
            data = self.socket.recv(1 << 16)
        except ConnectionError:
            return None
        if not data:
            return None
        *lines, self._rest = (self._rest + data).split(b"\n")
        return [json.loads(line) for line in lines]


class Link:
    """A guard's connection to the other guards."""

    def turn(self, state: dict[str, object]) -> None:
        """Report, and handle incoming messages, for half a second."""

    def failed(self, error: str) -> None:
        """Report that this rank has raised."""

    def left(self, code: int) -> None:
        """Report that this rank has finished."""

    def tell(self, message: dict[str, object]) -> None:
        """Send a message to all others."""

    def close(self) -> None:
        """Close the connections."""


class Arm(Link):
    """The connection of any rank other than 0 to rank 0."""

    def __init__(self, guard: Owner, host: str, port: int, token: str) -> None:
        self.guard = guard
        self.lines: Lines | None = None
        self.heard = time.monotonic()
        try:
            connection = socket.create_connection((host, port), timeout=10.0)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.lines = Lines(connection)
            self._send({"rank": guard.rank, "token": token})
        except OSError as error:
            say(errors.RANK_NO_WATCH.text(rank=guard.rank, address=f"{host}:{port}", reason=error))

    def _send(self, message: dict[str, object]) -> None:
        if self.lines is not None:
            with suppress(OSError):  # reading will notice that rank 0 is gone
                self.lines.send(message)

    def turn(self, state: dict[str, object]) -> None:
        if self.lines is None:
            time.sleep(_EVERY)
            return
        self._send(state)
        if not select.select([self.lines.socket], [], [], _EVERY)[0]:
            if time.monotonic() - self.heard > self.guard.patience:
                self._first_is_gone(silent=True)
            return
        messages = self.lines.read()
        if messages is None:
            self._first_is_gone(silent=False)
            return
        self.heard = time.monotonic()
        for message in messages:
            if "end" in message:
                self.guard.end(int(message["end"]))
            if "over" in message:
                self.guard.all_left.set()

    def _first_is_gone(self, *, silent: bool) -> None:
        if self.guard.all_left.is_set():
            self.close()
            return
        if self.guard.rank == 1:  # one rank is enough to report it
            name = self.guard.names[0]
            facts = {"rank": name, "seconds": time.monotonic() - self.heard, "at": "a place not known"}
            say("error: " + (errors.RANK_SILENT.text(**facts) if silent else errors.RANK_DIED.text(rank=name)))
        time.sleep(0.2)
        self.guard.end(1)

    def failed(self, error: str) -> None:
        self._send({"failed": error})

    def left(self, code: int) -> None:
        self._send({"left": code})
        if self.lines is None:
            self.guard.all_left.set()

    def close(self) -> None:
        if self.lines is not None:
            self.lines.socket.close()
            self.lines = None


class Center(Link):
    """The connections of rank 0, which decides."""

    def __init__(self, guard: Owner, listener: socket.socket, token: str) -> None:
        self.guard = guard
        self.token = token
        self.listener = listener
        self.monitor = Monitor(guard.names, guard.patience, time.monotonic())
        self.arms: dict[int, Lines] = {}
        self.selector = selectors.DefaultSelector()
        self.selector.register(listener, selectors.EVENT_READ, self._accept)

    def turn(self, state: dict[str, object]) -> None:
        until = time.monotonic() + _EVERY
        self.monitor.hear(0, state, time.monotonic())
        while (rest := until - time.monotonic()) > 0:
            for key, _ in self.selector.select(rest):
                key.data()
        self._judge()
        self.tell({"beat": True})

    def _judge(self) -> None:
        now = time.monotonic()
        if self.monitor.over and not self.guard.all_left.is_set():
            self.tell({"over": True})
            self.guard.all_left.set()
        elif found := self.monitor.judge(now):
            self.guard.verdict(*found)
        elif text := self.monitor.slow(now):
            say(text)

    def _accept(self) -> None:
        connection, _ = self.listener.accept()
        connection.settimeout(5.0)
        lines = Lines(connection)
        with suppress(OSError, ValueError, KeyError, TypeError, IndexError):
            hello, *more = lines.read() or [{}]
            if hmac.compare_digest(str(hello["token"]), self.token):
                rank = int(hello["rank"])
                self.arms[rank] = lines
                self.selector.register(connection, selectors.EVENT_READ, lambda: self._read(rank))
                self._take(rank, more)
                return
        connection.close()  # not one of the ranks

    def _read(self, rank: int) -> None:
        messages = self.arms[rank].read()
        if messages is None:
            self.selector.unregister(self.arms[rank].socket)
            self.arms.pop(rank).socket.close()
            if self.monitor.ranks[rank].left is None:
                self.guard.verdict(self.monitor.died(rank), 1)
        self._take(rank, messages or [])

    def _take(self, rank: int, messages: list[dict[str, Any]]) -> None:
        for message in messages:
            if "failed" in message:
                time.sleep(0.3)  # other ranks may be about to print the same error
                self.guard.verdict(errors.RANK_RAISED.text(rank=self.guard.names[rank], error=message["failed"]), 1)
            elif "left" in message:
                self.monitor.leaves(rank, int(message["left"]))
                if self.monitor.over:
                    self._judge()
            else:
                self.monitor.hear(rank, message, time.monotonic())

    def failed(self, error: str) -> None:
        self.guard.verdict(errors.RANK_RAISED.text(rank=self.guard.names[0], error=error), 1)

    def left(self, code: int) -> None:
        self.monitor.leaves(0, code)

    def tell(self, message: dict[str, object]) -> None:
        for lines in self.arms.values():
            with suppress(OSError):
                lines.send(message)

    def close(self) -> None:
        self.listener.close()
        for lines in self.arms.values():
            lines.socket.close()
