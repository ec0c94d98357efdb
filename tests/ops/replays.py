"""What tests of recorded NumPy calls share: arguments, functions, and a fixture that records at once."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from glassgrad.ops import fused, fused_loss
from glassgrad.ops.kernels import softmaxes
from glassgrad.ops.kernels.replay import Replay

Array = Any


def drawn(*shape: int, dtype: Any = np.float32, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def recorded(
    function: Callable[..., Any], make: Callable[[], tuple[Any, ...]], written: tuple[int, ...] = ()
) -> Replay:
    """Return a replay of a function that has run on such arguments until it is native."""
    found = Replay(function, written)
    for _ in range(3):
        found.run(*make())
    return found


def is_native(found: Replay) -> bool:
    return found.records > 0 and type(found.run) is type(len)


def listed(result: Any) -> tuple[Any, ...]:
    return result if isinstance(result, tuple) else (result,)


def expect_same(found: Any, expected: Any) -> None:
    pairs = list(zip(listed(found), listed(expected), strict=True))
    assert pairs
    for one, other in pairs:
        assert one.dtype == other.dtype
        assert one.shape == other.shape
        assert one.tobytes() == other.tobytes()


def are_same(found: Any, expected: Any) -> bool:
    return all(one.tobytes() == other.tobytes() for one, other in zip(found, expected, strict=True))


def labels(rows: int, classes: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).integers(0, classes, rows)


def losses_back(g: Array, logits: Array, target: Array) -> Array:
    _, exponentials, total, picked_at = fused._losses(logits, target, "mean")
    return fused._losses_back(g, exponentials, total, picked_at, 0.25)


# name -> function, and its arguments from a number of rows, of columns, and a dtype
FUNCTIONS: dict[str, tuple[Callable[..., Any], Callable[[int, int, Any], tuple[Any, ...]]]] = {
    "product": (
        fused._product_and_bias,
        lambda n, m, t: (drawn(n, 7, dtype=t), drawn(m, 7, dtype=t, seed=1), drawn(m, dtype=t, seed=2)),
    ),
    "products": (
        fused._cotangents,
        lambda n, m, t: (drawn(n, m, dtype=t), drawn(n, 7, dtype=t, seed=1), drawn(m, 7, dtype=t, seed=2)),
    ),
    "products of a first layer": (
        fused._weight_cotangents,
        lambda n, m, t: (drawn(n, m, dtype=t), drawn(n, 7, dtype=t, seed=1)),
    ),
    "batch norm": (
        partial(fused._normalised, eps=1e-5),
        lambda n, m, t: (drawn(n, m, dtype=t), drawn(m, dtype=t, seed=1), drawn(m, dtype=t, seed=2)),
    ),
    "batch norm, back": (
        fused._normalised_back,
        lambda n, m, t: (
            drawn(n, m, dtype=t), drawn(n, m, dtype=t, seed=1), abs(drawn(m, dtype=t)), drawn(m, dtype=t, seed=2),
        ),
    ),
    "cross entropy": (partial(fused._losses, reduction="mean"), lambda n, m, t: (drawn(n, m, dtype=t), labels(n, m))),
    "each loss": (partial(fused._losses, reduction="none"), lambda n, m, t: (drawn(n, m, dtype=t), labels(n, m))),
    "cross entropy, back": (losses_back, lambda n, m, t: (drawn(dtype=t) + t(0), drawn(n, m, dtype=t), labels(n, m))),
    "softmax": (partial(softmaxes._softmax, axis=1), lambda n, m, t: (drawn(n, m, dtype=t),)),
    "softmax, back": (
        partial(softmaxes._softmax_rule, axis=1), lambda n, m, t: (drawn(n, m, dtype=t), drawn(n, m, dtype=t, seed=1)),
    ),
    "log softmax": (partial(softmaxes._log_softmax, axis=1), lambda n, m, t: (drawn(n, m, dtype=t),)),
    "log softmax, back": (
        partial(softmaxes._log_softmax_vjp, axis=1),
        lambda n, m, t: (drawn(n, m, dtype=t), -abs(drawn(n, m, dtype=t, seed=1))),
    ),
    "squared error": (
        partial(fused_loss._mse, reduction="mean"),
        lambda n, m, t: (drawn(n, m, dtype=t), drawn(n, m, dtype=t, seed=1)),
    ),
    "binary cross entropy": (
        partial(fused_loss._bce_logits, reduction="mean"),
        lambda n, m, t: (drawn(n, m, dtype=t), abs(drawn(n, m, dtype=t, seed=1))),
    ),
}  # fmt: skip  # a table
