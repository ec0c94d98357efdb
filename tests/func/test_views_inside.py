"""Views of views, copies and detached tensors, written in place: eager, compiled and under vmap, against PyTorch.

The effect of a write depends on whether a tensor is a view or a copy; inside a transform, no memory shows the
difference.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import glassgrad as gg
from glassgrad import func
from glassgrad.ops.vmap.batched import looks
from tests.ops.against_torch import torch

X = np.arange(12.0).reshape(3, 4) / 5 + 0.3


def view_of_a_view_of_a_view(lib: Any, x: Any) -> Any:
    y = x * 1.0
    view = y.t()[1:3].reshape(2, 3)[:, ::2]
    view.mul_(3.0)
    view[0, 1] = 7.0
    return (y**2).sum()


def base_and_view_in_turn(lib: Any, x: Any) -> Any:
    y = x * 2
    view = y.view(4, 3).t().unsqueeze(0)
    y.add_(1)
    other = view.squeeze(0).clone()
    view.sub_(other.mean())
    return (y * y * x).sum()


def reshape_that_copies(lib: Any, x: Any) -> Any:
    y = x.clone()
    copied, looking = y.t().reshape(-1), y.reshape(-1)
    copied.mul_(2)
    looking[0] = 9
    return (y**2).sum() + (copied**2).sum()


def flatten_that_looks(lib: Any, x: Any) -> Any:
    y = x.clone()
    y.flatten().mul_(2)
    y.ravel()[1] = 0
    y[:, :3].flatten().mul_(5)
    return (y**2).sum()


def contiguous(lib: Any, x: Any) -> Any:
    y = x.clone()
    y.contiguous().mul_(2)
    copied = y.t().contiguous()
    copied.mul_(5)
    return (y**2).sum() + copied.sum()


def detached(lib: Any, x: Any) -> Any:
    y = x * 1.5
    y.detach().mul_(2)
    y.data[0].add_(1.0)
    return (x * 2).sum() + y.sum() + (y.detach() * x).sum()


def detached_view(lib: Any, x: Any) -> Any:
    y = x * 1.5
    view = y[1:].detach()
    y.mul_(3)
    view[0] = 2.0
    return y.sum() + view.sum() * x[0, 0]


def writes_to_nothing(lib: Any, x: Any) -> Any:
    y = x.clone()
    y[3:] = 5.0
    y[:, :0].mul_(3)
    y[1:1].add_(x[:0])
    return (y**2).sum()


def halves_in_turn(lib: Any, x: Any) -> Any:
    y = x.clone()
    even, odd = y[:, ::2], y[:, 1::2]
    even.add_(odd)
    odd.add_(even)
    return (y * x).sum()


def another_shape_in_place(lib: Any, x: Any) -> Any:
    y = x.clone()
    y.unsqueeze_(0)
    y[0, 1] = 2
    y.squeeze_(0)
    y.t_()
    y[0] = x[:, 0] * 2
    return (y**2).sum()


PROGRAMS = [
    view_of_a_view_of_a_view, base_and_view_in_turn, reshape_that_copies, flatten_that_looks, contiguous, detached,
    detached_view, writes_to_nothing, halves_in_turn, another_shape_in_place,
]  # fmt: skip  # a table


def compiled(backend: str) -> Callable[[Any], Any]:
    def run(f: Callable[[Any, Any], Any]) -> Any:
        def step(given: Any) -> Any:
            x = given.clone().requires_grad_()
            loss = f(gg, x)
            loss.backward()
            return loss.detach(), x.grad

        return gg.compile(step, backend=backend, strict=True)(gg.tensor(X))

    return run


def eagerly(f: Callable[[Any, Any], Any], lib: Any = gg) -> Any:
    x = lib.tensor(X, requires_grad=True)
    loss = f(lib, x)
    loss.backward()
    return loss.detach(), x.grad


def mapped(f: Callable[[Any, Any], Any], dims: int = 0) -> Any:
    """The second of two examples."""
    rows = gg.tensor(np.stack([X * 0.9, X], axis=dims))
    loss = func.vmap(lambda x: f(gg, x), dims)(rows)
    return loss[1], func.vmap(func.grad(lambda x: f(gg, x)), dims)(rows)[1]


WAYS: dict[str, Callable[..., Any]] = {
    "eager": eagerly,
    "llvm": compiled("llvm"),
    "numpy": compiled("numpy"),
    "vmap": mapped,
    "vmap of columns": lambda f: mapped(f, 1),
    "compiled vmap": lambda f: gg.compile(lambda: mapped(f), strict=True)(),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_loss_and_gradient_are_pytorchs(program: Any, way: str) -> None:
    expected = eagerly(program, torch)
    for found, wanted in zip(WAYS[way](program), expected, strict=True):
        np.testing.assert_allclose(found.numpy(), wanted.numpy(), rtol=1e-12)


def test_a_reshape_of_nothing_is_a_view() -> None:
    """Sizes of 0 divide nothing."""
    assert looks((4, 0), (8, 8), (0, 8))
    assert looks((3, 4, 0, 2), (1, 24, 8, 8), (2, 0))
    assert not looks((3, 4), (8, 24), (12,))
