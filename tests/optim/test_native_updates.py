"""Large parameters are updated by one native loop over a rule: NumPy's results up to rounding."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import glassgrad as gg
from glassgrad import optim
from glassgrad.ops.kernels import native, products
from glassgrad.optim import native_update
from glassgrad.optim.in_place import InPlace
from tests.optim.optimizer_cases import OPTIMIZERS, OURS, Case
from tests.optim.test_rules import rule_of

updates = pytest.importorskip("glassgrad.compile.native.updates", reason="native code needs llvmlite")

SHAPE = (100, 90)  # more than the elements that `in_place` calls few
# Their rules are no loops over elements.
NEVER = {"Rprop", "Adafactor"}
# Optimizers of our own with a loop. A rule of three operators has none: NumPy's passes cost no more.
LOOPS_OF_OURS = {"Lion"}
CASES = {case.name: case for case in sorted([*OPTIMIZERS, *OURS], key=lambda case: len(case.options))}.values()


class Noted(native.Kernels):
    """Kernels, and how many were asked for."""

    def __init__(self) -> None:
        super().__init__(made_freely=1000)
        self.found: list[Any] = []

    def find(self, *request: Any) -> Any:
        self.found.append(super().find(*request))
        return self.found[-1]


@pytest.fixture
def kernels(monkeypatch: pytest.MonkeyPatch) -> Noted:
    """Native code for all parameters that `in_place` calls large, in chunks."""
    noted = Noted()
    monkeypatch.setattr(native, "kernels", noted)
    monkeypatch.setattr(native_update, "FROM", 1)
    monkeypatch.setattr(native_update, "CHUNK", 800)
    return noted


def begun(case: Case, dtype: Any) -> tuple[gg.Tensor, Any]:
    p = gg.tensor(np.random.default_rng(1).standard_normal(SHAPE).astype(dtype), requires_grad=True)
    return p, getattr(optim, case.name)([p], **case.options)


def step(p: gg.Tensor, optimizer: Any, seed: int) -> None:
    p.grad = gg.tensor(np.random.default_rng(seed).standard_normal(SHAPE).astype(p.dtype))
    optimizer.step()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_parameters_and_state_are_those_of_numpy(case: Case, kernels: Noted) -> None:
    found, sources = [], []
    for dtype, off in ((np.float32, False), (np.float64, True)):
        kernels.off = off
        p, optimizer = begun(case, dtype)
        for seed in range(4):
            step(p, optimizer, seed)
        found.append([p, *(value for _, value in sorted(optimizer.state[p].items()))])
        sources.append("".join(optimizer._in_place.sources))
    natively = "natively" in sources[0]
    assert (None not in kernels.found and bool(kernels.found)) == natively
    if case in OPTIMIZERS or case.name in LOOPS_OF_OURS:
        assert natively == (case.name not in NEVER)
    assert len(found[0]) == len(found[1])
    for mine, exact in zip(*found, strict=True):
        expected = exact.detach().numpy()
        np.testing.assert_allclose(mine.detach().numpy(), expected, rtol=2e-5, atol=2e-5)


def test_the_state_goes_on_from_one_to_the_other(kernels: Noted) -> None:
    case = Case("AdamW", {"lr": 0.03})
    (p, optimizer), (q, other) = begun(case, np.float64), begun(case, np.float64)
    for seed in range(4):
        kernels.off = seed % 2 == 1
        step(p, optimizer, seed)
        kernels.off = True
        step(q, other, seed)
        if seed == 1:
            again = optim.AdamW([p])
            again.load_state_dict(optimizer.state_dict())
            optimizer = again
    np.testing.assert_allclose(p.detach().numpy(), q.detach().numpy(), rtol=1e-12)


@pytest.mark.parametrize("what", ["state in columns", "shared state", "state that is the gradient", "p in columns"])
def test_numpy_updates_what_lies_otherwise(what: str, kernels: Noted) -> None:
    case, results = Case("Adam", {"lr": 0.03}), []
    for off in (False, True):
        kernels.off = off
        p, optimizer = begun(case, np.float64)
        step(p, optimizer, 0)
        state = optimizer.state[p]
        match what:
            case "state in columns":
                state["exp_avg"].array = np.asfortranarray(state["exp_avg"].array)
            case "shared state":
                p.grad = gg.tensor(np.ones(SHAPE))
                state["exp_avg"].array = state["exp_avg_sq"].array
            case "state that is the gradient":
                p.grad = gg.tensor(np.ones(SHAPE))
                state["exp_avg"].array = p.grad.array
            case "p in columns":
                p.array = np.asfortranarray(p.array)
        before = len(kernels.found)
        optimizer.step()
        assert len(kernels.found) == before
        results.append(p.detach().numpy())
    np.testing.assert_allclose(*results, rtol=1e-12)


def test_equal_rules_share_their_kernels(kernels: Noted) -> None:
    for rate in (0.1, 0.2):
        p, optimizer = begun(Case("AdamW", {"lr": rate}), np.float32)
        step(p, optimizer, 0)
    assert len(kernels._known) == 1
    p, optimizer = begun(Case("AdamW", {"lr": 0.1, "amsgrad": True}), np.float32)
    step(p, optimizer, 0)
    assert len(kernels._known) == 2


SIZES = [(100, 90), (3,), (1,), (40, 50), (7, 3), (800,), (0, 4)]


def several(monkeypatch: pytest.MonkeyPatch, off: bool) -> tuple[list[Any], list[int]]:
    """Parameters of many sizes after three steps, and how many were updated by each call of native code."""
    monkeypatch.setattr(native.kernels, "off", off)
    rng, calls = np.random.default_rng(3), []
    run = updates.Loop.run

    def noted(self: Any, entries: Any, numbers: Any) -> None:
        calls.append(len(entries))
        run(self, entries, numbers)

    monkeypatch.setattr(updates.Loop, "run", noted)
    params = [gg.tensor(rng.standard_normal(shape), requires_grad=True) for shape in SIZES]
    optimizer = optim.AdamW(params, lr=0.03)
    for _ in range(3):
        for p in params:
            p.grad = gg.tensor(rng.standard_normal(p.shape))
        optimizer.step()
    monkeypatch.setattr(updates.Loop, "run", run)
    values = [value.detach().numpy() for p in params for value in (p, *optimizer.state[p].values())]
    return values, calls


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.usefixtures("kernels")
def test_all_parameters_are_updated_in_one_call(monkeypatch: pytest.MonkeyPatch, threads: int) -> None:
    monkeypatch.setattr(native_update, "FROM", 9000)
    monkeypatch.setattr(products, "source", lambda: SimpleNamespace(count=lambda _: threads))
    (mine, calls), (expected, none) = (several(monkeypatch, off) for off in (False, True))
    assert not none
    assert calls[-2:] == [len(SIZES)] * 2  # the first step has shown how many elements there are
    for one, other in zip(mine, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-15)


def test_parameters_that_share_memory_are_updated_in_their_order(kernels: Noted) -> None:
    found = []
    for off in (False, True):
        kernels.off = off
        whole = np.random.default_rng(4).standard_normal(12_000)
        params = [gg.from_numpy(whole[start : start + 9000]).requires_grad_() for start in (0, 3000)]
        optimizer = optim.AdamW(params, lr=0.03)
        for p in params:
            p.grad = gg.tensor(np.ones(9000))
        optimizer.step()
        found.append(whole)
    np.testing.assert_allclose(*found, rtol=1e-12)


def test_drawn_rules(kernels: Noted) -> None:
    """Values that are used twice, swapped, or stored after others were read."""
    natively = 0
    for seed in range(16):
        found = []
        for off in (False, True):
            kernels.off = off
            rng = np.random.default_rng(seed)
            p, g, state, in_place = rng.uniform(0.5, 2, SHAPE), rng.uniform(0.5, 2, SHAPE), {}, InPlace()
            for _ in range(3):
                in_place.step(rule_of(seed), p, g, state, {"lr": 0.1, "swap": seed % 2 == 0}, "Drawn")
            found.append([p, *(value.array for _, value in sorted(state.items()))])
        natively += any("natively" in text for text in in_place.sources)
        for mine, expected in zip(*found, strict=True):
            np.testing.assert_allclose(mine, expected, rtol=1e-10, atol=1e-10)
    assert natively > 1
    assert None not in kernels.found
