"""Transforms nested in many orders, against torch.func.

Every transform here turns a function of one tensor into another such function, so that any sequence of
them is a case.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import glassgrad as gg

torch = pytest.importorskip("torch", reason="torch.func is the oracle of these tests")

# torch's forward mode compiles its own decompositions with a function it has deprecated itself.
pytestmark = pytest.mark.filterwarnings("ignore:.*torch.jit.script.*:DeprecationWarning")

OURS = SimpleNamespace(func=gg.func, tensor=gg.tensor)
THEIRS = SimpleNamespace(func=torch.func, tensor=torch.tensor)

SIZE = 2
X = np.array([0.3, -0.7])
W = np.array([[0.5, -0.2], [0.1, 0.9]])

Function = Callable[[Any], Any]


def base(lib: Any, w: Any) -> Function:
    """R2 -> R2, curved in every direction, with a product, a selection and a reduction."""
    return lambda x: (w @ x).tanh() * x.exp() + (x * x).sum() * x[0]


def numbers(lib: Any, like: Any, seed: int) -> Any:
    return lib.tensor(np.random.default_rng(seed).normal(size=tuple(like.shape)))


def jvp(lib: Any, f: Function) -> Function:
    return lambda x: lib.func.jvp(f, (x,), (numbers(lib, x, 1),))[1]


def vjp(lib: Any, f: Function) -> Function:
    def pulled(x: Any) -> Any:
        y, pull = lib.func.vjp(f, x)
        return pull(numbers(lib, y, 2))[0]

    return pulled


def grad(lib: Any, f: Function) -> Function:
    return lib.func.grad(lambda x: (f(x) ** 2).sum())


def jacrev(lib: Any, f: Function) -> Function:
    return lib.func.jacrev(f)


def jacfwd(lib: Any, f: Function) -> Function:
    return lib.func.jacfwd(f)


def vmap(lib: Any, f: Function) -> Function:
    """Of two points that both depend on x, results along the last dimension."""
    scales = lib.tensor(np.array([[1.0, 1.0], [0.5, -2.0]]))
    return lambda x: lib.func.vmap(f, in_dims=1, out_dims=-1)((x * scales).T)


def vmap_pull(lib: Any, f: Function) -> Function:
    """Three cotangents at once through one vjp."""

    def pulled(x: Any) -> Any:
        y, pull = lib.func.vjp(f, x)
        rows = lib.tensor(np.random.default_rng(3).normal(size=(3, *y.shape)))
        return lib.func.vmap(pull)(rows)[0]

    return pulled


TRANSFORMS = [jvp, vjp, grad, jacrev, jacfwd, vmap, vmap_pull]
PAIRS = list(itertools.product(TRANSFORMS, repeat=2))
TRIPLES = random.Random(0).sample(list(itertools.product(TRANSFORMS, repeat=3)), 70)


def name(chain: Any) -> str:
    return "-".join(transform.__name__ for transform in chain)


def nested(lib: Any, chain: Any, w: Any) -> Function:
    f = base(lib, w)
    for transform in chain:
        f = transform(lib, f)
    return f


@pytest.mark.parametrize("chain", [*PAIRS, *TRIPLES], ids=name)
def test_nested_transforms_agree_with_torch(chain: Any) -> None:
    ours = nested(OURS, chain, gg.tensor(W))(gg.tensor(X))
    theirs = nested(THEIRS, chain, torch.tensor(W))(torch.tensor(X))
    assert tuple(ours.shape) == tuple(theirs.shape)
    assert not ours.requires_grad
    np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("chain", random.Random(1).sample(TRIPLES, 25), ids=name)
def test_what_nested_transforms_close_over_has_a_gradient(chain: Any) -> None:
    """By grad, by jvp, and by backward() on a leaf: the same as torch's grad."""
    theirs = torch.func.grad(lambda w: (nested(THEIRS, chain, w)(torch.tensor(X)) ** 2).sum())(torch.tensor(W)).numpy()

    def loss(w: Any) -> Any:
        return (nested(OURS, chain, w)(gg.tensor(X)) ** 2).sum()

    np.testing.assert_allclose(gg.func.grad(loss)(gg.tensor(W)).numpy(), theirs, rtol=1e-8, atol=1e-9)
    w = gg.tensor(W, requires_grad=True)
    loss(w).backward()
    np.testing.assert_allclose(w.grad.numpy(), theirs, rtol=1e-8, atol=1e-9)
    direction = np.random.default_rng(5).normal(size=W.shape)
    moved = gg.func.jvp(loss, (gg.tensor(W),), (gg.tensor(direction),))[1].item()
    assert moved == pytest.approx(float((theirs * direction).sum()), rel=1e-8, abs=1e-9)
