"""Programs that hang, take everything or end their process: the playground says so and goes on."""

from __future__ import annotations

import time

import pytest

from tests.playground.conftest import Client

GOOD = "import glassgrad as gg\nx = gg.tensor(3.0, requires_grad=True)\nloss = x * x\n"


def grad(events: list[dict]) -> float:
    """Return the gradient of x in the pane of values."""
    (pane,) = [event for event in events if event["event"] == "pane"]
    (x,) = [one for one in pane["data"]["variables"] if one["name"] == "x"]
    return x["grad"]["numbers"]


def kinds(events: list[dict]) -> list[str]:
    """Return the kinds of events."""
    return [event["event"] for event in events]


def stopped(events: list[dict]) -> tuple[str, str]:
    """Return why a run was stopped."""
    (event,) = [event for event in events if event["event"] == "stopped"]
    return event["reason"], event["message"]


ENDS = {
    "endless loop": ("while True:\n    pass\n", "time", "in line"),
    "sleep": ("import time\ntime.sleep(60)\n", "time", "in line 2"),
    "os._exit": ("import os\nos._exit(3)\n", "exit", "exit code 3"),
    "sys.exit": ("import sys\nsys.exit(3)\n", "exit", "exit(3)"),
    "abort": ("import os\nos.abort()\n", "exit", "by signal 6"),
    "killed": ("import os\nos.kill(os.getpid(), 9)\n", "memory", "the system ended"),
    "forks without end": ("import os\nwhile True:\n    os.fork()\n", "killed", "too many processes"),
    "catches everything": (
        "while True:\n    try:\n        while True: pass\n    except BaseException: pass\n",
        "time",
        "stopped after 1 s",
    ),
}


@pytest.mark.parametrize("name", ENDS)
def test_a_program_that_does_not_end_well(client: Client, name: str) -> None:
    text, reason, words = ENDS[name]
    began = time.monotonic()
    found, message = stopped(client.run(text, "values"))
    assert found == reason
    assert words in message
    assert time.monotonic() - began < 10
    assert grad(client.run(GOOD, "values")) == 6.0


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("import numpy as np\nx = np.ones((50_000, 1_000, 1_000), np.uint8)\n", "MemoryError"),
        ("def f(n):\n    return f(n + 1)\nf(0)\n", "RecursionError"),
        ("input()\n", "EOFError"),
        ("import sys\nsys.stdout.close()\nprint(1)\n", "ValueError"),
        ("raise KeyboardInterrupt\n", "KeyboardInterrupt"),
        ("class E(BaseException): pass\nraise E('x')\n", "E"),
        ("x = \n", "SyntaxError"),
        ("x = 1\ny = '\0'\nz = 2", "SyntaxError"),
    ],
)
def test_an_error_names_its_line(client: Client, text: str, kind: str) -> None:
    events = client.run(text, "values")
    (error,) = [event for event in events if event["event"] == "error"]
    assert error["kind"] == kind
    last = text.rstrip("\n").count("\n") + 1
    assert error["line"] == (2 if kind == "RecursionError" or "\0" in text else last)
    if kind == "MemoryError":
        assert stopped(events)[0] == "memory"
    assert events[-1]["event"] == "done"
    assert grad(client.run(GOOD, "values")) == 6.0


def test_a_fork_and_a_thread_do_not_outlive_their_run(client: Client) -> None:
    text = (
        "import os, threading, time\n"
        "threading.Thread(target=time.sleep, args=(600,)).start()\n"
        "if os.fork() == 0:\n    time.sleep(600)\n"
        "x = 1\n"
    )
    began = time.monotonic()
    events = client.run(text, "values")
    assert kinds(events) == ["started", "pane", "done"]
    assert time.monotonic() - began < 5
    assert grad(client.run(GOOD, "values")) == 6.0


def test_a_forked_copy_says_nothing(client: Client) -> None:
    events = client.run("import os\nos.fork()\nprint('once')\n", "values")
    assert "".join(event["text"] for event in events if event["event"] == "output") == "once\n"
    assert kinds(events).count("done") == 1


def test_output_is_data_and_has_an_end(client: Client) -> None:
    events = client.run("print('<script>alert(1)</script>')\nfor _ in range(100):\n    print('x' * 1_000_000)\n")
    text = "".join(event["text"] for event in events if event["event"] == "output")
    assert text.startswith("<script>alert(1)</script>\n")
    assert len(text) < 300_000
    assert text.endswith("... more output is left out ...\n")


def test_closed_descriptors_cost_only_the_run(client: Client) -> None:
    events = client.run("import os\nos.closerange(0, 200)\nprint('unheard')\n", "values")
    assert events[-1]["event"] in {"stopped", "done"}
    assert grad(client.run(GOOD, "values")) == 6.0


def test_a_program_cannot_spoil_the_next_one(client: Client) -> None:
    text = "import glassgrad as gg, numpy as np, os, sys\nnp.sin = None\ngg.tensor = None\n"
    text += "os.environ['A_B'] = '1'\nsys.path.clear()\n"
    assert kinds(client.run(text, "values"))[-1] == "done"
    assert grad(client.run(GOOD, "values")) == 6.0
    events = client.run("import os, numpy as np\nassert 'A_B' not in os.environ\nassert np.sin(0.0) == 0.0\n", "values")
    assert "error" not in kinds(events)


def test_random_numbers_are_the_same_in_each_run(client: Client) -> None:
    text = (
        "import glassgrad as gg, random, numpy as np\nprint(gg.randn(2).tolist(), random.random(), np.random.rand())\n"
    )
    first, second = (client.run(text) for _ in range(2))
    said = [[event["text"] for event in events if event["event"] == "output"] for events in (first, second)]
    assert said[0] == said[1]
    assert said[0]


def test_a_run_replaces_the_one_before(client: Client) -> None:
    import threading

    found: list[list[dict]] = []
    old = threading.Thread(target=lambda: found.append(client.run("import time\ntime.sleep(60)\n", run=1)))
    old.start()
    time.sleep(0.3)
    assert grad(client.run(GOOD, "values", run=2)) == 6.0
    old.join(10)
    assert stopped(found[0])[0] == "killed"


def test_stop_ends_a_run(client: Client) -> None:
    import threading

    found: list[list[dict]] = []
    old = threading.Thread(target=lambda: found.append(client.run("while True: pass\n", run=1)))
    old.start()
    time.sleep(0.3)
    assert client.json("POST", "/api/stop", {}) == {}
    old.join(10)
    assert stopped(found[0]) == ("killed", "stopped")
