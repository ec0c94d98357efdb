"""The first signal requests a stop, the second forces it, and no save is interrupted."""

from __future__ import annotations

import os
import signal
import sys
import threading

import pytest

from glassgrad.train.signals import StopSignals

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="os.kill sends no such signals there")


def send(number: int = signal.SIGINT) -> None:
    os.kill(os.getpid(), number)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_the_first_signal_only_asks(number: int) -> None:
    with StopSignals() as stop:
        send(number)
        assert stop.requested == number


def test_the_second_signal_insists() -> None:
    with StopSignals() as stop:
        send()
        with pytest.raises(KeyboardInterrupt):
            send()
        assert stop.requested == signal.SIGINT


def test_a_signal_that_another_rank_had_first_insists_on_nothing() -> None:
    with StopSignals() as stop:
        stop.join(signal.SIGINT)
        assert stop.requested == signal.SIGINT
        send()
        assert stop.requested == signal.SIGINT
        with pytest.raises(KeyboardInterrupt):
            send()


def test_a_save_is_finished_first() -> None:
    done = []

    def save() -> None:
        with stop.protected():
            send()
            send()
            done.append("saved")

    with StopSignals() as stop:
        send()
        with pytest.raises(KeyboardInterrupt):
            save()
        assert done == ["saved"]
        with stop.protected():  # what was overdue has been delivered
            done.append("again")
    assert done == ["saved", "again"]


def test_one_signal_during_a_save_only_asks() -> None:
    with StopSignals() as stop:
        with stop.protected():
            send()
        assert stop.requested == signal.SIGINT


def test_work_that_loses_nothing_is_cut_at_once() -> None:
    with StopSignals() as stop:
        stop.at_once = True
        with pytest.raises(KeyboardInterrupt):
            send()
        assert stop.requested == signal.SIGINT


def test_former_handlers_come_back() -> None:
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    with StopSignals():
        assert signal.getsignal(signal.SIGINT) != before[0]
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before


def test_an_ignored_signal_stays_ignored() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with StopSignals() as stop:
            send(signal.SIGHUP)
            assert stop.requested == 0
    finally:
        signal.signal(signal.SIGHUP, before)


def test_other_threads_can_ask_by_hand() -> None:
    found = []

    def work() -> None:
        with StopSignals() as stop:
            stop.request(signal.SIGTERM)
            stop.request(signal.SIGINT)
            found.append(stop.requested)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == [signal.SIGTERM]
