"""Short rows whose passes wait for one another run side by side, with the same numbers as one by one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import glassgrad as gg
from glassgrad.compile.llvm.loops import nest_layout
from glassgrad.compile.llvm.module.target import host
from glassgrad.nn import functional as F
from tests.thinning import covering

pytest.importorskip("llvmlite", reason="rows are laid out by the native backend")


def _softmax(x: Any) -> Any:
    x = x.detach().clone().requires_grad_()
    y = F.softmax(x, -1)
    (y * y).sum().backward()
    return y, x.grad


def _cross_entropy(x: Any) -> Any:
    x = x.detach().clone().requires_grad_()
    rows = x.reshape(-1, x.shape[-1])
    loss = F.cross_entropy(rows, gg.arange(len(rows)) % x.shape[-1], reduction="none")
    loss.sum().backward()
    return loss, x.grad


def _in_place(x: Any) -> Any:
    y = x * 2
    y -= y.max(-1, keepdim=True).values
    y.exp_()
    y /= y.sum(-1, keepdim=True)
    return (y,)


# Rows that are a multiple of four, some left over, fewer than are worth it; plain loops inside the shared one.
SHAPES = [(32, 27), (33, 27), (9, 16), (3, 5), (30, 2, 11, 19)]


def _found(step: Any, x: Any, threads: int) -> list[Any]:
    return [part.detach().numpy() for part in gg.compile(step, strict=True, threads=threads)(x)]


@pytest.mark.parametrize(("shape", "step", "threads"), covering(SHAPES, [_softmax, _cross_entropy, _in_place], [1, 2]))
def test_every_bit_is_that_of_rows_one_by_one(
    shape: tuple[int, ...], step: Any, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    x = gg.tensor(np.random.default_rng(0).normal(size=shape, scale=3).astype(np.float32))
    x[..., 0, 1] = np.nan
    chosen: list[int] = []
    choose = nest_layout.rows_beside

    def counted(*given: Any) -> int:
        chosen.append(choose(*given))
        return chosen[-1]

    monkeypatch.setattr(nest_layout, "rows_beside", counted)
    together = _found(step, x, threads)
    if host().vector_bytes == 64:  # with shorter vectors the longer rows go in a loop
        assert (max(chosen, default=1) > 1) == (int(np.prod(shape[:-1])) >= 8)
    monkeypatch.setattr(nest_layout, "rows_beside", lambda *_: 1)
    alone = _found(step, x, threads)
    for one, other in zip(together, alone, strict=True):
        np.testing.assert_array_equal(one, other, strict=True)
        assert np.isnan(one).any()
        assert not np.isnan(one).all()
