"""The fast path of a compiled step follows every option that the step reads, and no other."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("llvmlite", reason="native code is made with llvmlite")

import glassgrad as gg
from glassgrad import nn


class Scaled(nn.Module):
    """A layer with options of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(gg.ones(3))
        self.scale, self.shift, self.names, self.note = 2.0, 1, {"a": 3, "b": 4, "c": 5}, 0

    def forward(self, x: Any) -> Any:
        return self.weight * x * self.scale + self.shift + sum(self.names.values())


def test_a_compiled_step_follows_every_option(monkeypatch: pytest.MonkeyPatch) -> None:
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
