"""Work that a first step avoids because another process, or an earlier step, did it: measured by counting."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import glassgrad as gg
from glassgrad import nn
from glassgrad.compile.front.state import alive
from glassgrad.compile.front.state.reach import reach


def step_of(net: nn.Module) -> Any:
    optimizer = gg.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)

    @gg.compile(backend="llvm", threads=1)
    def step(x: Any) -> Any:
        optimizer.zero_grad()
        loss = (net(x) ** 2).mean()
        loss.backward()
        optimizer.step()
        return loss

    return step


def trained() -> tuple[Any, list[float]]:
    gg.manual_seed(0)
    step = step_of(nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2)))
    return step, [step(gg.ones(5, 3)).item() for _ in range(3)]


# --- guards ----------------------------------------------------------------------------------------


def test_conditions_are_compiled_once() -> None:
    step, _ = trained()
    assert "_check" not in vars(step._latest), "the fast path has its own"
    assert step._latest.fits([gg.ones(5, 3)])
    assert "_check" in vars(step._latest)


# --- the walk ---------------------------------------------------------------------------------------


class Block(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(width, width), nn.Linear(width, width)

    def forward(self, x: Any) -> Any:
        return self.helped(self.first(x))

    def helped(self, x: Any) -> Any:
        return self.helped_more(x)

    def helped_more(self, x: Any) -> Any:
        return self.helped_most(x)

    def helped_most(self, x: Any) -> Any:
        return self.second(x) * self.factor

    factor = 2.0


def test_methods_that_call_methods_take_no_walk_each() -> None:
    net = nn.Sequential(*(Block(2) for _ in range(3)))
    found = reach(net.forward, {})
    assert found.rounds == 2, "the last one finds nothing new"
    assert sum(edge.path.endswith(".factor") for edge in found.edges) == 3
    assert {code.co_name for code in found.codes} >= {"forward", "helped", "helped_more", "helped_most"}


def test_what_a_class_has_is_noted_once_for_all_its_objects() -> None:
    found = reach(nn.Sequential(*(Block(2) for _ in range(3))).forward, {})
    assert [holder.target for holder in found.holders if holder.kind == "class"].count(Block) == 1
    assert [edge.path for edge in found.edges].count("Block.helped") == 1


class Claims:
    """An object that names another class as its own."""

    def __init__(self, other: type, items: Any) -> None:
        self.other, self.items = other, items

    @property
    def __class__(self) -> Any:
        return self.other

    def __call__(self, x: Any) -> Any:
        return x * self.items


def test_an_object_is_looked_at_as_what_it_names_as_its_class() -> None:
    first, second = Claims(Claims, gg.ones(2)), Claims(np.random.RandomState, gg.ones(2))
    for one, two in ((first, second), (second, first)):
        found = reach(lambda x, one=one, two=two: one(x) + two(x), {})
        assert len(found.streams) == 1
        assert found.streams[0][1] is second
        assert len(found.tensors) == 1


# --- the trace --------------------------------------------------------------------------------------


def test_a_new_state_is_not_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[Any] = []
    tensors = alive.tensors
    monkeypatch.setattr(alive, "tensors", lambda *age: looks.append(age) or tensors(*age))
    counts = []
    for depth in (1, 9):
        looks.clear()
        step_of(nn.Sequential(*(nn.Linear(2, 2) for _ in range(depth))))(gg.ones(5, 2))
        counts.append(len(looks))
    assert counts[1] < counts[0] + 5, "though there are 16 more"


def test_the_caller_of_a_generator_is_who_asked_for_its_next_value() -> None:
    w = gg.ones(2)

    def products() -> Iterator[Any]:
        yield w * 2
        yield w * 3

    @gg.compile(backend="numpy")
    def step(x: Any) -> Any:
        found = products()
        first = next(found)
        second = next(found)
        return first + second + x

    step(gg.ones(2))
    origins = [instr.where for instr in step.traced.instrs if instr.op == "multiply"]
    lines = [origin.place.line for origin in origins]
    assert lines[1] == lines[0] + 1
    assert origins[0].outer[0] is origins[1].outer[0] is step.function.__code__
    assert origins[0].outer[1] < origins[1].outer[1]
