"""`verify=True` names the faulty stage: tests plant a fault in one stage after the other."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import glassgrad as gg
from glassgrad import errors, nn, optim
from glassgrad.compile.numpy import program
from glassgrad.compile.plan import memory
from glassgrad.engine.mode import MODE, TRACING
from glassgrad.nn import functional as F


def mlp_step() -> Any:
    gg.manual_seed(3)
    model = nn.Sequential(nn.Linear(19, 37), nn.Tanh(), nn.Linear(37, 23), nn.Tanh(), nn.Linear(23, 5))
    optimizer = optim.AdamW(model.parameters(), lr=0.01)

    def step(x: Any, y: Any) -> Any:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    return step


def batch() -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    return gg.tensor(rng.normal(size=(31, 19))), gg.tensor(rng.integers(0, 5, 31))


def told_of(step: Any, *args: Any, **options: Any) -> str:
    with pytest.raises(errors.CompileError) as caught:
        gg.compile(step, verify=True, **options)(*args)
    return str(caught.value)


@pytest.mark.parametrize("threads", [1, 2])
def test_memory_that_is_reused_too_early_is_a_fault_of_the_plan(monkeypatch: Any, threads: int) -> None:
    pytest.importorskip("llvmlite", reason="NumPy programs have no memory plan")
    monkeypatch.setenv("GLASSGRAD_CACHE_DIR", "")
    monkeypatch.setattr(memory.Uses, "last", lambda self, var: self.touched[var][0])
    told = told_of(mlp_step(), *batch(), backend="llvm", threads=threads)
    assert "The trace and each instruction by itself are right" in told
    assert "compile/plan/memory.py" in told
    assert "compile/plan/order.py" in told


def test_a_numpy_program_that_is_wrong_as_a_whole(monkeypatch: Any) -> None:
    right = program.NumpyStep.__call__

    def wrong(self: Any, *arrays: Any) -> Any:
        results = right(self, *arrays)
        return tuple(array + 1 for array in results) if len(results) == 1 else results

    monkeypatch.setattr(program.NumpyStep, "__call__", wrong)
    told = told_of(lambda x: (x.exp() * 2).sum(), gg.ones(3), backend="numpy")
    assert "compile/numpy/program.py" in told
    assert "compile/plan" not in told


def test_a_trace_that_is_not_what_python_does() -> None:
    told = told_of(lambda x: (x.exp() * (2 if MODE.flags & TRACING else 3)).sum(), gg.ones(3), backend="numpy")
    assert "the fault is in the trace, which differs from eager mode" in told
    assert "compile/front" in told


def test_the_state_is_that_of_the_eager_call(monkeypatch: Any) -> None:
    pytest.importorskip("llvmlite", reason="NumPy programs have no memory plan")
    monkeypatch.setenv("GLASSGRAD_CACHE_DIR", "")
    monkeypatch.setattr(memory.Uses, "last", lambda self, var: self.touched[var][0])

    def ended(compiled: bool) -> list[Any]:
        gg.manual_seed(4)
        model = nn.Sequential(nn.Linear(19, 41), nn.Tanh(), nn.Linear(41, 5))
        optimizer = optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

        def step(x: Any, y: Any) -> None:
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            optimizer.step()

        if compiled:
            told_of(step, *batch(), backend="llvm", threads=1)
        else:
            step(*batch())
        return [p.detach().numpy().copy() for p in model.parameters()]

    for one, other in zip(ended(True), ended(False), strict=True):
        np.testing.assert_array_equal(one, other)
