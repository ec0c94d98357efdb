"""Arguments about memory in PyTorch's tensor factories: accepted for the only supported kind, otherwise refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import glassgrad as gg
from glassgrad import compat, errors

X = gg.ones(2, 3)
MAKERS: dict[str, Callable[..., Any]] = {
    "tensor": lambda **k: gg.tensor([1.0], **k),
    "zeros": lambda **k: gg.zeros(2, **k),
    "ones": lambda **k: gg.ones(2, **k),
    "empty": lambda **k: gg.empty(2, **k),
    "full": lambda **k: gg.full((2,), 1.0, **k),
    "zeros_like": lambda **k: gg.zeros_like(X, **k),
    "ones_like": lambda **k: gg.ones_like(X, **k),
    "empty_like": lambda **k: gg.empty_like(X, **k),
    "full_like": lambda **k: gg.full_like(X, 2.0, **k),
    "arange": lambda **k: gg.arange(3, **k),
    "linspace": lambda **k: gg.linspace(0, 1, 3, **k),
    "eye": lambda **k: gg.eye(2, **k),
    "rand": lambda **k: gg.rand(2, **k),
    "randn": lambda **k: gg.randn(2, **k),
    "randint": lambda **k: gg.randint(3, (2,), **k),
    "randperm": lambda **k: gg.randperm(3, **k),
    "rand_like": lambda **k: gg.rand_like(X, **k),
    "randn_like": lambda **k: gg.randn_like(X, **k),
    "new_tensor": lambda **k: X.new_tensor([1.0], **k),
    "new_zeros": lambda **k: X.new_zeros(2, **k),
    "new_ones": lambda **k: X.new_ones(2, **k),
    "new_empty": lambda **k: X.new_empty(2, **k),
    "new_full": lambda **k: X.new_full((2,), 1.0, **k),
}


@pytest.mark.parametrize("name", MAKERS)
def test_makers_take_what_there_is_anyway(name: str) -> None:
    with compat.as_torch():
        import torch

        plain = MAKERS[name]()
        found = MAKERS[name](layout=torch.strided, pin_memory=False, memory_format=torch.contiguous_format)
    assert found.shape == plain.shape
    assert found.dtype == plain.dtype
    for option, value in (("layout", "sparse_coo"), ("pin_memory", True), ("memory_format", "channels_first")):
        with pytest.raises(errors.ArgumentError, match=rf"{name}: {option}={value!r} is not possible .*\.py:\d+"):
            MAKERS[name](**{option: value})


def test_copies_take_a_memory_format() -> None:
    turned = gg.arange(6.0).reshape(2, 3).mT
    for memory_format in ("contiguous", "preserve", None):
        assert turned.clone(memory_format=memory_format).tolist() == turned.tolist()
        assert turned.contiguous(memory_format=memory_format).is_contiguous()
    for call in (turned.clone, turned.contiguous):
        with pytest.raises(errors.ArgumentError, match="memory_format"):
            call(memory_format="unheard of")
