"""Every way to walk a graph, with hooks on it, against PyTorch: all leaves, some leaves, results, differentiable."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import glassgrad as gg
from glassgrad.engine.mode import MODE
from glassgrad.engine.tape import Observer

torch = pytest.importorskip("torch", reason="PyTorch is the oracle")

WAYS = ["backward", "backward of some", "grad", "grad of a result", "grad of both", "create_graph"]


def gradients(lib: Any, way: str, hooked: bool) -> tuple[list[Any], list[Any]]:
    """Return gradients, and what a hook on an intermediate result saw."""
    x = lib.tensor([[0.5, -1.0, 2.0], [1.5, 0.25, -0.75]], dtype=lib.float64, requires_grad=True)
    w = lib.tensor([1.0, 2.0, -3.0], dtype=lib.float64, requires_grad=True)
    middle = (x * w).tanh()
    seen: list[Any] = []
    if hooked:
        middle.register_hook(lambda g: seen.append(g.detach().numpy().copy()))
        middle.register_hook(lambda g: g * 3)
    high, low = (middle * middle).sum(0).split([2, 1])
    q, r = lib.linalg.qr(middle[:, :2])  # one op of several results
    loss = (high.exp().sum() * low.sum()) + middle.sum() + w.sum() + (q[0] * r.sum(1)).sum() + r.exp().sum()
    if way.startswith("backward"):
        loss.backward(inputs=[x] if way == "backward of some" else None)
        assert (w.grad is None) == (way == "backward of some")
        found = [x.grad] if w.grad is None else [x.grad, w.grad]
    elif way == "create_graph":
        (first,) = lib.autograd.grad(loss, [w], create_graph=True)
        found = [first, *lib.autograd.grad((first * first).sum(), [x, w])]
    else:
        wanted = {"grad": [x, w], "grad of a result": [middle], "grad of both": [w, middle, x]}[way]
        found = list(lib.autograd.grad(loss, wanted))
        if way == "grad of both" and hooked:
            # PyTorch shows a result's gradient as its hooks left it when it is asked for alone, and as it was before
            # them when the walk goes on behind it. Ours is always as they left it.
            (alone,) = gradients(gg, "grad of a result", hooked=True)[0]
            if lib is gg:
                np.testing.assert_allclose(found[1].numpy(), alone, rtol=1e-12)
            del found[1]
    return [g.detach().numpy() for g in found], seen


@pytest.mark.parametrize("hooked", [False, True])
@pytest.mark.parametrize("way", WAYS)
def test_as_in_pytorch(way: str, hooked: bool) -> None:
    ours, theirs = gradients(gg, way, hooked), gradients(torch, way, hooked)
    for found, expected in zip(ours, theirs, strict=True):
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            assert one.shape == other.shape
            np.testing.assert_allclose(one, other, rtol=1e-12)
    assert bool(ours[1]) == hooked


@pytest.mark.parametrize("wanted", [True, False])
@pytest.mark.parametrize(
    "make",
    [
        lambda x, y: (x + y).sum(),  # one cotangent, a read-only broadcast, for both
        lambda x, y: x.sum() + y.sum(1).sum(),
        lambda x, y: gg.cat([x, y]).exp().sum(),  # parts of one cotangent
        lambda x, y: gg.stack([x, y]).sum(0).sum(),
        lambda x, y: (x[0] + y[1]).sum() + (x + y)[1].prod(),
        lambda x, y: (x.T.reshape(2, 3) + y).exp().sum(),
        lambda x, y: ((x + y) * (x + y) + x).sum(),
    ],
)
def test_gradients_own_their_memory(make: Any, wanted: bool) -> None:
    x, y = gg.randn(2, 3, requires_grad=True), gg.randn(2, 3, requires_grad=True)
    a, b = gg.autograd.grad(make(x, y), [x, y]) if wanted else (make(x, y).backward(), x.grad, y.grad)[1:]
    kept = b.numpy().copy()
    for g in (a, b):
        assert g.numpy().flags.writeable
        base = g.numpy().base
        assert base is None or base.size == g.numpy().size
    with gg.no_grad():
        a.mul_(7)
    np.testing.assert_array_equal(b.numpy(), kept)


def test_the_gradient_that_was_given_is_left_alone_and_not_handed_out() -> None:
    x = gg.randn(3, requires_grad=True)
    given = gg.ones(3)
    (x + 0).backward(given)
    with gg.no_grad():
        x.grad.mul_(5)
    np.testing.assert_array_equal(given.numpy(), np.ones(3))
    z = gg.randn(3, requires_grad=True)
    z.backward(given)
    z.backward(given)
    np.testing.assert_array_equal(given.numpy(), np.ones(3))
    np.testing.assert_array_equal(z.grad.numpy(), 2 * np.ones(3))


@pytest.mark.parametrize("create_graph", [False, True])
def test_a_walk_computes_no_cotangent_that_is_not_asked_for(
    monkeypatch: pytest.MonkeyPatch, create_graph: bool
) -> None:
    given: list[Any] = []

    class Watch(Observer):
        def sent(self, target: Any, c: Any) -> None:
            given.append(target)

    x, w, b = [gg.ones(*shape, dtype=gg.float64, requires_grad=True) for shape in ((2, 3), (3, 3), (3,))]
    hidden = gg.nn.functional.linear(x, w, b).tanh()
    loss = (hidden @ w * b).sum()
    monkeypatch.setattr(MODE, "observer", Watch())
    (dx,) = gg.autograd.grad(loss, [x], create_graph=create_graph)
    slope = (1 - np.tanh(4.0) ** 2) * 3
    np.testing.assert_allclose(dx.detach().numpy(), np.full((2, 3), 3 * slope))
    leaves = [target for target in given if isinstance(target, gg.Tensor)]
    assert [leaf is x for leaf in leaves] == [True]


@pytest.mark.parametrize("lib", [gg, torch], ids=["ours", "torch"])
def test_a_gradient_needs_nothing_older_than_its_input(lib: Any) -> None:
    """The graph behind the input may be freed already, and is not searched."""
    x = lib.tensor([1.0, 2.0], requires_grad=True)
    before = x * x
    before.sum().backward()
    middle = before * 3
    (g,) = lib.autograd.grad((middle * middle).sum(), middle, create_graph=True)
    assert g.tolist() == [6.0, 24.0]
    with pytest.raises(RuntimeError):
        lib.autograd.grad((middle * middle).sum(), x)
