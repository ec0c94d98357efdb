"""autograd.Function, and the rules in JAX's form: orders, modes, vmap, places and errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import glassgrad as gg
from glassgrad import errors, func
from glassgrad.autograd import Function, once_differentiable


class Exp(Function):
    """Saves its output, as PyTorch's own example."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        y = x.exp()
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (y,) = ctx.saved_tensors
        return g * y


class Product(Function):
    """Two results, an argument that is no tensor, and inputs saved by setup_context."""

    @staticmethod
    def forward(x: Any, y: Any, n: int) -> Any:
        return x * y, x**n, n

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        x, y, ctx.n = inputs
        ctx.save_for_backward(x, y)

    @staticmethod
    def backward(ctx: Any, g: Any, h: Any, _n: Any) -> Any:
        x, y = ctx.saved_tensors
        return g * y + h * ctx.n * x ** (ctx.n - 1), g * x, None


class ByNumpy(Function):
    """Leaves the library: forward and backward in NumPy."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.numbers = x.numpy()
        return gg.tensor(np.sin(ctx.numbers))

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, g: Any) -> Any:
        return gg.tensor(g.numpy() * np.cos(ctx.numbers))


X = gg.tensor(np.array([0.5, -1.0]))


def test_first_and_higher_orders() -> None:
    x = X.clone().requires_grad_()
    y = Exp.apply(x)
    y.sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), np.exp(X.numpy()))
    f = lambda x: Exp.apply(x * x).sum()
    g = lambda x: (x * x).exp().sum()
    np.testing.assert_allclose(func.hessian(f)(X).numpy(), func.hessian(g)(X).numpy())
    third = lambda f: func.jacfwd(func.jacrev(func.grad(f)))(X).numpy()
    np.testing.assert_allclose(third(f), third(g))


def test_forward_mode_from_backward() -> None:
    np.testing.assert_allclose(func.jvp(Exp.apply, (X,), (X,))[1].numpy(), (X.exp() * X).numpy())
    np.testing.assert_allclose(func.jacfwd(Exp.apply)(X).numpy(), np.diag(np.exp(X.numpy())))
    with pytest.raises(errors.AutogradError, match=r"ByNumpy at .*test_function\.py:\d+ has no forward-mode rule"):
        func.jvp(ByNumpy.apply, (X,), (X,))


def test_forward_mode_of_its_own() -> None:
    class Sine(Function):
        @staticmethod
        def forward(ctx: Any, x: Any, y: Any) -> Any:
            ctx.save_for_backward(x)
            ctx.save_for_forward(x, y)
            return x.sin(), x * y

        @staticmethod
        def jvp(ctx: Any, tx: Any, ty: Any) -> Any:
            x, y = ctx.saved_tensors
            return 10 * tx * x.cos(), tx * y + ty * x

    _, t = func.jvp(lambda x: Sine.apply(x, 2 * x), (X,), (X,))
    np.testing.assert_allclose(t[0].numpy(), 10 * (X * X.cos()).numpy())
    np.testing.assert_allclose(t[1].numpy(), 4 * (X * X).numpy())
    second = func.jvp(lambda x: func.jvp(lambda x: Sine.apply(x, x)[0], (x,), (X,))[1], (X,), (X,))[1]
    np.testing.assert_allclose(second.numpy(), -10 * (X * X * X.sin()).numpy())
    with pytest.raises(errors.KindError, match="this Function has no backward"):
        func.grad(lambda x: Sine.apply(x, x)[0].sum())(X)


def test_several_results_and_other_arguments() -> None:
    x, y = X.clone().requires_grad_(), (X * 2).requires_grad_()
    product, power, n = Product.apply(x, y, 3)
    assert n == 3
    assert product.node.place.line == power.node.place.line
    gx, gy = gg.autograd.grad(product.sum() + power.sum(), [x, y])
    np.testing.assert_allclose(gx.numpy(), (2 * X + 3 * X * X).numpy())
    np.testing.assert_allclose(gy.numpy(), X.numpy())
    (gx,) = gg.autograd.grad(Product.apply(x, y, 3)[1].sum(), x)  # the other cotangent is zero
    np.testing.assert_allclose(gx.numpy(), (3 * X * X).numpy())
    f = lambda x, y: Product.apply(x * x, y, 2)
    g = lambda x, y: (x * x * y, x**4, 2)
    h = lambda f: func.hessian(lambda x: (f(x, X)[0] * f(x, x)[1]).sum())(X).numpy()
    np.testing.assert_allclose(h(f), h(g))


def test_what_is_not_needed_is_said() -> None:
    seen: list[Any] = []

    class Needs(Function):
        @staticmethod
        def forward(ctx: Any, x: Any, y: Any, z: Any) -> Any:
            ctx.set_materialize_grads(False)
            return x + y, x * 2

        @staticmethod
        def backward(ctx: Any, g: Any, h: Any) -> Any:
            seen.append((ctx.needs_input_grad, h))
            return g, None, None

    x = X.clone().requires_grad_()
    Needs.apply(x, X, 5)[0].sum().backward()
    assert seen == [((True, False, False), None)]


def test_marks() -> None:
    class Marked(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            index, copy = x.argsort(), x * 1
            ctx.mark_non_differentiable(index, copy)
            return x[index], index, copy

        @staticmethod
        def backward(ctx: Any, g: Any, *_rest: Any) -> Any:
            return g

    values, index, copy = Marked.apply(X.clone().requires_grad_())
    assert values.requires_grad
    assert not index.requires_grad
    assert not copy.requires_grad
    with pytest.raises(errors.KindError, match="mark_dirty"):
        Dirty.apply(X)


class Dirty(Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.mark_dirty(x)
        return x


def test_once_differentiable() -> None:
    np.testing.assert_allclose(func.grad(lambda x: ByNumpy.apply(x).sum())(X).numpy(), np.cos(X.numpy()))
    gradient = func.grad(lambda x: (ByNumpy.apply(x) ** 2).sum())
    with pytest.raises(errors.AutogradError, match=r"ByNumpy, applied at .*test_function\.py:\d+, is marked once"):
        func.jacrev(gradient)(X)
    with pytest.raises(errors.AutogradError, match=r"ByNumpy at .* has no forward-mode rule"):
        func.jacfwd(gradient)(X)


def test_nothing_is_recorded_when_nobody_asks() -> None:
    assert not Exp.apply(X).requires_grad
    with gg.no_grad():
        assert not Exp.apply(X.clone().requires_grad_()).requires_grad


def test_under_vmap() -> None:
    rows = gg.tensor(np.random.default_rng(0).normal(size=(4, 2)))
    f = lambda x: Exp.apply(x * x).sum()
    np.testing.assert_allclose(
        func.vmap(func.grad(f))(rows).numpy(), func.vmap(func.grad(lambda x: (x * x).exp().sum()))(rows).numpy()
    )
    # In NumPy: once for each example, in values and in gradients.
    np.testing.assert_allclose(func.vmap(ByNumpy.apply)(rows).numpy(), np.sin(rows.numpy()))
    found = func.vmap(func.grad(lambda x: ByNumpy.apply(x).sum()))(rows)
    np.testing.assert_allclose(found.numpy(), np.cos(rows.numpy()))
    leaf = rows.clone().requires_grad_()
    func.vmap(ByNumpy.apply)(leaf).sum().backward()
    np.testing.assert_allclose(leaf.grad.numpy(), np.cos(rows.numpy()))
    both = func.vmap(lambda x: Product.apply(x, X, 2)[:2])(rows)
    np.testing.assert_allclose(both[0].numpy(), (rows * X).numpy())


def test_a_batching_rule_of_its_own() -> None:
    sizes: list[Any] = []

    class Sum(Function):
        @staticmethod
        def forward(ctx: Any, x: Any, y: Any) -> Any:
            return gg.tensor(x.numpy() + y.numpy())

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g, g

        @staticmethod
        def vmap(info: Any, in_dims: Any, x: Any, y: Any) -> Any:
            sizes.append((info.batch_size, in_dims, x.shape))
            return Sum.apply(x, gg.broadcast_to(y, x.shape)), 0

    rows = gg.tensor(np.arange(6.0).reshape(3, 2))
    found = func.vmap(lambda row: Sum.apply(row, X))(rows)
    np.testing.assert_allclose(found.numpy(), rows.numpy() + X.numpy())
    assert sizes == [(3, (0, None), (3, 2))]
    # A gradient with respect to what is the same for all is still one for each example.
    weighted = func.vmap(lambda row: func.grad(lambda x: (Sum.apply(row, x) * row).sum())(X))(rows)
    np.testing.assert_allclose(weighted.numpy(), rows.numpy())
    leaf = X.clone().requires_grad_()
    found = func.vmap(lambda row: Sum.apply(row, leaf))(rows)
    found.sum().backward()
    assert leaf.grad.tolist() == [3.0, 3.0]


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        ((None, None), "returned 2 gradients; expected one for each of the 1 arguments"),
        (1.0, "returned a float as gradient 1; expected a tensor or None"),
        (gg.ones(5), r"returned gradient 1 of shape \(5,\); expected shape \(2,\)"),
    ],
)
def test_wrong_gradients_are_named(returned: Any, message: str) -> None:
    class Wrong(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 1

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return (gg.ones(2), gg.ones(2)) if isinstance(returned, tuple) else returned

    with pytest.raises(errors.KindError, match=r"Wrong\.backward, for the call at .*test_function\.py:\d+, " + message):
        Wrong.apply(gg.ones(2, requires_grad=True)).sum().backward()


def test_other_mistakes() -> None:
    with pytest.raises(errors.KindError, match=r"write Exp\.apply"):
        Exp()
    with pytest.raises(errors.KindError, match="has no forward"):
        type("Empty", (Function,), {}).apply(X)
    x = X.clone().requires_grad_()
    y = Exp.apply(x).sum()
    y.backward()
    with pytest.raises(errors.AutogradError, match="graph was freed"):
        y.backward()


def test_saved_values_are_guarded() -> None:
    class Keep(Function):
        @staticmethod
        def forward(ctx: Any, x: Any, other: Any) -> Any:
            ctx.save_for_backward(other)
            return x * other

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * ctx.saved_tensors[0], None

    other = gg.ones(2)
    y = Keep.apply(gg.ones(2, requires_grad=True), other)
    other += 1
    with pytest.raises(errors.AutogradError, match="overwritten in place"):
        y.sum().backward()


# --- custom_vjp, custom_jvp, straight_through ---------------------------------------------------------


def ours_vjp() -> Any:
    @func.custom_vjp
    def f(x: Any, pair: Any) -> Any:
        a, b = pair
        return {"y": x.sin() * a, "z": [b * x]}

    def forward(x: Any, pair: Any) -> Any:
        return f(x, pair), (x.cos(), x, pair)

    def backward(residuals: Any, g: Any) -> Any:
        cos, x, (a, b) = residuals
        gx = g["y"] * cos * a + g["z"][0] * b
        return gx, (g["y"] * x.sin(), g["z"][0] * x)

    f.defvjp(forward, backward)
    return f


def plain(x: Any, pair: Any) -> Any:
    return {"y": x.sin() * pair[0], "z": [pair[1] * x]}


def test_custom_vjp_with_containers_to_third_order() -> None:
    pair = (X * 2, X + 1)

    def total(f: Any) -> Any:
        def number(x: Any, pair: Any) -> Any:
            y = f(x * x, pair)
            return (y["y"] * y["z"][0]).sum()

        return number

    for order in (
        lambda f: func.grad(f, (0, 1))(X, pair)[0],
        lambda f: func.grad(f, (0, 1))(X, pair)[1][1],
        lambda f: func.hessian(f)(X, pair),
        lambda f: func.jacrev(func.jacfwd(func.grad(f)))(X, pair),
        lambda f: func.vmap(func.grad(f), (0, None))(gg.stack([X, X * 3]), pair),
    ):
        np.testing.assert_allclose(order(total(ours_vjp())).numpy(), order(total(plain)).numpy(), rtol=1e-9)


@pytest.mark.slow
def test_custom_vjp_against_jax() -> None:
    jax = pytest.importorskip("jax", reason="JAX is the oracle")

    def build(lib: Any, make: Any) -> Any:
        clip = make(lambda low, high, x: x, nondiff_argnums=(0, 1))
        clip.defvjp(lambda low, high, x: (x, None), lambda low, high, _, g: (lib.clip(g, low, high),))
        return lambda x: clip(-1.0, 2.0, x * 3).sum()

    import jax.numpy as jnp

    theirs = jax.grad(build(jnp, jax.custom_vjp))(jnp.array([1.0, -5.0]))
    ours = func.grad(build(gg, func.custom_vjp))(gg.tensor([1.0, -5.0]))
    np.testing.assert_allclose(ours.numpy(), np.asarray(theirs))


def test_custom_jvp_in_both_modes_and_orders() -> None:
    @func.custom_jvp
    def log1pexp(x: Any) -> Any:
        return (1 + x.exp()).log()

    log1pexp.defjvps(lambda t, y, x: t * (1 - 1 / (1 + x.exp())))
    f, g = (lambda x: (log1pexp(x) ** 2).sum()), (lambda x: (gg.softplus(x) ** 2).sum())
    x = gg.tensor(np.array([0.3, -2.0, 1.5]))
    for order in (
        lambda f: func.grad(f)(x),
        lambda f: func.jvp(f, (x,), (x,))[1],
        lambda f: func.hessian(f)(x),
        lambda f: func.jacrev(func.jacrev(f))(x),
        lambda f: func.jacfwd(func.hessian(f))(x),
        lambda f: func.vmap(func.grad(f))(gg.stack([x, x * 2])),
    ):
        np.testing.assert_allclose(order(f).numpy(), order(g).numpy(), rtol=1e-8)

    @log1pexp.defjvp
    def rule(primals: Any, tangents: Any) -> Any:
        (x,), (t,) = primals, tangents
        return log1pexp(x), 5 * t

    assert func.grad(log1pexp)(gg.tensor(1.0)).item() == 5.0


def test_rules_that_are_missing_or_wrong() -> None:
    with pytest.raises(errors.KindError, match=r"call f\.defvjp"):
        _named(func.custom_vjp)(X)
    with pytest.raises(errors.KindError, match=r"call f\.defjvp"):
        _named(func.custom_jvp)(X)
    f = _named(func.custom_vjp)
    f.defvjp(lambda x: (x, None), lambda _, g: g)
    with pytest.raises(errors.KindError, match="backward of f returned Tensor where a tuple of 1"):
        func.grad(lambda x: f(x).sum())(X)


def _named(make: Any) -> Any:
    def f(x: Any) -> Any:
        return x * 1

    return make(f)


def test_straight_through() -> None:
    quantise = func.straight_through(lambda x: (x * 4).round() / 4)
    x = gg.tensor(np.array([0.3, 0.9]))
    y, g = func.value_and_grad(lambda x: (quantise(x) ** 2).sum())(x)
    assert y.item() == 0.25**2 + 1
    np.testing.assert_allclose(g.numpy(), [0.5, 2.0])
    np.testing.assert_allclose(func.jvp(quantise, (x,), (x,))[1].numpy(), x.numpy())
    np.testing.assert_allclose(func.hessian(lambda x: (quantise(x) ** 2).sum())(x).numpy(), 2 * np.eye(2))
    assert func.vmap(func.grad(quantise))(x).tolist() == [1.0, 1.0]
    with pytest.raises(errors.ShapeError, match=r"returned \(\), expected a tensor of the argument's shape \(2,\)"):
        func.straight_through(lambda x: x.sum())(x.clone().requires_grad_())


class Adjoint(gg.autograd.Function):
    """Differentiates the module again in its backward pass, by the parameters that it saved."""

    @staticmethod
    def forward(ctx, module, x, *parameters):
        ctx.module = module
        with gg.no_grad():
            y = module(x)
        ctx.save_for_backward(x, *parameters)
        return y

    @staticmethod
    def backward(ctx, g):
        x, *parameters = ctx.saved_tensors
        with gg.enable_grad():
            x = x.detach().requires_grad_()
            found = gg.autograd.grad(ctx.module(x), (x, *parameters), g, allow_unused=True)
        return (None, *found)


def test_parameters_that_were_saved_are_themselves() -> None:
    """The adjoint method for differential equations asks for derivatives by them; they were zero."""
    layer = gg.nn.Linear(2, 3)
    x = gg.tensor([[1.0, 2.0]], requires_grad=True)
    layer(x * 1).sum().backward()
    expected = [layer.weight.grad.tolist(), layer.bias.grad.tolist(), x.grad.tolist()]
    layer.zero_grad()
    x.grad = None
    Adjoint.apply(layer, x * 1, *layer.parameters()).sum().backward()
    assert [layer.weight.grad.tolist(), layer.bias.grad.tolist(), x.grad.tolist()] == expected
