"""Values that a nest keeps in scratch memory from one pass over its inner axes to the next."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import glassgrad as gg


def _sums_and_writes(place: Any) -> Callable[[Any], Any]:
    def step(x: Any) -> Any:
        x = x.detach().clone().requires_grad_()
        y = x * 1.0
        y[place] = 0.25
        total = x.sum() * 0.1
        loss = (y * y).sum() * 0.1 + (total * total) * 0.1
        loss.backward()
        return loss.detach(), x.grad

    return step


@pytest.mark.parametrize("shape", [(2, 3, 4), (5, 12), (3, 40), (4, 3, 2, 5)])
@pytest.mark.parametrize("dtype", [gg.float32, gg.float64])
def test_what_varies_along_some_of_the_inner_axes_is_kept_for_those(shape: tuple[int, ...], dtype: Any) -> None:
    """Which rows were written is found once a row, outside of the loop over its elements, and needed by two passes."""
    x = gg.from_numpy(np.random.default_rng(0).normal(size=shape).astype(dtype))
    for place in (slice(None, None, 2), (slice(None), slice(None, None, 3)), (slice(1, None, 2), slice(None, None, 2))):
        step = _sums_and_writes(place)
        compiled = gg.compile(step, strict=True)
        for one, other in zip(compiled(x), step(x), strict=True):
            np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=1e-5 if dtype == gg.float32 else 1e-12)
