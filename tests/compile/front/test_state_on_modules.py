"""State of every kind that a forward changes on its module: compiled and eager steps agree."""

from __future__ import annotations

import collections
import dataclasses
import warnings
from typing import Any, NamedTuple

import numpy as np
import pytest

import glassgrad as gg
from glassgrad import nn

pytestmark = pytest.mark.usefixtures("numpy_target")


@dataclasses.dataclass
class Record:
    n: int = 0
    last: Any = None
    seen: list[Any] = dataclasses.field(default_factory=list)


class Pair(NamedTuple):
    n: int
    last: Any


class Base(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(gg.tensor([1.0, 2.0]))


class NestedList(Base):
    def __init__(self) -> None:
        super().__init__()
        self.log: list[Any] = [[0], [gg.zeros(2)]]

    def forward(self, x: Any) -> Any:
        self.log[0][0] += 1
        self.log[1][:] = [self.log[1][0] + x]
        return x * self.weight * self.log[0][0] + self.log[1][0]


class GrowingList(Base):
    def __init__(self) -> None:
        super().__init__()
        self.seen: list[Any] = []

    def forward(self, x: Any) -> Any:
        self.seen.append(x * 2)
        return sum(self.seen) * self.weight


class NestedDict(Base):
    def __init__(self) -> None:
        super().__init__()
        self.table: dict[str, Any] = {"a": {"n": 0}}

    def forward(self, x: Any) -> Any:
        self.table["a"]["n"] += 1
        self.table.setdefault("b", {}).update(last=x + self.table["a"]["n"])
        return self.table["b"]["last"] * self.weight


class OrderedDict(Base):
    def __init__(self) -> None:
        super().__init__()
        self.table = collections.OrderedDict(a=gg.ones(2), b=gg.zeros(2))

    def forward(self, x: Any) -> Any:
        self.table.move_to_end("a")
        first = next(iter(self.table))
        self.table[first] = self.table.pop(first) + x
        return self.table["a"] * self.weight + self.table["b"]


class GrowingSet(Base):
    def __init__(self) -> None:
        super().__init__()
        self.sizes: set[int] = set()

    def forward(self, x: Any) -> Any:
        self.sizes.add(len(self.sizes))
        return x * self.weight * len(self.sizes)


class Deque(Base):
    def __init__(self) -> None:
        super().__init__()
        self.last: Any = collections.deque(maxlen=2)

    def forward(self, x: Any) -> Any:
        self.last.append((x * self.weight).detach())
        return sum(self.last) * self.weight


class Property(Base):
    def __init__(self) -> None:
        super().__init__()
        self._level = gg.zeros(2)

    @property
    def level(self) -> Any:
        return self._level * 2

    @level.setter
    def level(self, value: Any) -> None:
        self._level = value + 1

    def forward(self, x: Any) -> Any:
        self.level = self.level + x.detach()
        return self.level * self.weight


class OnTheClass(Base):
    calls = 0

    def forward(self, x: Any) -> Any:
        type(self).calls += 1
        return x * self.weight * self.calls


class BeginsOnTheClass(Base):
    calls = 0

    def forward(self, x: Any) -> Any:
        self.calls += 1
        return x * self.weight * self.calls


class Rebound(Base):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("average", gg.zeros(2))

    def forward(self, x: Any) -> Any:
        self.average = 0.9 * self.average + 0.1 * x.detach()
        self.average.mul_(2.0)
        return (x - self.average) * self.weight


class ByName(Base):
    def __init__(self) -> None:
        super().__init__()
        self.even = self.odd = gg.zeros(2)
        self.turn = "even"

    def forward(self, x: Any) -> Any:
        setattr(self, self.turn, getattr(self, self.turn) + x)
        y = getattr(self, self.turn) * self.weight
        self.turn = "odd" if self.turn == "even" else "even"
        return y


class OfADataclass(Base):
    def __init__(self) -> None:
        super().__init__()
        self.record = Record()

    def forward(self, x: Any) -> Any:
        self.record.n += 1
        self.record.last = x if self.record.last is None else self.record.last + x
        self.record.seen.append(self.record.n)
        return self.record.last * self.weight * sum(self.record.seen)


class OfATuple(Base):
    def __init__(self) -> None:
        super().__init__()
        self.pair = Pair(0, gg.zeros(2))

    def forward(self, x: Any) -> Any:
        self.pair = self.pair._replace(n=self.pair.n + 1, last=self.pair.last + x.detach())
        return self.pair.last * self.weight * self.pair.n


class OfAChild(Base):
    def __init__(self) -> None:
        super().__init__()
        self.child = nn.Identity()
        self.child.cache = gg.zeros(2)

    def forward(self, x: Any) -> Any:
        self.child.cache = self.child.cache.detach() + x
        vars(self.child)["calls"] = vars(self.child).get("calls", 0) + 1
        return self.child.cache * self.weight * vars(self.child)["calls"]


class Deleted(Base):
    def __init__(self) -> None:
        super().__init__()
        self.once: Any = gg.ones(2)

    def forward(self, x: Any) -> Any:
        if hasattr(self, "once"):
            x = x + self.once
            del self.once
        return x * self.weight


class Array(Base):
    def __init__(self) -> None:
        super().__init__()
        self.counts = np.zeros(2)

    def forward(self, x: Any) -> Any:
        self.counts[0] += 1
        return x * self.weight * float(self.counts[0])


KINDS = [
    NestedList, GrowingList, NestedDict, OrderedDict, GrowingSet, Deque, Property, OnTheClass, BeginsOnTheClass,
    Rebound, ByName, OfADataclass, OfATuple, OfAChild, Deleted, Array,
]  # fmt: skip  # a table
OWN = {"weight", "average", "once"}


def plain(value: Any) -> Any:
    """Return state as nested lists of numbers."""
    if isinstance(value, gg.Tensor | np.ndarray):
        return np.asarray(value.detach() if isinstance(value, gg.Tensor) else value).tolist()
    if dataclasses.is_dataclass(value):
        return plain(vars(value))
    if isinstance(value, dict):
        return {name: plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple | set | collections.deque):
        return [plain(part) for part in value]
    return value


def trained(kind: Any, compiled: bool) -> list[Any]:
    """Return what four steps give, and the state after each."""
    if "calls" in vars(kind):
        kind.calls = 0
    model = kind()
    optimizer = gg.optim.SGD(model.parameters(), lr=0.1)

    def step(x: Any) -> Any:
        optimizer.zero_grad()
        loss = (model(x) ** 2).mean()
        loss.backward()
        optimizer.step()
        return loss

    call = gg.compile(step) if compiled else step
    found = []
    for number in range(4):
        loss = call(gg.tensor([1.0, -0.5]) * (number + 1))
        state = {name: plain(value) for name, value in vars(model).items() if name in OWN or not name.startswith("_")}
        found.append((loss.item(), plain(dict(model.state_dict())), state, getattr(kind, "calls", None)))
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_a_compiled_step_moves_it_as_an_eager_one_does(kind: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", gg.errors.CompileWarning)
        found = trained(kind, True)
    for ours, theirs in zip(found, trained(kind, False), strict=True):
        for part, wanted in zip(ours, theirs, strict=True):
            same(part, wanted)


def same(found: Any, expected: Any) -> None:
    """Compare nested state, numbers to rounding."""
    if isinstance(expected, dict):
        assert list(found) == list(expected)
        for name, part in expected.items():
            same(found[name], part)
    elif isinstance(expected, list):
        assert len(found) == len(expected)
        for part, wanted in zip(found, expected, strict=True):
            same(part, wanted)
    elif isinstance(expected, float):
        assert found == pytest.approx(expected, rel=1e-5, abs=1e-6)
    elif not isinstance(expected, nn.Module):
        assert found == expected


class Counted:
    seen = 0

    def __init__(self) -> None:
        self.weight = gg.ones(2)

    def __call__(self, x: Any) -> Any:
        Counted.seen += 1
        return self.weight * x


def test_a_class_of_several_objects_counts_their_calls_once() -> None:
    first, second = Counted(), Counted()
    step = gg.compile(lambda x: first(x) + second(x))
    Counted.seen = 0
    for calls in range(1, 4):
        assert step(gg.ones(2)).tolist() == [2.0, 2.0]
        assert Counted.seen == 2 * calls
