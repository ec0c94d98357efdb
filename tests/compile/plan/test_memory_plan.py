"""No two arrays that are alive at the same time share bytes: read off the schedule, step by step and byte by byte.

The oracle knows nothing of `plan/memory.py`. It lists every access (when, by which share, to which bytes). Wherever two
arrays touch the same byte, each access of the older one has to come before each access of the newer one.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import pytest

import glassgrad as gg
from glassgrad import nn, optim
from glassgrad.compile.plan import memory
from glassgrad.nn import functional as F
from tests.compile.graphs import emitted

# --- the steps ----------------------------------------------------------------------------------------


class Block(nn.Module):
    """A layer of a small GPT."""

    def __init__(self, width: int = 32, heads: int = 2) -> None:
        super().__init__()
        self.heads = heads
        self.before, self.between = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.wide, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Any) -> Any:
        b, t, c = x.shape
        q, k, v = (one.reshape(b, t, self.heads, -1).transpose(1, 2) for one in self.qkv(self.before(x)).chunk(3, -1))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(b, t, c))
        return x + self.narrow(F.gelu(self.wide(self.between(x))))


def mlp() -> Any:
    return nn.Sequential(nn.Linear(64, 96), nn.Tanh(), nn.Linear(96, 48), nn.ReLU(), nn.Linear(48, 10))


def gpt() -> Any:
    return nn.Sequential(nn.Embedding(31, 32), Block(), nn.LayerNorm(32), nn.Linear(32, 10), nn.Flatten(0, 1))


def conv() -> Any:
    return nn.Sequential(
        nn.Conv2d(1, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(8, 16, 3), nn.ReLU(), nn.Flatten(), nn.Linear(256, 10),
    )  # fmt: skip  # layers of one block on a line


RNG = np.random.default_rng(0)
STEPS = {
    "mlp": (mlp, RNG.normal(size=(64, 64)), 64),
    "gpt": (gpt, RNG.integers(0, 31, (4, 16)), 64),
    "conv": (conv, RNG.normal(size=(8, 1, 14, 14)), 8),
}


def plan_of(name: str, shares: int) -> Any:
    make, x, count = STEPS[name]
    gg.manual_seed(1)
    model = make()
    optimizer = optim.AdamW(model.parameters(), lr=1e-3)

    def step(x: Any, y: Any) -> Any:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    compiled = gg.compile(step)
    given = x.astype(np.float32) if x.dtype.kind == "f" else x
    compiled(gg.tensor(given), gg.tensor(np.random.default_rng(1).integers(0, 10, count)))
    return emitted(compiled.traced, shares)


# --- the oracle ---------------------------------------------------------------------------------------


class Use(NamedTuple):
    """One share's access in one task: to which bytes of an array, from the array's begin."""

    phase: int
    share: int
    position: int
    bytes: Any

    def before(self, other: Use) -> bool:
        """Shares meet after each phase; within a phase each share goes its own way."""
        same = self.phase == other.phase and self.share == other.share
        return self.phase < other.phase or (same and self.position < other.position)


def touched(task: Any, var: Any, share: int) -> Any:
    """The bytes of an array that a share touches in a task, as a mask; None for a share that takes no part."""
    if task.cut is None:
        return np.ones(var.nbytes, bool) if share == task.share else None
    if task.cut.bounds[share] >= task.cut.bounds[share + 1]:
        return None
    region = task.cut.regions.get(var)
    if region is None:
        return np.ones(var.nbytes, bool)
    low, high = region.ranges[share]
    place = np.arange(var.nbytes) // var.dtype.itemsize % region.period
    return (low <= place) & (place < high)


def uses_of(plan: Any) -> tuple[dict[Any, list[Use]], dict[tuple[int, int], Any]]:
    """Every access of every array in the arena, and the kernel of each (phase, position)."""
    uses: dict[Any, list[Use]] = {var: [] for var in plan.memory.offsets}
    kernels = {}
    for phase, tasks in enumerate(plan.schedule.phases):
        for position, task in enumerate(tasks):
            kernels[phase, position] = task.kernel
            for var in task.kernel.reads | task.kernel.writes:
                for share in range(plan.schedule.shares):
                    mask = touched(task, var, share) if var in uses else None
                    if mask is not None:
                        uses[var].append(Use(phase, share, position, mask))
    return uses, kernels


def parts(expr: Any) -> Iterator[Any]:
    """An expression and what is computed in the same pass for it."""
    yield expr
    inner = [*expr.args]
    if expr.op == "load":
        inner += [one for one, _ in expr.data.computed] + ([] if expr.data.mask is None else [expr.data.mask])
    for one in inner:
        yield from parts(one)


def replaces(kernel: Any, old: Any, new: Any) -> bool:
    """Whether a kernel reads of `old` only the element that it is about to store, and never after the store."""
    if kernel.nest is None or new not in kernel.writes or old in kernel.writes:
        return False
    (store,) = [one for one in kernel.nest.stores if one.access.root is new]
    passes = [(one.value.stage, value) for one in kernel.nest.reductions for value in (one.value, one.position)]
    passes += [(one.value.stage, one.value) for one in kernel.nest.stores]
    for stage, value in passes:
        for expr in parts(value) if value is not None else ():
            if expr.op != "load" or expr.data.root is not old:
                continue
            late = stage > store.value.stage and not store.access.index.axes.isdisjoint(kernel.nest.inner)
            if late or expr.data.computed or expr.data.mask is not None or expr.data.index != store.access.index:
                return False
    return old.dtype.itemsize == new.dtype.itemsize and old.nbytes == new.nbytes


def overlaps(plan: Any) -> list[str]:
    """Every pair of arrays of which one is overwritten by the other while it is still needed."""
    uses, kernels = uses_of(plan)
    offsets, found = plan.memory.offsets, []
    begun = {var: min((one.phase, one.position) for one in accesses) for var, accesses in uses.items()}
    for one, other in combinations(sorted(offsets, key=begun.__getitem__), 2):
        low = max(offsets[one], offsets[other])
        high = min(offsets[one] + one.nbytes, offsets[other] + other.nbytes)
        for a in uses[one] if low < high else ():
            for b in uses[other]:
                both = a.bytes[low - offsets[one] : high - offsets[one]] & b.bytes[low - offsets[other] :][: high - low]
                if not both.any() or a.before(b):
                    continue
                together = (a.phase, a.position) == (b.phase, b.position) and offsets[one] == offsets[other]
                if not (together and replaces(kernels[a.phase, a.position], one, other)):
                    found.append(f"{one} in phase {a.phase} and {other} in phase {b.phase}")
    return found


# --- the tests ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("shares", [1, 2, 3])
@pytest.mark.parametrize("name", STEPS)
def test_arrays_that_are_alive_share_no_bytes(name: str, shares: int) -> None:
    plan = plan_of(name, shares)
    assert overlaps(plan) == []
    for var, offset in plan.memory.offsets.items():
        assert offset % memory.ALIGNMENT == 0
        assert 0 <= offset <= plan.memory.size - var.nbytes
    # Memory is shared at all, and some arrays replace others element by element.
    assert plan.memory.size < sum(var.nbytes for var in plan.memory.offsets)
    assert plan.memory.reused > 0


@pytest.mark.parametrize("shares", [1, 2])
@pytest.mark.parametrize("name", STEPS)
def test_an_array_that_is_given_up_too_early_is_seen(monkeypatch: Any, name: str, shares: int) -> None:
    monkeypatch.setattr(memory.Uses, "last", lambda self, var: self.touched[var][0])
    assert overlaps(plan_of(name, shares))


def test_an_array_that_replaces_one_that_is_read_elsewhere_is_seen(monkeypatch: Any) -> None:
    monkeypatch.setattr(memory, "can_overwrite", lambda *_: True)
    assert any(overlaps(plan_of(name, 1)) for name in STEPS)
