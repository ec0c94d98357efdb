"""`watch(nan=True)` around compiled steps that are not sampled: one function makes the call, and nothing is lost."""

from __future__ import annotations

import linecache
import sys
import time
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import glassgrad as gg
from glassgrad import doctor, errors, nn
from glassgrad.doctor.observers.loss_record import LossRecord
from glassgrad.doctor.observers.programs import AGAIN
from glassgrad.engine.mode import FINITE, MODE
from glassgrad.nn import functional as F

SELDOM = 10**6


class Loop:
    """A training with a rate that changes in every step."""

    def __init__(self, backend: str, groups: int = 1) -> None:
        gg.manual_seed(0)
        self.model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3))
        layers = [self.model] if groups == 1 else [self.model[0], self.model[2]]
        self.optimizer = gg.optim.Adam([{"params": layer.parameters()} for layer in layers], lr=0.01)
        self.batches = [(gg.randn(6, 4), gg.randint(0, 3, (6,))) for _ in range(14)]

        @gg.compile(backend=backend)
        def step(x: Any, y: Any) -> Any:
            loss = F.cross_entropy(self.model(x), y)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            return loss

        self.step = step

    def weights(self) -> list[bytes]:
        return [p.detach().numpy().tobytes() for p in self.model.parameters()]

    def run(self, seen: Any = None) -> tuple[list[list[bytes]], list[float]]:
        """Return the weights before each step, and the losses."""
        before, losses = [], []
        for at, (x, y) in enumerate(self.batches):
            for group in self.optimizer.param_groups:
                group["lr"] = 0.01 / (at + 1)
            before.append(self.weights())
            losses.append(self.step(x, y).item())
            assert seen is None or seen.calls.steps == at + 1
        return before, losses


def watched(loop: Loop, **options: Any) -> Any:
    return doctor.watch(loop.model, loop.optimizer, every=SELDOM, nan=True, report=False, **options)


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("backend", ["llvm", "numpy"])
@pytest.mark.parametrize("asks", [True, False], ids=["counted", "at the end"])
def test_steps_and_losses_are_those_of_the_plain_loop(backend: str, groups: int, asks: bool) -> None:
    plain = Loop(backend, groups).run()
    loop = Loop(backend, groups)
    with watched(loop) as seen:
        assert loop.run(seen if asks else None) == plain
        assert list(AGAIN) == [loop.step]
    assert AGAIN == {}
    assert seen.calls.steps == len(loop.batches)
    np.testing.assert_allclose(seen.run.losses, list(enumerate(plain[1])), rtol=1e-7)
    assert loop.step.traces == 1


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("backend", ["llvm", "numpy"])
def test_a_nan_is_seen_in_its_own_step_and_undone(backend: str, groups: int) -> None:
    plain, _ = Loop(backend, groups).run()
    loop = Loop(backend, groups)
    loop.batches[11][0][2, 1] = float("nan")
    with watched(loop) as seen, pytest.raises(errors.AutogradError) as info:
        loop.run()
    assert str(info.value).startswith("step 11: NaN in the data")
    assert loop.weights() == plain[11]
    assert (seen.calls.steps, len(seen.run.losses), AGAIN) == (11, 11, {})


def test_a_call_that_is_not_like_the_one_before_goes_another_way() -> None:
    loop = Loop("numpy")
    x, y = loop.batches[0]
    with watched(loop) as seen:
        for _ in range(4):
            loop.step(x, y)
        assert list(AGAIN) == [loop.step]
        loop.step(x[:3], y[:3])  # traced anew
        loop.step(x, y)
        with gg.autograd.detect_anomaly():
            loop.step(x, y)  # op by op
        loop.model.eval()
        loop.step(x, y=y)
        loop.step(x, y)
    assert seen.calls.steps == 9
    assert loop.step.traces == 3


def test_writes_are_known_by_the_users_line() -> None:
    loop = Loop("numpy")
    x, y = loop.batches[0]
    with watched(loop):
        for _ in range(4):
            loop.step(x, y)
        kept = loop.model(x)
        loop.step(x, y)  # this line
        with pytest.raises(errors.AutogradError) as info:
            kept.sum().backward()
    name = Path(__file__).name
    lines = [int(part.split()[0].rstrip(":,.")) for part in str(info.value).split(f"{name}:")[1:]]
    assert any(linecache.getline(__file__, line).endswith("# this line\n") for line in lines)


def test_a_quiet_step_makes_one_python_call_more() -> None:
    pytest.importorskip("llvmlite", reason="a NumPy program makes calls of its own for the check")

    def calls(watch: bool) -> list[str]:
        loop = Loop("llvm")
        x, y = loop.batches[0]
        counted: list[str] = []
        with watched(loop, preset="economy") if watch else nullcontext():
            for _ in range(4):
                loop.step(x, y)
            sys.setprofile(lambda frame, event, _: counted.append(frame.f_code.co_name) if event == "call" else None)
            loop.step(x, y)
            sys.setprofile(None)
        return counted

    assert len(calls(watch=True)) == len(calls(watch=False)) + 1


@pytest.mark.parametrize("threads", [1, None])
def test_one_thread_adds_up_what_is_finite_in_the_loops_that_write(
    threads: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two threads share those loops, which they could not if one number came out of each."""
    pytest.importorskip("llvmlite", reason="native code is made with llvmlite")
    from glassgrad.compile import stages
    from glassgrad.compile.native import threads as choice

    for module in (stages, choice):
        monkeypatch.setattr(module, "available_cores", lambda: 2)
    kernels = []
    for flags in (0, FINITE):
        model = nn.Linear(200, 200)
        optimizer = gg.optim.Adam(model.parameters(), lr=0.01)

        @gg.compile(backend="llvm", threads=threads)
        def step(x: Any, model: Any = model, optimizer: Any = optimizer) -> Any:
            loss = model(x).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            return loss

        before = MODE.flags
        MODE.flags |= flags
        try:
            step(gg.randn(32, 200))
        finally:
            MODE.flags = before
        assert step.stats.threads == (threads or 2)
        kernels.append(step.stats.kernels)
    assert kernels[1] <= kernels[0] if threads else kernels[1] >= kernels[0]


@pytest.mark.parametrize(("seconds", "floats", "asks"), [(0.04, 1, 18), (1e-4, 1, 266), (0.04, 1 << 22, 16)])
def test_long_steps_are_asked_often_and_short_ones_seldom(seconds: float, floats: int, asks: int) -> None:
    loop = Loop("numpy")
    steps = watched(loop)._guard.compiled
    steps._log = [None] * 4 * 10  # ten calls
    steps._spent = 1e9
    steps._copied = time.perf_counter() - 10 * seconds
    assert not steps._is_due((np.empty(floats, np.float32), 3))
    assert steps._asks == asks


def test_losses_are_kept_by_step() -> None:
    record = LossRecord()
    assert (record.of(0), record.table().shape) == (None, (0, 2))
    record.add(0, 2.5)
    record.waiting += [1.5, 0.5]
    assert (record.of(0), record.count(4), record.waiting) == (2.5, 2, [])
    assert (record.of(4), record.of(5)) == (None, 0.5)
    assert record.table().tolist() == [[0, 2.5], [4, 1.5], [5, 0.5]]
