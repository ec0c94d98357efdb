"""Dictionaries are asked for changes by one native call in the fast path, and every change is seen."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

pytest.importorskip("llvmlite", reason="native code is made with llvmlite")

import glassgrad as gg
from glassgrad import nn
from glassgrad.compile.native import versions

with_versions = pytest.mark.skipif(
    not versions.has_versions(), reason="this interpreter's dictionaries have no numbers that change with them"
)


def test_the_interpreters_that_have_numbers_are_known() -> None:
    expected = sys.implementation.name == "cpython" and (3, 11) <= sys.version_info < (3, 13)
    assert versions.has_versions() is (expected and object.__basicsize__ == 16)


CHANGES: list[Callable[[dict[str, Any]], Any]] = [
    lambda one: one.__setitem__("a", 2),
    lambda one: one.__setitem__("new", 1),
    lambda one: one.pop("a"),
    lambda one: one.update(b=3),
    lambda one: one.setdefault("c", 4),
    lambda one: one.clear(),
    lambda one: one.popitem(),
    lambda one: one.__ior__({"d": 5}),
]


@with_versions
@pytest.mark.parametrize("change", CHANGES)
def test_every_change_is_seen_until_somebody_has_looked(change: Callable[[dict[str, Any]], Any]) -> None:
    watched: list[dict[str, Any]] = [{"a": 1}, {}, {"a": 1, "b": 2}]
    found = versions.watcher(watched)
    assert found is not None
    unchanged, settle = found
    assert unchanged() is False
    assert unchanged() is False
    assert settle() is True
    assert unchanged() is True
    assert watched[2].get("b") == 2
    assert unchanged() is True
    change(watched[2])
    assert unchanged() is False
    assert unchanged() is False
    settle()
    assert unchanged() is True


@with_versions
def test_a_change_between_the_look_and_what_settles_it_is_seen() -> None:
    watched = {"a": 1}
    unchanged, settle = versions.watcher([watched])
    unchanged()
    watched["a"] = 2
    settle()
    assert unchanged() is False


def test_what_is_no_plain_dictionary_has_no_number() -> None:
    class Other(dict[str, Any]):
        pass

    assert versions.watcher([{}, Other()]) is None


class Scaled(nn.Module):
    """A layer with options of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(gg.ones(3))
        self.scale, self.shift, self.names, self.note = 2.0, 1, {"a": 3, "b": 4, "c": 5}, 0

    def forward(self, x: Any) -> Any:
        return self.weight * x * self.scale + self.shift + sum(self.names.values())


@pytest.mark.parametrize("known", [True, False])
def test_a_compiled_step_follows_every_option(known: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the numbers of dictionaries and without."""
    if not known:
        monkeypatch.setattr(versions, "has_versions", lambda: False)
    model, x = Scaled(), gg.tensor([1.0, 2.0, 3.0])

    @gg.compile(backend="llvm")
    def step(x: Any) -> Any:
        return model(x)

    def agrees() -> None:
        for _ in range(3):  # the first call traces or finds a trace, the later ones are on the fast path
            np.testing.assert_array_equal(step(x).detach().numpy(), model(x).detach().numpy())

    agrees()
    for change in (
        lambda: setattr(model, "scale", 3.0), lambda: setattr(model, "scale", 2.0), lambda: setattr(model, "shift", 7),
        lambda: model.names.update(a=9), lambda: model.names.pop("b"), lambda: setattr(model, "names", {"z": 1}),
        lambda: vars(model).__setitem__("shift", True),
        lambda: monkeypatch.setattr(Scaled, "forward", lambda self, x: x + 1),
    ):  # fmt: skip  # a table
        change()
        agrees()


def test_an_option_that_nobody_reads_may_change_in_every_call() -> None:
    model, x = Scaled(), gg.tensor([1.0, 2.0, 3.0])

    @gg.compile(backend="llvm")
    def step(x: Any) -> Any:
        return model(x)

    first = step(x).detach().numpy()
    for number in range(5):
        model.note = number
        np.testing.assert_array_equal(step(x).detach().numpy(), first)
    assert step.traces == 1
