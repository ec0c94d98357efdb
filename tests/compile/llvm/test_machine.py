"""LLVM's description of a machine is stored on disk, only for the same processor and the same library."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import threading
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from glassgrad.compile.c.compiler import compiler
from glassgrad.compile.kept import files
from glassgrad.compile.llvm.objects import machine, processor
from glassgrad.compile.llvm.objects.machine import Machine

pytestmark = pytest.mark.skipif(processor.answers() is None, reason="elsewhere LLVM is asked in every process")


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    base = tmp_path / "cache"
    base.mkdir(mode=0o700)
    monkeypatch.setenv("GLASSGRAD_CACHE_DIR", str(base))
    return base / "native"


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Machine]:
    """What LLVM was asked since."""
    answers: list[Machine] = []
    ask = machine.asked

    def told() -> Machine:
        answers.append(ask())
        return answers[-1]

    monkeypatch.setattr(machine, "asked", told)
    return answers


def known() -> Machine:
    return machine.machine.__wrapped__()


def test_llvm_is_asked_once(asked: list[Machine]) -> None:
    assert known() == known() == known()
    assert len(asked) == 1
    assert known() == asked[0]
    assert all(asdict(asked[0]).values())


def test_another_processor_is_asked_for_itself(asked: list[Machine], monkeypatch: pytest.MonkeyPatch) -> None:
    """One bit less, as where a virtual machine hides an instruction from a system that runs on."""
    known()
    said = processor.answers()
    assert said is not None
    for at in [at for at, letter in enumerate(said) if letter.isdigit()][::7]:
        other = said[:at] + str((int(said[at]) + 1) % 10) + said[at + 1 :]
        monkeypatch.setattr(processor, "answers", lambda other=other: other)
        count = len(asked)
        known()
        assert len(asked) == count + 1


@pytest.mark.parametrize("file", ["_version.py", "binding/libllvmlite.so"])
def test_another_library_is_asked_itself(
    file: str, asked: list[Machine], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    room = tmp_path / "llvmlite"
    (room / "binding").mkdir(parents=True)
    for name in ("__init__.py", "_version.py", "binding/libllvmlite.so"):
        (room / name).write_text("first", encoding="ascii")
    spec = machine.importlib.util.spec_from_file_location("llvmlite", room / "__init__.py")
    monkeypatch.setattr(machine.importlib.util, "find_spec", lambda _: spec)
    known()
    known()
    assert len(asked) == 1
    (room / file).write_text("second", encoding="ascii")
    known()
    known()
    assert len(asked) == 2
    (room / file).unlink()
    known()
    known()
    assert len(asked) == 4, "a library that is not where it is looked for is asked each time"


def test_without_the_processors_answers_llvm_is_asked_each_time(
    asked: list[Machine], place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processor, "answers", lambda: None)
    known()
    known()
    assert len(asked) == 2
    assert not place.exists()


@pytest.mark.parametrize("change", [{"cpu": 3}, {"features": None}, {"llvm": [22, 1]}, None])
def test_answers_of_another_form_are_not_taken(change: dict[str, object] | None, asked: list[Machine]) -> None:
    right = known()
    name = machine._name()
    assert name is not None
    files.write(name, {} if change is None else {**asdict(right), **change}, b"")
    assert known() == right
    assert len(asked) == 2


def test_a_damaged_entry_is_asked_for_again(asked: list[Machine], place: Path) -> None:
    right = known()
    (path,) = place.iterdir()
    whole = path.read_bytes()
    for spoilt in (whole[:-1], whole.replace(b"x86_64", b"x86_65"), b""):
        path.write_bytes(spoilt)
        assert known() == right
    assert len(asked) == 4


def test_the_features_are_those_that_the_processor_names() -> None:
    said = processor.answers()
    assert said is not None
    (registers,) = [row for row in ast.literal_eval(said) if row[0] == 1 and len(row) == 5]
    has = machine.asked().features.split(",")
    for bit, name in ((12, "fma"), (13, "cx16"), (20, "sse4.2"), (23, "popcnt")):  # of the third register
        assert bool(registers[3] >> bit & 1) == (f"+{name}" in has)


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one core")
def test_every_core_says_the_same() -> None:
    found = []

    def ask(core: int) -> None:
        os.sched_setaffinity(0, {core})
        found.append(processor.answers())

    for core in sorted(os.sched_getaffinity(0))[:2]:
        thread = threading.Thread(target=ask, args=(core,))  # a thread of its own is bound, not this process
        thread.start()
        thread.join()
    assert len(found) == 2
    assert found[0] == found[1]


def test_another_system_has_no_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processor.platform, "machine", lambda: "aarch64")
    assert processor.answers() is None


def test_a_system_that_places_no_code_has_no_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(13, "no executable memory")

    monkeypatch.setattr(processor.Pages, "protect", refuse)
    assert processor.answers() is None


BROKEN = """
import warnings
import numpy as np
import glassgrad as gg
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    step = gg.compile(lambda x: (x * x).sum())
    assert step(gg.ones(3)).item() == 3.0
    gg.nn.functional.gelu(gg.ones(400_000))
    with gg.autocast("cpu"):
        assert (gg.ones(2, 2) @ gg.ones(2, 2)).dtype == np.float32
    assert "cannot open shared object" in str(said[0].message), said
print(step.backend, len(said))
"""


def test_a_library_that_cannot_be_loaded_leaves_everything_to_c_or_numpy(tmp_path: Path) -> None:
    room = tmp_path / "site" / "llvmlite" / "binding"
    room.mkdir(parents=True)
    (room.parent / "__init__.py").write_text("__version__ = '9'", encoding="ascii")
    (room.parent / "_version.py").touch()
    (room / "libllvmlite.so").touch()
    (room / "__init__.py").write_text("raise OSError('cannot open shared object')", encoding="ascii")
    path = os.pathsep.join([str(tmp_path / "site"), *filter(None, [os.environ.get("PYTHONPATH")])])
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-c", BROKEN],
            env={**os.environ, "PYTHONPATH": path, "GLASSGRAD_NATIVE": "1"},
            capture_output=True,
            encoding="utf-8",
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert done.stdout.split()[0] == ("numpy" if compiler() is None else "c")


def test_versions_are_those_that_were_told(monkeypatch: pytest.MonkeyPatch) -> None:
    told = replace(machine.asked(), llvm="(99, 1, 2)")
    monkeypatch.setattr(machine, "machine", lambda: told)
    assert "(99, 1, 2)" in machine.versions.__wrapped__().splitlines()
