"""A rank that dies, hangs or raises an error ends all ranks quickly and is named."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

import pytest

from glassgrad.distributed.guard import _compare
from glassgrad.distributed.life import Life
from glassgrad.distributed.monitor import Monitor
from glassgrad.errors import RunError

PROGRAM = """
import os, signal, sys, time
import glassgrad as gg, glassgrad.distributed as dist

dist.init_process_group()
how, who = sys.argv[1], int(sys.argv[2])
x = gg.ones(4)
dist.all_reduce(x)
from glassgrad.distributed.segments import segments
print("here", *segments(), flush=True)
if dist.get_rank() == who:
    if how == "raise":
        raise ValueError("a fault")
    if how == "exit":
        sys.exit(3)
    if how == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if how == "stop":
        os.kill(os.getpid(), signal.SIGSTOP)
    if how == "hang":
        time.sleep(1000)
    if how == "circle":
        while True:
            pass
    if how == "native":
        import hashlib
        hashlib.pbkdf2_hmac("sha256", b"", b"", 10**9)  # minutes, with the lock of Python free
    if how == "stuck":
        import re
        re.match("(a+)+$", "a" * 50 + "b")  # years, with the lock of Python held
    if how == "other":
        dist.recv(x, 1 - who)
    end = time.time() + 2.5
    if how == "busy":
        with dist.busy("a loop of this test"):
            while time.time() < end:
                pass
    if how == "work":
        net = gg.nn.Linear(300, 300)
        while time.time() < end:
            net(gg.ones(300, 300)).sum().backward()
    if how == "compile":
        for width in range(3, 99):
            gg.compile(lambda x: (gg.sin(x) @ x).sum())(gg.ones(width, width))
            if time.time() > end:
                break
dist.all_reduce(x)
print("done", flush=True)
"""


@pytest.mark.parametrize(
    ("how", "who", "said"),
    [
        ("raise", 0, "error: rank 0 (process {pid} on {host}) raised ValueError: a fault; all ranks were ended"),
        ("raise", 1, "error: rank 1 (process {pid} on {host}) raised ValueError: a fault; all ranks were ended"),
        (
            "exit",
            1,
            "error: rank 1 (process {pid} on {host}) has ended, while others wait for it: rank 0 in all_reduce",
        ),
        ("stop", 0, "error: rank 0 (process {pid} on {host}) has sent no sign of life"),
        ("hang", 1, "error: rank 1 (process {pid} on {host}) has done nothing for "),
        ("circle", 1, "error: rank 1 (process {pid} on {host}) has computed for "),
        ("other", 1, "error: all ranks have waited for one another for "),
        ("circle", 0, "error: rank 0 (process {pid} on {host}) has computed for "),
        ("native", 1, "error: rank 1 (process {pid} on {host}) has computed for "),
        ("stuck", 1, "error: rank 1 (process {pid} on {host}) has sent no sign of life"),
    ],
)
def test_ends_all_and_names_the_rank(ranks, how: str, who: int, said: str) -> None:
    ended = ranks(PROGRAM, args=[how, who], code=None, limit=10.0, env={"GLASSGRAD_HANG_SECONDS": "2"})
    assert ended.code != 0, str(ended)
    beginning, *rest = said.split("{pid}")
    line = next((one for err in ended.err for one in err.splitlines() if one.startswith(beginning)), None)
    assert line is not None, str(ended)
    assert not rest or rest[0].replace("{host}", os.uname().nodename) in line
    memory = {file for out in ended.out for line in out.splitlines() for file in line.split()[1:]}
    assert memory
    assert not any(Path(file).exists() for file in memory)
    assert not any("done" in out for out in ended.out)


def test_a_kill_ends_all(ranks) -> None:
    """The launcher is as fast as the guard here, so that only the end is sure; `glassgrad launch` names the rank."""
    ended = ranks(PROGRAM, n=3, args=["kill", 1], code=None, limit=10.0)
    assert ended.code != 0
    assert not any("done" in out for out in ended.out)


@pytest.mark.parametrize("how", ["busy", "compile", pytest.param("work", marks=pytest.mark.slow)])
def test_a_rank_that_computes_is_waited_for(ranks, how: str) -> None:
    ended = ranks(PROGRAM, args=[how, 1], env={"GLASSGRAD_HANG_SECONDS": "1"})
    assert ["done" in out for out in ended.out] == [True, True], str(ended)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("how", "who"), [("stop", 0), ("stop", 1), ("hang", 0), ("hang", 2), ("circle", 0), ("circle", 2), ("native", 1)]
)
def test_ends_within_ten_seconds_as_it_is_set(ranks, how: str, who: int) -> None:
    ended = ranks(PROGRAM, n=3, args=[how, who], code=None, limit=20.0)
    started = 2.0
    assert ended.code != 0
    assert ended.seconds < 10.0 + started, str(ended)


# --- what is decided ---------------------------------------------------------------------------------


def of_two(patience: float = 8.0) -> Monitor:
    return Monitor(["rank 0 (process 10 on a)", "rank 1 (process 11 on b)"], patience, now=0.0)


def state(call: str = "", number: int = 1, idle: float = 0.0, circling: float = 0.0) -> dict[str, object]:
    return {"call": call, "number": number, "idle": idle, "circling": circling, "at": "train.py:7 in step"}


def test_nothing_is_wrong_while_ranks_compute_or_wait_for_one_that_does() -> None:
    monitor = of_two()
    for now in range(40):
        monitor.hear(0, state("all_reduce"), now)
        monitor.hear(1, state(), now)
        assert monitor.judge(now) is None
    text = monitor.slow(40)
    assert text.startswith("waiting for more than 30 s: rank 0 in all_reduce at train.py:7")
    assert text.endswith("rank 1 (process 11 on b) is at train.py:7 in step")
    assert monitor.slow(41) == ""  # said once


def test_idle_while_another_waits_is_a_hang_and_idle_alone_is_none() -> None:
    monitor = of_two()
    monitor.hear(0, state(), 20)
    monitor.hear(1, state(idle=20), 20)
    assert monitor.judge(20) is None
    monitor.hear(0, state("all_reduce", number=5), 21)
    assert monitor.judge(21) is None
    monitor.hear(0, state("all_reduce", number=5), 30)
    monitor.hear(1, state(idle=30), 30)
    text, code = monitor.judge(30)
    assert code == 1
    assert text.startswith("rank 1 (process 11 on b) has done nothing for 30 s at train.py:7 in step, while others")


def test_ranks_in_different_calls_are_locked() -> None:
    def all_wait(now: float, *calls: str) -> tuple[str, int] | None:
        monitor = Monitor([f"rank {rank}" for rank in range(len(calls))], 8.0, now=0.0)
        for time_of in (0.0, now):
            for rank, call in enumerate(calls):
                monitor.hear(rank, state(call), time_of)
        return monitor.judge(now)

    text, code = all_wait(9, "all_reduce", "recv") or ("", 0)
    assert code == 1
    assert text.startswith(
        "all ranks have waited for one another for 9 s: rank 0 in all_reduce at train.py:7 in step, rank 1"
    )
    assert all_wait(7, "all_reduce", "recv") is None
    # In one call they may be sending much; with `recv` that is an exchange, which takes an end.
    assert all_wait(100, "backward", "backward") is None
    assert all_wait(100, "send", "recv") is None
    assert all_wait(9, "send", "all_reduce") is not None
    assert all_wait(20, "recv", "recv") is None
    assert all_wait(25, "recv", "recv") is not None
    assert all_wait(20, "all_reduce", "all_reduce", "barrier") is None
    assert all_wait(25, "all_reduce", "all_reduce", "barrier") is not None


def test_a_circle_while_another_waits_is_a_hang() -> None:
    monitor = of_two()
    monitor.hear(0, state("all_reduce"), 1)
    monitor.hear(1, state(circling=20), 5)
    assert monitor.judge(5) is None  # nobody has waited for long
    monitor.hear(0, state("all_reduce"), 10)
    monitor.hear(1, state(circling=25), 10)
    text, code = monitor.judge(10)
    assert code == 1
    assert text.startswith("rank 1 (process 11 on b) has computed for 25 s in one call of one function, at train.py:7")
    assert "glassgrad.distributed.busy" in text
    monitor.hear(1, state(idle=6, circling=25), 10)  # it sleeps, though something of it was at work since it began to
    assert monitor.judge(10)[0].startswith("rank 1 (process 11 on b) has done nothing for 6 s at train.py:7")


def _turns(seen: list[float]) -> None:
    end = time.time() + 0.6
    while time.time() < end or len(seen) < 30:  # a busy machine may let the other thread wait
        pass


def _small() -> int:
    return sum(range(10**5))


def _calls(seen: list[float]) -> None:
    end = time.time() + 0.6
    while time.time() < end or len(seen) < 30:
        _small()


@pytest.mark.parametrize(("work", "circling"), [(_turns, True), (_calls, False)])
def test_a_circle_is_one_call_of_one_function(work, circling: bool) -> None:
    life, seen = Life(), []

    def look() -> None:
        while not over.is_set():
            life.look(7)
            time.sleep(0.01)
            seen.append(life.signs()["circling"])

    over, thread = threading.Event(), threading.Thread(target=look)
    thread.start()
    work(seen)
    over.set()
    thread.join()
    assert (max(seen) > 0.3) == circling, seen


def test_a_new_wait_counts_anew() -> None:
    monitor = of_two()
    for now in range(20):
        monitor.hear(0, state("all_reduce", number=now), now)
        monitor.hear(1, state(idle=now), now)
    assert monitor.judge(19) is None


def test_silence() -> None:
    monitor = of_two()
    monitor.hear(1, state(), 9)
    text, _ = monitor.judge(9)
    assert text.startswith("rank 0 (process 10 on a) has sent no sign of life for 9 s")


def test_ended_while_another_waits() -> None:
    monitor = of_two()
    monitor.leaves(1, 3)
    monitor.hear(0, state("barrier"), 1)
    assert monitor.judge(2) is None
    monitor.hear(0, state("barrier"), 4)
    text, code = monitor.judge(4)
    assert (code, "rank 1 (process 11 on b) has ended with exit code 3" in text) == (3, True)
    monitor.leaves(0, 0)
    assert monitor.over
    assert monitor.judge(5) is None


@pytest.mark.parametrize(("work", "alive"), [(lambda: time.sleep(0.8), False), (lambda: sum(range(10**7)), True)])
def test_signs_of_life(work, alive: bool) -> None:
    """Seen from another thread, as the guard does: computing is one, sleeping is none."""
    life, seen = Life(), []

    def look() -> None:
        for _ in range(3):
            time.sleep(0.2)
            seen.append(life.signs())

    thread = threading.Thread(target=look)
    thread.start()
    while thread.is_alive():
        work()
    assert (seen[-1]["idle"] < 0.1) == alive, seen
    assert seen[-1]["at"].startswith("test_guard.py:")


def test_the_thread_that_looks_is_no_sign_of_life() -> None:
    life, over, seen = Life(), threading.Event(), []

    def look() -> None:
        while not over.is_set():
            life.look(7)

    def report() -> None:
        for _ in range(4):
            time.sleep(0.2)
            seen.append(life.signs()["idle"])
        over.set()

    threads = [threading.Thread(target=work) for work in (look, report)]
    for thread in threads:
        thread.start()
    over.wait()
    for thread in threads:
        thread.join()
    assert max(seen) > 0.3, seen  # another thread of the process may work for once


def test_versions_that_differ_are_named() -> None:
    same = {"versions": {"glassgrad": "1", "NumPy": "2.4"}, "host": "a", "pid": 1}
    other = {"versions": {"glassgrad": "1", "NumPy": "2.3"}, "host": "b", "pid": 2}
    _compare([same, same])
    with pytest.raises(RunError, match=r"NumPy is 2\.3 on rank 1 \(b\) and 2\.4 on rank 0"):
        _compare([same, other])
