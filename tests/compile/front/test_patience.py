"""A message in a terminal announces waiting for the compiler; pipes stay silent."""

from __future__ import annotations

import io
import sys
import threading

import pytest

import glassgrad as gg
from glassgrad.compile import patience


class Screen(io.StringIO):
    """A stream that says it is a terminal, and when something was written to it."""

    def __init__(self, terminal):
        super().__init__()
        self.terminal, self.written = terminal, threading.Event()

    def isatty(self):
        return self.terminal

    def flush(self):
        self.written.set()


@pytest.fixture
def screen(monkeypatch):
    def made(terminal):
        stream = Screen(terminal)
        monkeypatch.setattr(sys, "stderr", stream)
        return stream

    return made


def test_a_terminal_is_told_what_takes_long(screen, monkeypatch):
    stream = screen(True)
    monkeypatch.setattr(patience, "SECONDS", 0.0)
    with patience.told_if_long("step", 1234):
        assert stream.written.wait(30)
    assert stream.getvalue() == "glassgrad: compiling step, 1,234 instructions ...\n"


def test_what_is_soon_done_is_not_announced(screen):
    stream = screen(True)
    gg.compile(lambda x: x + 1, backend="numpy")(gg.ones(3))
    with patience.told_if_long("step", 5):
        waiting = [thread for thread in threading.enumerate() if isinstance(thread, threading.Timer)]
    for thread in waiting:
        thread.join(30)
    assert waiting, "a timer ran"
    assert not stream.getvalue()


def test_a_pipe_gets_nothing_and_no_thread(screen):
    stream, before = screen(False), threading.active_count()
    with patience.told_if_long("step", 5):
        assert threading.active_count() == before
    assert not stream.getvalue()
