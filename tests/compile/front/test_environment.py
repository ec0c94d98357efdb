"""Environment variables that a step reads: the next call notices each change."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from os import environ

import pytest

import glassgrad as gg

NAME = "GLASSGRAD_TEST_SCALE"


def looked_up_by_a_helper() -> float:
    return float(os.environ[NAME])


def entry() -> float:
    try:
        return float(os.environ[NAME])
    except KeyError:
        return 9.0


READS: dict[str, Callable[[], float]] = {
    "entry": entry,
    "get": lambda: float(os.environ.get(NAME, "9")),
    "getenv": lambda: float(os.getenv(NAME, "9")),
    "in": lambda: 2.0 if NAME in os.environ else 9.0,
    "imported by name": lambda: float(environ.get(NAME, "9")),
    "computed key": lambda: float(os.environ.get(NAME.lower().upper(), "9")),
    "as a dictionary": lambda: float(dict(os.environ).get(NAME, "9")),
    "items": lambda: sum((float(value) for name, value in os.environ.items() if name == NAME), 1.0),
    "number of variables": lambda: float(len(os.environ)),
    "expanded": lambda: float(len(os.path.expandvars(f"${NAME}"))),
    "helper": lambda: looked_up_by_a_helper() if NAME in os.environ else 9.0,
}
if os.name == "posix":
    READS["bytes"] = lambda: float(os.environb.get(NAME.encode(), b"9"))


@pytest.mark.parametrize("read", READS.values(), ids=READS)
@pytest.mark.parametrize("change", [("2", "53"), ("2", None), (None, "53")], ids=["changed", "removed", "added"])
def test_a_change_is_seen_by_the_next_call(read, change, monkeypatch):
    before, after = change
    step = gg.compile(lambda x: x * read(), strict=True)
    x = gg.tensor([1.0, 2.0])
    for value in (before, after, before):
        _set(monkeypatch, value)
        for _ in range(3):
            assert step(x).tolist() == [read(), 2 * read()]


def _set(monkeypatch: pytest.MonkeyPatch, value: str | None) -> None:
    if value is None:
        monkeypatch.delenv(NAME, raising=False)
    else:
        monkeypatch.setenv(NAME, value)


def test_the_change_is_named(monkeypatch):
    monkeypatch.setenv(NAME, "2")
    step = gg.compile(lambda x: x * float(os.environ[NAME]))
    step(gg.ones(2))
    (guards,) = [edge for edge in step.capture.edges if edge.holder is os.environ]
    monkeypatch.setenv(NAME, "3")
    assert not guards.holds()
    assert guards.path == f"os.environ[{NAME!r}]"


def test_nothing_else_is_guarded_and_the_class_is_as_before(monkeypatch):
    before = dict(vars(type(os.environ)))
    others = []

    def step(x):
        worker = threading.Thread(target=lambda: others.append(os.environ.get("PATH")))
        worker.start()
        worker.join()
        return x * float(os.environ.get(NAME, "9"))

    compiled = gg.compile(step, strict=True)
    compiled(gg.ones(2))
    assert others
    assert [edge.key for edge in compiled.capture.edges if edge.holder is os.environ] == [NAME]
    with pytest.raises(KeyError):
        gg.compile(lambda x: x * float(os.environ[NAME + "_MISSING"]), strict=True)(gg.ones(2))
    assert dict(vars(type(os.environ))) == before
