"""Ties, borders and empty parts of ops, with first and second derivatives, against PyTorch."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import glassgrad as gg
from tests.ops.against_torch import torch

X = np.random.default_rng(4).normal(size=(3, 4))


def ints(lib: Any, *values: Any) -> Any:
    return lib.tensor(np.array(values))


def square(x: Any) -> Any:
    return x[:, :3]


def of(f: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Return an op of `torch.nn.functional`."""
    return lambda lib, x: f(lib.nn.functional, x)


def log_probabilities(lib: Any, x: Any) -> Any:
    return (x.reshape(4, 1, 3) + lib.zeros(4, 3, 1)).log_softmax(-1)


def product(u: Any, s: Any, vh: Any) -> Any:
    return (u * s**2) @ vh


def after_nothing(lib: Any, x: Any) -> Any:
    """Put two columns of -inf in front."""
    return lib.cat([lib.full((3, 2), -np.inf).double(), x], 1)


CALLS: dict[str, Callable[[Any, Any], Any]] = {
    # several that reach the extreme share the gradient
    "amax of ties": lambda lib, x: (x * 0 + 2).scatter_reduce(
        1, ints(lib, [0, 0], [1, 2], [3, 3]), x[:, :2] * 0 + 2, "amax"
    ),
    "amin of ties": lambda lib, x: (x**2 + 9).scatter_reduce(
        0, ints(lib, [0, 0, 1, 1], [0, 2, 1, 1]), x[:2] ** 2, "amin", include_self=False
    ),
    "gather of no dimensions": lambda lib, x: lib.gather(x.sum(), 0, lib.tensor(0)) ** 2,
    "cumprod of zeros": lambda lib, x: (x.round() * x).cumprod(1) ** 2,
    "cumprod of one zero": lambda lib, x: (x - x[0]).cumprod(0),
    "logcumsumexp of nothing": lambda lib, x: after_nothing(lib, x).logcumsumexp(1)[:, 2:] ** 2,
    "norm of zeros": lambda lib, x: lib.linalg.vector_norm(lib.cat([x, x[:1] * 0]), dim=1),
    "diagonal apart": lambda lib, x: lib.diagonal(x.reshape(2, 3, 2), -1, 2, 1) ** 2,
    "diag_embed turned": lambda lib, x: lib.diag_embed(x, 1, 0, -1) ** 2,
    "unfold": lambda lib, x: x.unfold(1, 2, 2) ** 2,
    # matrices: triangles, both shapes, no rows
    "one triangle": lambda lib, x: lib.linalg.solve_triangular(square(x), x**2, upper=False, unitriangular=True),
    "the upper one": lambda lib, x: lib.linalg.solve_triangular(square(x) + 3 * lib.eye(3).double(), x**2, upper=True),
    "one system": lambda lib, x: lib.linalg.solve(square(x) + 3 * lib.eye(3).double(), x[:, 3]),
    "cholesky of an upper one": lambda lib, x: lib.linalg.cholesky(x @ x.mT + lib.eye(3).double(), upper=True),
    "qr of a wide one": lambda lib, x: lib.linalg.qr(x)[1] ** 2,
    "qr of a tall one": lambda lib, x: lib.linalg.qr(x.mT)[0] ** 2,
    "pinv of a Hermitian one": lambda lib, x: lib.linalg.pinv(square(x) + square(x).mT, hermitian=True),
    "pinv with bounds": lambda lib, x: lib.linalg.pinv(x, atol=0.01, rtol=0.01),
    "lu of a wide one": lambda lib, x: sum((part**2).sum() for part in lib.linalg.lu(x)),
    "lu of a tall one": lambda lib, x: sum((part**2).sum() for part in lib.linalg.lu(x.mT)),
    "svd, all of it": lambda lib, x: lib.linalg.svd(x, full_matrices=True)[1],
    "svd, turned": lambda lib, x: product(*lib.linalg.svd(x.mT, full_matrices=False)) ** 2,
    # losses where they touch their bounds
    "probabilities of 0 and 1": of(lambda F, x: F.binary_cross_entropy(
        (x - 0.1).clamp(0, 1), (x > 0.3).to(x.dtype), reduction="none")),
    "attention": of(lambda F, x: F.scaled_dot_product_attention(
        x.reshape(1, 3, 4), x.reshape(1, 3, 4) ** 2, x.reshape(1, 3, 4), is_causal=True)),
    "attention of few": lambda lib, x: lib.nn.functional.scaled_dot_product_attention(
        x.reshape(1, 3, 4), x.reshape(1, 3, 4) ** 2, x.reshape(1, 3, 4), attn_mask=x[:, :3] > -0.4),
    "labels of length 0": lambda lib, x: lib.nn.functional.ctc_loss(
        log_probabilities(lib, x), ints(lib, [1, 1], [2, 1], [0, 0]), ints(lib, 4, 3, 2), ints(lib, 2, 1, 0),
        reduction="none", zero_infinity=True),
    "unequal labels": lambda lib, x: lib.nn.functional.ctc_loss(
        log_probabilities(lib, x), ints(lib, [1, 2], [2, 1], [1, 1]), ints(lib, 4, 4, 2), ints(lib, 2, 1, 2),
        blank=0, reduction="sum", zero_infinity=True),
    "ignored classes": of(lambda F, x: F.cross_entropy(x, ints(torch if F is torch.nn.functional else gg, 0, 3, 1),
                                                      ignore_index=3, label_smoothing=0.1)),
}  # fmt: skip  # a table


def derivatives(lib: Any, f: Any) -> list[Any]:
    """Return the value, the gradient, and the gradient of that one's square, where PyTorch has it."""
    x = lib.tensor(X, requires_grad=True)
    y = f(lib, x)
    weights = lib.tensor(np.linspace(0.5, 1.5, max(int(np.prod(tuple(y.shape))), 1)).reshape(tuple(y.shape)))
    (first,) = lib.autograd.grad((y * weights).sum(), x, create_graph=True)
    found = [y.detach(), first.detach()]
    if first.requires_grad:
        # PyTorch has no second derivative of some; ours are compared where it has.
        with contextlib.suppress(*(RuntimeError, NotImplementedError) if lib is torch else ()):
            found += [second.detach() for second in lib.autograd.grad((first**2).sum(), x)]
    return [part.numpy() for part in found]


@pytest.mark.parametrize("name", CALLS)
def test_value_and_derivatives_are_pytorchs(name: str) -> None:
    expected, found = derivatives(torch, CALLS[name]), derivatives(gg, CALLS[name])
    assert len(found) >= len(expected) >= 2
    for part, theirs in zip(found, expected, strict=False):
        assert np.isfinite(part).all()
        known = np.isfinite(theirs)  # their norm has no second derivative at 0
        np.testing.assert_allclose(part[known], theirs[known], rtol=1e-9, atol=1e-11)
