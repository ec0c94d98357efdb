"""Transforms inside a compiled function: the same numbers as in eager mode."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import glassgrad as gg
from glassgrad import func
from glassgrad.checkpoint import checkpoint

pytestmark = pytest.mark.usefixtures("numpy_target")  # native code of their graphs is for tests/compile/llvm


class Square(gg.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return 2 * g * ctx.saved_tensors[0]


def loss(w: Any, x: Any) -> Any:
    return ((x @ w).tanh() ** 2).sum()


CALLS: dict[str, Callable[[Any, Any], Any]] = {
    "grad": func.grad(loss),
    "value_and_grad": func.value_and_grad(loss),
    "jvp": lambda w, x: func.jvp(lambda w: loss(w, x), (w,), (w,))[1],
    "hvp": lambda w, x: func.hvp(lambda w: loss(w, x), (w,), (w,)),
    "hessian": func.hessian(loss),
    "vmap": lambda w, x: func.vmap(lambda row: (row @ w).tanh().sum())(x),
    "per-example": func.vmap(func.grad(loss), (None, 0)),
    "checkpoint": lambda w, x: func.grad(lambda w: checkpoint(loss, w, x))(w),
    "Function": lambda w, x: func.grad(lambda w: Square.apply(x @ w).sum())(w),
}


@pytest.mark.parametrize("name", CALLS)
def test_compiled_and_eager_agree(name: str) -> None:
    rng = np.random.default_rng(0)
    w, x = gg.tensor(rng.normal(size=(3, 2))), gg.tensor(rng.normal(size=(4, 3)))
    found, expected = gg.compile(CALLS[name])(w, x), CALLS[name](w, x)
    pairs = zip(found, expected, strict=True) if isinstance(expected, tuple) else [(found, expected)]
    for one, other in pairs:
        np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=1e-9, atol=1e-12)
