"""The single transforms: their results, containers, aux, and the errors of wrong calls."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any, NamedTuple

import numpy as np
import pytest

import glassgrad as gg
from glassgrad import errors, func
from glassgrad.engine.saved_tensors import Watcher
from glassgrad.ops.core import REGISTRY


class Pair(NamedTuple):
    w: Any
    b: Any


def normal(*shape: int, seed: int = 0) -> Any:
    return gg.tensor(np.random.default_rng(seed).normal(size=shape))


# --- grad and value_and_grad --------------------------------------------------------------------------


def test_gradients_of_containers_keep_their_kind() -> None:
    def loss(params: Any, x: Any) -> Any:
        pair, rest = params["layer"], params["rest"]
        return (pair.w * x + pair.b).sum() + sum((r * r).sum() for r in rest)

    params = OrderedDict(rest=[normal(2), normal(3)], layer=Pair(normal(3), normal(3)))
    found = func.grad(loss)(params, normal(3, seed=9))
    assert type(found) is OrderedDict
    assert list(found) == ["rest", "layer"]
    assert type(found["layer"]) is Pair
    np.testing.assert_allclose(found["layer"].b.numpy(), 1.0)
    np.testing.assert_allclose(found["rest"][1].numpy(), 2 * params["rest"][1].numpy())


def test_argnums() -> None:
    x, y, z = normal(2), normal(2, seed=1), normal(2, seed=2)
    f = lambda x, y, z: (x * y * z).sum()
    np.testing.assert_allclose(func.grad(f, argnums=-1)(x, y, z).numpy(), (x * y).numpy())
    first, last = func.grad(f, argnums=(2, 0))(x, y, z)
    np.testing.assert_allclose(first.numpy(), (x * y).numpy())
    np.testing.assert_allclose(last.numpy(), (y * z).numpy())
    assert func.grad(lambda x, *, scale: (x * scale).sum())(x, scale=3.0).tolist() == [3.0, 3.0]


def test_aux_and_value() -> None:
    f = lambda x: ((x**2).sum(), {"twice": x * 2, "n": 7})
    g, aux = func.grad(f, has_aux=True)(normal(2))
    assert aux["n"] == 7
    assert not aux["twice"].requires_grad
    (value, again), gradient = func.value_and_grad(f, has_aux=True)(normal(2))
    np.testing.assert_array_equal(gradient.numpy(), g.numpy())
    assert again["n"] == 7
    assert value.item() == pytest.approx(float((normal(2).numpy() ** 2).sum()))
    gradient, value = func.grad_and_value(lambda x: (x**2).sum())(normal(2))
    np.testing.assert_array_equal(gradient.numpy(), g.numpy())


def test_numbers_and_arrays_are_welcome() -> None:
    assert func.grad(lambda x: x**3)(2.0).item() == 12.0
    found = func.grad(lambda x: (x**3).sum())(np.array([1.0, 2.0]))
    assert found.dtype == np.float64
    assert found.tolist() == [3.0, 12.0]


def test_what_is_independent_has_gradient_zero() -> None:
    assert func.grad(lambda x: gg.tensor(1.0))(gg.ones(2)).tolist() == [0.0, 0.0]
    found = func.grad(lambda x, y: (x * 1.0).sum(), argnums=(0, 1))(gg.ones(2), gg.ones(3))
    assert [g.tolist() for g in found] == [[1.0, 1.0], [0.0, 0.0, 0.0]]


def test_gradients_do_not_share_memory() -> None:
    x, y = gg.ones(2), gg.ones(2)
    a, b = func.grad(lambda x, y: (x + y).sum(), argnums=(0, 1))(x, y)
    a += 1
    assert b.tolist() == [1.0, 1.0]
    _, pull = func.vjp(lambda x: x, x)
    g = gg.ones(2)
    (back,) = pull(g)
    back += 1
    assert g.tolist() == [1.0, 1.0]


def test_leaves_outside_are_left_alone() -> None:
    w = gg.ones(2, requires_grad=True)
    found = func.grad(lambda x: (w * x).sum())(gg.ones(2))
    assert found.requires_grad  # it depends on w
    assert w.grad is None
    x = gg.ones(2, requires_grad=True)
    assert func.grad(lambda x: (x * x).sum())(x).requires_grad
    with gg.no_grad():
        assert not func.grad(lambda x: (w * x * x).sum())(x).requires_grad
    assert not func.grad(lambda x: (x * x).sum())(x.detach()).requires_grad


def test_perturbations_are_not_confused() -> None:
    """d/dx (x * d/dy (x + y)) is 1; taking one perturbation for the other gives 2 (Siskind and Pearlmutter 2005)."""

    def forward(f: Any, x: Any) -> Any:
        return func.jvp(f, (x,), (gg.ones(()),))[1]

    derivatives = [forward, lambda f, x: func.grad(f)(x)]
    for outer in derivatives:
        for inner in derivatives:
            inside = lambda x, inner=inner: x * inner(lambda y: x + y, gg.tensor(1.0))
            assert outer(inside, gg.tensor(1.0)).item() == 1.0


def test_a_plain_gradient_is_not_recorded() -> None:
    """create_graph costs twice the time and keeps everything alive; it is for those who differentiate again."""
    names: list[str] = []

    class Spy(Watcher):
        def note(self, node: Any) -> None:
            names.append(node.name)

    with Spy():
        func.grad(lambda x: (x.exp() * x).sum())(gg.ones(2))
    assert sorted(names) == ["exp", "multiply", "sum"]


# --- vjp, jvp, linearize ------------------------------------------------------------------------------


def test_vjp_can_be_pulled_often_and_in_containers() -> None:
    x, y = normal(3), normal(3, seed=1)
    (total, _), pull = func.vjp(lambda x, y: [x.sum() + y.sum(), x * y], x, y)
    assert total.shape == ()
    for scale in (1.0, 2.0):
        gx, gy = pull([gg.tensor(np.float64(scale)), normal(3, seed=2)])
        np.testing.assert_allclose(gx.numpy(), scale + normal(3, seed=2).numpy() * y.numpy())
        np.testing.assert_allclose(gy.numpy(), scale + normal(3, seed=2).numpy() * x.numpy())
    _, pull, aux = func.vjp(lambda x: (x * 2, "aux"), x, has_aux=True)
    assert aux == "aux"
    assert pull(x)[0].shape == (3,)


def test_jvp_and_linearize() -> None:
    x, t = normal(3), normal(3, seed=1)
    f = lambda x: {"y": x.sin(), "n": (x * x).sum()}
    y, moved = func.jvp(f, (x,), (t,))
    np.testing.assert_allclose(moved["y"].numpy(), np.cos(x.numpy()) * t.numpy())
    calls: list[int] = []
    result, push = func.linearize(lambda x: calls.append(1) or f(x), x)
    for _ in range(3):
        again = push(t)
    assert len(calls) == 1
    np.testing.assert_array_equal(again["n"].numpy(), moved["n"].numpy())
    np.testing.assert_array_equal(result["y"].numpy(), y["y"].numpy())
    y, moved, aux = func.jvp(lambda x: (x, 5), (x,), (t,), has_aux=True)
    assert aux == 5
    assert func.jvp(lambda x: gg.ones(2), (x,), (t,))[1].tolist() == [0.0, 0.0]
    with pytest.raises(errors.AutogradError, match="does not depend"):
        func.jvp(lambda x: gg.ones(2), (x,), (t,), strict=True)


def test_jacobians_of_containers() -> None:
    x = {"a": normal(2), "b": normal(3, seed=1)}
    f = lambda x: (x["a"][0] * x["b"], x["a"].sum())
    backward, forward = func.jacrev(f)(x), func.jacfwd(f)(x)
    assert backward[0]["a"].shape == (3, 2)
    assert backward[1]["b"].shape == (3,)
    for one, other in zip(backward, forward, strict=True):
        for key in ("a", "b"):
            np.testing.assert_allclose(one[key].numpy(), other[key].numpy())
    g = lambda x, y: (x * y, "aux")
    both, aux = func.jacfwd(g, argnums=(0, 1), has_aux=True)(normal(2), normal(2, seed=1))
    assert aux == "aux"
    np.testing.assert_allclose(both[0].numpy(), np.diag(normal(2, seed=1).numpy()))


@pytest.mark.parametrize("chunk_size", [None, 1, 2, 100])
def test_jacobians_in_chunks(chunk_size: int | None) -> None:
    x = normal(5)
    f = lambda x: (x.unsqueeze(0) * x.unsqueeze(1))[:3]
    expected = func.jacrev(f)(x).numpy()
    assert expected.shape == (3, 5, 5)
    np.testing.assert_allclose(func.jacrev(f, chunk_size=chunk_size)(x).numpy(), expected)
    np.testing.assert_allclose(func.jacfwd(f, chunk_size=chunk_size)(x).numpy(), expected)


def test_jacobians_of_nothing() -> None:
    assert func.jacrev(lambda x: x[:0])(gg.ones(2)).shape == (0, 2)
    assert func.jacfwd(lambda x: gg.cat([x, gg.ones(2)]))(gg.ones(0)).shape == (2, 0)


# --- second order -------------------------------------------------------------------------------------


def small_network(params: Any, x: Any) -> Any:
    return (x @ params["w"]).tanh() @ params["v"]


def test_products_agree_with_the_matrices() -> None:
    params = {"w": normal(3, 4), "v": normal(4, 2, seed=1)}
    t = {"w": normal(3, 4, seed=2), "v": normal(4, 2, seed=3)}
    x, target = normal(5, 3, seed=4), normal(5, 2, seed=5)
    model = lambda p: small_network(p, x)
    loss = lambda y: ((y - target) ** 4).sum()

    def flat(tree: Any) -> Any:
        return np.concatenate([tree["w"].numpy().reshape(-1), tree["v"].numpy().reshape(-1)])

    def from_flat(v: Any) -> Any:
        return {"w": v[:12].reshape(3, 4), "v": v[12:].reshape(4, 2)}

    start, direction = gg.tensor(flat(params)), flat(t)
    hessian = func.hessian(lambda v: loss(model(from_flat(v))))(start).numpy()
    found = func.hvp(lambda p: loss(model(p)), (params,), (t,))
    np.testing.assert_allclose(flat(found), hessian @ direction, rtol=1e-9)

    jacobian = func.jacrev(lambda v: model(from_flat(v)).reshape(-1))(start).numpy()
    curvature = func.hessian(lambda y: loss(y.reshape(5, 2)))(model(params).reshape(-1)).numpy()
    found = func.gauss_newton_product(model, loss, (params,), (t,))
    np.testing.assert_allclose(flat(found), jacobian.T @ curvature @ jacobian @ direction, rtol=1e-9)


def test_products_are_differentiable() -> None:
    x, t = normal(3), normal(3, seed=1)
    f = lambda x: (x**4).sum()
    third = func.grad(lambda x: (func.hvp(f, (x,), (t,)) * t).sum())(x)
    np.testing.assert_allclose(third.numpy(), 24 * x.numpy() * t.numpy() ** 2, rtol=1e-9)
    found = func.vmap(lambda t: func.hvp(f, (x,), (t,)))(gg.tensor(np.eye(3)))
    np.testing.assert_allclose(found.numpy(), np.diag(12 * x.numpy() ** 2), rtol=1e-9)


def test_products_of_several_primals() -> None:
    x, y = normal(2), normal(2, seed=1)
    f = lambda x, y: (x * x * y).sum()
    hx, hy = func.hvp(f, (x, y), (y, x))
    np.testing.assert_allclose(hx.numpy(), (2 * y * y + 2 * x * x).numpy())
    np.testing.assert_allclose(hy.numpy(), (2 * x * y).numpy())


# --- messages -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (lambda: func.grad(lambda x: x)(gg.ones(2)), errors.AutogradError, r"of shape \(2,\), expected one number"),
        (lambda: func.grad(lambda x: (x.sum(), x))(gg.ones(2)), errors.KindError, r"\(\*, \*\) where one tensor"),
        (lambda: func.grad(lambda x: x.sum().item())(gg.ones(2)), errors.KindError, "returned float where a tensor"),
        (lambda: func.grad(lambda x: x.argmax())(gg.ones(2)), errors.KindError, "dtype int64, which has no derivative"),
        (lambda: func.grad(lambda x: x)(gg.tensor(1)), errors.KindError, "argument 0 has dtype int64"),
        (lambda: func.grad(lambda x: x)(3), errors.KindError, "argument 0 has dtype int64"),
        (lambda: func.grad(lambda x, y: x, argnums=1)(1.0, "no"), errors.KindError, "argument 1 holds a str"),
        (lambda: func.grad(lambda x: x)(np.ones((), "c16")), errors.KindError, "complex numbers cannot be diff"),
        (lambda: func.grad(lambda x: x, argnums=1)(1.0), errors.ArgumentError, "argnums=1 does not name"),
        (lambda: func.grad(lambda x: x, argnums=(0, -1))(1.0), errors.ArgumentError, "does not name arguments"),
        (lambda: func.grad(lambda x: x.sum(), has_aux=True)(gg.ones(2)), errors.KindError, "return a tuple of two"),
        (lambda: func.vjp(lambda x: x, gg.ones(2))[1](gg.ones(3)), errors.ShapeError, r"cotangent has shape \(3,\)"),
        (lambda: func.vjp(lambda x: x, gg.ones(2))[1]([gg.ones(2)]), errors.ArgumentError, r"\[\*\], expected \*"),
        (lambda: func.jvp(lambda x: x, gg.ones(2), gg.ones(2)), errors.KindError, r"write \(x,\)"),
        (lambda: func.jvp(lambda x: x, (gg.ones(2),), ()), errors.ArgumentError, "0 tangents for 1 primals"),
        (lambda: func.jvp(lambda x: x, (gg.ones(2),), (gg.ones(1),)), errors.ShapeError, r"tangent has shape \(1,\)"),
        (lambda: func.jacrev(lambda x: 1.0)(gg.ones(2)), errors.KindError, "jacrev: the function returned float"),
    ],
)
def test_messages(call: Any, kind: Any, message: str) -> None:
    with pytest.raises(kind, match=message) as caught:
        call()
    assert "test_transforms.py:" in str(caught.value)


def test_every_op_has_a_forward_rule() -> None:
    """What is differentiable backward is differentiable forward."""
    without = [
        prim.name
        for prim in REGISTRY.values()
        if prim.differentiable and prim.jvps is None and prim.joint_jvp is None and prim.decompose is None
    ]
    assert without == ["pick"]


# --- modules ------------------------------------------------------------------------------------------


class Tied(gg.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = gg.nn.Linear(2, 2, bias=False)
        self.again = self.inner
        self.weight = self.inner.weight
        self.register_buffer("scale", gg.tensor(2.0))

    def forward(self, x: Any, *, shift: float = 0.0) -> Any:
        return self.again(x) @ self.weight * self.scale + shift


def test_functional_call_replaces_and_restores() -> None:
    model = Tied()
    before = dict(model.state_dict())
    w, x = normal(2, 2).astype(np.float32), gg.ones(1, 2)
    expected = (x @ w.mT) @ w * 3.0 + 1.0
    found = func.functional_call(model, {"weight": w, "scale": gg.tensor(3.0)}, x, {"shift": 1.0})
    np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-6)
    for name, value in model.state_dict().items():
        assert value.array is before[name].array
    gradient = func.grad(lambda w: func.functional_call(model, {"weight": w}, (x,)).sum())(w)
    assert gradient.shape == (2, 2)
    loose = func.functional_call(model, {"weight": w}, x, tie_weights=False).detach()
    np.testing.assert_allclose(loose.numpy(), ((x @ model.inner.weight.mT) @ w * 2.0).detach().numpy(), rtol=1e-5)


def test_functional_call_messages() -> None:
    model = Tied()
    with pytest.raises(errors.AutogradError, match="unexpected: wieght"):
        func.functional_call(model, {"wieght": gg.ones(2, 2)}, gg.ones(1, 2))
    with pytest.raises(errors.AutogradError, match="missing: "):
        func.functional_call(model, {"weight": gg.ones(2, 2)}, gg.ones(1, 2), strict=True)
    with pytest.raises(ZeroDivisionError):
        func.functional_call(model, {"weight": gg.ones(2, 2)}, gg.ones(1, 2), {"shift": 1 / gg.tensor(0).item()})
    assert isinstance(model.weight, gg.nn.Parameter)
