"""Slots of tensors are compared by one native call in the fast path, and a change in any of them is seen."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("llvmlite", reason="native code is made with llvmlite")

import glassgrad as gg
from glassgrad.compile.native.slots import holder


class Plain:
    array = None


def test_a_change_in_any_slot_is_seen() -> None:
    tensors = [gg.ones(2, requires_grad=at == 1) for at in range(3)]
    items = [tensor.array for tensor in tensors]
    flags: list[Any] = [(tensor, "_tracks", tensor.requires_grad) for tensor in tensors]
    held = holder(flags, [(tensor, "array") for tensor in tensors], items)
    assert held is not None
    assert held() is True
    for tensor in tensors:
        before = tensor._tracks
        tensor._tracks = not before
        assert held() is False
        tensor._tracks = before
        assert held() is True
    for at, tensor in enumerate(tensors):
        tensor.array = tensor.array + 0
        assert held() is False
        items[at] = tensor.array
        assert held() is True


def test_nothing_and_what_is_no_slot() -> None:
    items: list[Any] = []
    held = holder([], [], items)
    assert held is not None
    assert held()
    assert holder([(Plain(), "array", None)], [], items) is None
    assert holder([(gg.ones(2), "shape", (2,))], [], items) is None


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
    assert step._latest.quick.__globals__["held"]()
    before, w.array = w.array, w.array * 0
    kept = before.copy()
    assert not step._latest.quick.__globals__["held"]()
    assert step(x).item() == 0.0
    assert step._latest.quick.__globals__["held"]()
    assert (w.tolist(), before.tolist()) == ([-0.5, -1.0, -1.5], kept.tolist())
    w.requires_grad = False
    with pytest.raises(gg.errors.AutogradError):
        step(x)
    w.requires_grad = True
    assert step(x).item() == -7.0
