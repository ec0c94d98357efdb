"""`Tensor(...)` itself, which reads whole numbers as sizes, like PyTorch."""

from __future__ import annotations

import numpy as np
import pytest

import glassgrad as gg


@pytest.mark.parametrize("sizes", [(2, 3), (4,), (0,), (2, 0, 5)])
def test_whole_numbers_are_sizes(sizes: tuple[int, ...]) -> None:
    made = gg.Tensor(*sizes)
    assert made.shape == sizes
    assert made.dtype == np.float32
    assert gg.nn.Parameter(made).shape == sizes


def test_anything_else_is_the_value() -> None:
    assert gg.Tensor([1, 2]).tolist() == [1.0, 2.0]
    assert gg.Tensor(2.5).item() == 2.5
    assert gg.Tensor().shape == (0,)
    assert gg.Tensor(np.ones(3), requires_grad=True).requires_grad


def test_requires_grad_is_named() -> None:
    with pytest.raises(TypeError):
        gg.Tensor([1.0], True)
