"""The fast path notices another array in a tensor of its state, and a changed `requires_grad`."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("llvmlite", reason="native code is made with llvmlite")

import glassgrad as gg


def test_a_step_follows_arrays_that_are_exchanged_and_keeps_its_fast_path() -> None:
    w = gg.ones(3, requires_grad=True)
    optimizer = gg.optim.SGD([w], lr=0.5)

    @gg.compile(backend="llvm")
    def step(x: Any) -> Any:
        loss = (w * x).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    x = gg.tensor([1.0, 2.0, 3.0])
    for _ in range(3):
        step(x)
    quick = step._latest.quick
    before, w.array = w.array, w.array * 0
    kept = before.copy()
    assert step(x).item() == 0.0
    assert step._latest.quick is quick
    assert (w.tolist(), before.tolist()) == ([-0.5, -1.0, -1.5], kept.tolist())
    w.requires_grad = False
    with pytest.raises(gg.errors.AutogradError):
        step(x)
    w.requires_grad = True
    assert step(x).item() == -7.0
