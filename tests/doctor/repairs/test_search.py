"""Changes are tried in runs of their own: the right one is found, and nothing of the user's is touched."""

from __future__ import annotations

import importlib.util
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from glassgrad.cli import run
from glassgrad.doctor.repairs import report
from glassgrad.doctor.repairs.search import Runner, Trial, search

LIBRARIES = [
    "glassgrad",
    pytest.param(
        "torch",
        marks=[
            pytest.mark.slow,
            pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="the script imports torch"),
        ],
    ),
]
SCRIPT = """
import {library} as torch
from {library} import nn

torch.manual_seed(0)
x = torch.randn(300, 6)
y = (x[:, 0] + x[:, 1] * x[:, 2] > 0).long()
model = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for epoch in range(12):
    model.train()
    for at in range(0, 200, 20):
        loss = nn.functional.cross_entropy(model(x[at : at + 20]), y[at : at + 20])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        print(f"epoch {{epoch}} test accuracy {{(model(x[200:]).argmax(1) == y[200:]).float().mean().item():.3f}}")
"""
CHANGED = {
    "sign": ("loss = nn", "loss = -nn"),
    "rate": ("lr=0.01", "lr=0.00001"),
    "sigmoid": ("nn.ReLU()", "nn.Softmax(0)"),
}


def write(folder: Path, text: str) -> Path:
    path = folder / "train.py"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("library", LIBRARIES)
def test_the_change_that_mends_a_fault_is_found(library: str, tmp_path: Path) -> None:
    text = SCRIPT.format(library=library).replace(*CHANGED["sign"])
    path = write(tmp_path, text)
    found = search(str(path), seconds=60)
    best = found.repairs[0]
    assert (best.edit.line, best.figure.name) == (13, "test accuracy")
    assert best.figure.value < 0.5
    assert min(best.after) > 0.8
    assert len(best.after) == 2
    one = report.finding_of(found, path)
    assert one is not None
    assert (one.name, one.where) == ("a-change-helps", "train.py:13")
    assert "'test accuracy' of the script is" in one.what
    assert path.read_text(encoding="utf-8") == text
    assert [one.name for one in tmp_path.iterdir()] == ["train.py"]


def test_a_healthy_script_is_not_changed(tmp_path: Path) -> None:
    path = write(tmp_path, SCRIPT.format(library="glassgrad").replace("range(12)", "range(40)"))
    found = search(str(path), seconds=10)
    assert report.finding_of(found, path) is None


def test_a_script_that_fails_or_shows_nothing_says_so(tmp_path: Path) -> None:
    path = write(tmp_path, "import glassgrad\nraise RuntimeError('no data')\n")
    assert "does not run a second time by itself (RuntimeError: no data" in search(str(path), seconds=5).trouble
    path = write(tmp_path, "import glassgrad\nprint('hello')\n")
    found = search(str(path), seconds=5)
    assert found.trouble == "the script prints no figure, and none could be measured"
    assert list(report.lines(found)) == [f"changes      none tried: {found.trouble}"]


HARMFUL = """
import os, shutil, socket, subprocess
from pathlib import Path

def refused(action):
    try:
        action()
    except PermissionError:
        return 1
    return 0

home = Path({home!r})
inside = open("kept.txt").read() == "mine"
open("kept.txt", "w").write("changed")
with open("new.txt", "w") as file:
    file.write("mine too")
count = sum(refused(one) for one in (
    lambda: open(home / "kept.txt", "w"),
    lambda: open(home / "other.txt", "a"),
    lambda: os.remove(home / "kept.txt"),
    lambda: shutil.rmtree(home / "data"),
    lambda: os.rename("new.txt", home / "moved.txt"),
    lambda: subprocess.run(["true"]),
    lambda: socket.create_connection(("127.0.0.1", 9)),
))
import ctypes
libc = ctypes.CDLL(None)
libc.fopen.restype = ctypes.c_void_p
libc.fopen(b"data/a.txt", b"w")  # as a library in C writes: Python does not hear of it
print(f"correct {{count}} hits {{int(inside and open('kept.txt').read() == 'changed')}}")
"""


@pytest.mark.skipif(sys.platform == "win32", reason="calls the C library and a program of Unix")
def test_a_trial_writes_nothing_outside_of_its_folder(tmp_path: Path) -> None:
    (tmp_path / "kept.txt").write_text("mine", encoding="utf-8")
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "a.txt").write_text("deep", encoding="utf-8")
    path = write(tmp_path, HARMFUL.format(home=str(tmp_path)))
    trial = Trial(path.read_text(encoding="utf-8"))
    with Runner(str(path), (), (), 1) as runner:
        runner.run(trial)
    assert trial.error == ""
    assert trial.figures is not None
    assert {name: one.value for name, one in trial.figures.items()} == {"correct": 7, "hits": 1}
    assert (tmp_path / "kept.txt").read_text(encoding="utf-8") == "mine"
    assert (tmp_path / "data" / "a.txt").read_text(encoding="utf-8") == "deep"
    assert sorted(one.name for one in tmp_path.iterdir()) == ["data", "kept.txt", "train.py"]


def test_a_trial_that_never_ends_is_ended(tmp_path: Path) -> None:
    path = write(tmp_path, "while True:\n    pass\n")
    trial = Trial(path.read_text(encoding="utf-8"))
    begun = time.monotonic()
    with Runner(str(path), (), (), 1, longest=1.0) as runner:
        runner.run(trial)
    assert trial.figures is None
    assert trial.error == "the time was over"
    assert time.monotonic() - begun < 30


def test_no_process_is_started_for_a_trial_whose_search_is_over(tmp_path: Path) -> None:
    path = write(tmp_path, "while True:\n    pass\n")
    trial = Trial(path.read_text(encoding="utf-8"))
    before = {one.pid for one in multiprocessing.active_children()}
    with Runner(str(path), (), (), 1) as runner:
        running = threading.Thread(target=runner.run, args=(trial,))
        running.start()
        time.sleep(1)
    running.join(30)
    assert not running.is_alive()
    assert trial.error == "its process ended"
    assert {one.pid for one in multiprocessing.active_children()} <= before


@pytest.mark.skipif(sys.platform == "win32", reason="sends a signal")
def test_ctrl_c_ends_a_search_and_the_report_follows(tmp_path: Path) -> None:
    path = write(tmp_path, SCRIPT.format(library="glassgrad").replace(*CHANGED["rate"]))
    command = [sys.executable, "-m", "glassgrad", "doctor", "--seconds", "100", str(path)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ)
    assert process.stderr is not None
    for line in process.stderr:
        if "trying changes" in line:
            break
    time.sleep(2)
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=60)
    assert "findings" in out
    assert "changes      none tried: interrupted" in out


@pytest.mark.slow
def test_the_command_shows_the_change(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path, SCRIPT.format(library="glassgrad").replace(*CHANGED["rate"]))
    assert run(["doctor", str(path), "--seconds", "150"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "INFO a change helps: with `optimizer = " in out  # a better rate is a choice, no fault
    assert run(["doctor", str(path), "--seconds", "0"]) == 0
    assert "changes of the script" not in capsys.readouterr().out
