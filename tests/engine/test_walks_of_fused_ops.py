"""Walks through fused primitives and out of vmap: derivatives of every order equal those of the unfused ops."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

import glassgrad as gg
from glassgrad.engine.tape import Walk, pick
from glassgrad.nn import functional as F
from glassgrad.ops.core import Custom

pytestmark = pytest.mark.usefixtures("numpy_target")  # native code is for tests/compile/llvm

gg_grad = gg.autograd.grad


def random(*shape: int, seed: int = 0) -> Any:
    return gg.tensor(np.random.default_rng(seed).standard_normal(shape), requires_grad=True)


def layer_norm(x: Any, w: Any, b: Any) -> Any:
    return F.layer_norm(x, (x.shape[-1],), w, b)


def layer_norm_by_hand(x: Any, w: Any, b: Any) -> Any:
    centred = x - x.mean(-1, keepdim=True)
    return centred / (centred.square().mean(-1, keepdim=True) + 1e-5).sqrt() * w + b


def linear(x: Any, w: Any, b: Any) -> Any:
    return F.linear(x, w * b.unsqueeze(1), b)


def linear_by_hand(x: Any, w: Any, b: Any) -> Any:
    return (x.unsqueeze(-2) * (w * b.unsqueeze(1))).sum(-1) + b


def var(x: Any, w: Any, b: Any) -> Any:
    return (x * w).var(-1) * b.sum()


def var_by_hand(x: Any, w: Any, b: Any) -> Any:
    centred = x * w - (x * w).mean(-1, keepdim=True)
    return centred.square().sum(-1) / (x.shape[-1] - 1) * b.sum()


def cross_entropy(x: Any, w: Any, b: Any) -> Any:
    return F.cross_entropy(x * w + b, gg.tensor([0, 3, 1]), reduction="none")


def cross_entropy_by_hand(x: Any, w: Any, b: Any) -> Any:
    scores = x * w + b
    right = (scores * gg.tensor([[1.0, 0, 0, 0], [0, 0, 0, 1], [0, 1, 0, 0]])).sum(-1)
    return scores.exp().sum(-1).log() - right


def cross_entropy_of_some(x: Any, w: Any, b: Any) -> Any:
    return F.cross_entropy(x * w + b, gg.tensor([0, -100, 1]))


def cross_entropy_of_some_by_hand(x: Any, w: Any, b: Any) -> Any:
    return cross_entropy_by_hand(x, w, b)[::2].mean()


def linear_of_vectors(x: Any, w: Any, b: Any) -> Any:
    return F.linear(x.reshape(3, 1, 4), w, b) + F.linear(x[0], w * 2, None)


def linear_of_vectors_by_hand(x: Any, w: Any, b: Any) -> Any:
    return (x.unsqueeze(-2) * w).sum(-1).reshape(3, 1, 4) + b + 2 * (x[0] * w).sum(-1)


PAIRS = {
    "cross_entropy": (cross_entropy, cross_entropy_by_hand, (4,)),
    "cross_entropy of some": (cross_entropy_of_some, cross_entropy_of_some_by_hand, (4,)),
    "linear of vectors": (linear_of_vectors, linear_of_vectors_by_hand, (4, 4)),
    "mse_loss": (lambda x, w, b: F.mse_loss(x * w, x + b), lambda x, w, b: (x * w - x - b).square().mean(), (4,)),
    "layer_norm": (layer_norm, layer_norm_by_hand, (4,)),
    "linear": (linear, linear_by_hand, (4, 4)),
    "var": (var, var_by_hand, (4,)),
}


@pytest.mark.parametrize("asked", [(0,), (1,), (2,), (0, 2), (0, 1, 2)])
@pytest.mark.parametrize("name", PAIRS)
def test_second_derivatives(name: str, asked: tuple[int, ...]) -> None:
    fused, by_hand, shape = PAIRS[name]
    found = []
    for function in (fused, by_hand):
        inputs = [random(3, 4), random(*shape, seed=1), random(4, seed=2)]
        for place, one in enumerate(inputs):
            one.requires_grad_(place in asked)
        wanted = [inputs[place] for place in asked]
        first = gg_grad(function(*inputs).sin().sum(), wanted, create_graph=True)
        second = gg_grad(sum((g * g).sum() for g in first), wanted)
        found.append([one.detach().numpy() for one in (*first, *second)])
    for ours, expected in zip(*found, strict=True):
        np.testing.assert_allclose(ours, expected, rtol=1e-9, atol=1e-12)


def test_one_tensor_in_two_places() -> None:
    found = []
    for function in (layer_norm, layer_norm_by_hand):
        x, w = random(3, 4), random(4, seed=1)
        (first,) = gg_grad(function(x, w, w).sin().sum(), [w], create_graph=True)
        found.append(gg_grad(first.square().sum(), [x, w]))
    for ours, expected in zip(*found, strict=True):
        np.testing.assert_allclose(ours.numpy(), expected.numpy(), rtol=1e-9)


@pytest.mark.parametrize("used", ["output", "hidden", "cell", "all"])
def test_results_that_nobody_uses_have_no_part(used: str) -> None:
    """Second derivatives of one of several results, against differences of the first ones."""
    gg.manual_seed(0)
    cell = gg.nn.LSTM(2, 3).double()
    start = np.random.default_rng(3).standard_normal((4, 1, 2))

    def slope(values: np.ndarray[Any, Any], create_graph: bool) -> tuple[Any, Any]:
        x = gg.tensor(values, requires_grad=True)
        output, (hidden, state) = cell(x)
        parts = {"output": [output], "hidden": [hidden], "cell": [state], "all": [output, hidden, state]}[used]
        (g,) = gg_grad(sum((part * part).sum() for part in parts), [x], create_graph=create_graph)
        return x, g

    x, g = slope(start, create_graph=True)
    (second,) = gg_grad(g.sum(), [x])
    step = np.zeros_like(start)
    step[1, 0, 1] = 1e-5
    up, down = (slope(start + sign * step, create_graph=False)[1].sum().item() for sign in (1, -1))
    assert second[1, 0, 1].item() == pytest.approx((up - down) / 2e-5, rel=1e-5)


# --- out of vmap ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.parametrize("batch", [1, 5])
def test_what_all_examples_share_gets_the_sum_of_their_gradients(name: str, batch: int) -> None:
    function, _, shape = PAIRS[name]
    found = []
    for mapped in (True, False):
        xs, w, b = random(batch, 3, 4), random(*shape, seed=1), random(4, seed=2)
        if mapped:
            results = gg.func.vmap(lambda x, w=w, b=b: function(x, w, b).sin())(xs)
        else:
            results = gg.stack([function(x, w, b).sin() for x in xs])
        results.square().sum().backward()
        found.append([one.grad.numpy() for one in (xs, w, b)])
    for ours, expected in zip(*found, strict=True):
        assert ours.shape == expected.shape
        np.testing.assert_allclose(ours, expected, rtol=1e-9, atol=1e-12)


def two_results(x: Any, w: Any, b: Any) -> Any:
    q, r = gg.linalg.qr((x * w).T + 1)
    return q.sin().sum() + (r * b[:3]).cos().sum()


SHARED = {**{name: (function, shape) for name, (function, _, shape) in PAIRS.items()}, "qr": (two_results, (4,))}


@pytest.mark.parametrize("name", SHARED)
def test_what_all_examples_share_has_second_derivatives(name: str) -> None:
    function, shape = SHARED[name]
    found = []
    for mapped in (True, False):
        xs, w, b = random(5, 3, 4), random(*shape, seed=1), random(4, seed=2)
        if mapped:
            results = gg.func.vmap(lambda x, w=w, b=b: function(x, w, b).sin())(xs)
        else:
            results = gg.stack([function(x, w, b).sin() for x in xs])
        first = gg_grad(results.square().sum(), [xs, w, b], create_graph=True)
        second = gg_grad(sum(g.square().sum() for g in first), [xs, w, b])
        found.append([one.detach().numpy() for one in (*first, *second)])
    for ours, expected in zip(*found, strict=True):
        np.testing.assert_allclose(ours, expected, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("name", PAIRS)
def test_gradients_of_single_examples(name: str) -> None:
    function, _, shape = PAIRS[name]
    xs, w, b = random(5, 3, 4), random(*shape, seed=1), random(4, seed=2)
    ours = gg.func.vmap(gg.func.grad(lambda w, x: function(x, w, b).sin().sum()), in_dims=(None, 0))(w, xs)
    expected = [gg_grad(function(x, w, b).sin().sum(), [w])[0].numpy() for x in xs]
    np.testing.assert_allclose(ours.detach().numpy(), expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", PAIRS)
def test_second_derivatives_of_single_examples(name: str) -> None:
    function, _, shape = PAIRS[name]
    xs, w, b = random(5, 3, 4), random(*shape, seed=1), random(4, seed=2)

    def bent(x: Any, w: Any) -> Any:
        return gg.func.grad(lambda x: function(x, w, b).sin().sum())(x).square().sum()

    ours = gg.func.vmap(gg.func.grad(bent, argnums=(0, 1)), in_dims=(0, None))(xs, w)
    one_by_one = [gg.func.grad(bent, argnums=(0, 1))(x, w) for x in xs]
    for found, expected in zip(ours, zip(*one_by_one, strict=True), strict=True):
        np.testing.assert_allclose(found.detach().numpy(), [one.detach().numpy() for one in expected], rtol=1e-9)


def test_two_batches_at_once() -> None:
    w, xs, ys = random(4), random(3, 4, seed=1), random(2, 4, seed=2)
    results = gg.func.vmap(lambda x: gg.func.vmap(lambda y: (w * x * y).sin().sum())(ys))(xs)
    results.square().sum().backward()
    expected = random(4)
    ((expected * xs.detach()[:, None] * ys.detach()[None]).sin().sum(-1)).square().sum().backward()
    np.testing.assert_allclose(w.grad.numpy(), expected.grad.numpy(), rtol=1e-9)
    assert xs.grad.shape == (3, 4)
    assert ys.grad.shape == (2, 4)


# --- what belongs to whom -------------------------------------------------------------------------------------------


def walked(how: str, result: Any, leaf: Any) -> float:
    if how == "grad":
        return float(gg_grad(result, [leaf])[0].item())
    result.backward(create_graph=how == "create_graph")
    return float(leaf.grad.item())


@pytest.mark.parametrize("how", ["backward", "create_graph", "grad"])
def test_a_cotangent_that_two_nodes_hold_is_not_added_to_in_place(how: str) -> None:
    x = gg.tensor([1.0], requires_grad=True)
    a, b = x * 2, x * 3
    m = a * 5
    assert walked(how, (m + (a + b)).sum(), x) == 2 * (5 + 1) + 3
    y = gg.tensor([1.0], requires_grad=True)
    c, d = y * 2, y * 3
    parts = [c * 5, c * 7, c + d, c + d]
    assert walked(how, sum(parts).sum(), y) == 2 * (5 + 7 + 2) + 3 * 2


@pytest.mark.parametrize("shape", [(6,), (2, 3), (3, 2)])
def test_a_leaf_does_not_get_the_users_memory(shape: tuple[int, ...]) -> None:
    given = np.ones(6)
    x = gg.tensor(np.zeros(shape), requires_grad=True)
    x.backward(gg.from_numpy(given.reshape(shape)))
    assert not np.shares_memory(x.grad.numpy(), given)
    x.grad += 1
    assert given.tolist() == [1] * 6


def test_a_gradient_that_is_kept_can_be_differentiated() -> None:
    x = random(3)
    (x.sin() * x).sum().backward(create_graph=True)
    first = x.grad
    (second,) = gg_grad(first.sum(), [x])
    values = x.detach().numpy()
    np.testing.assert_allclose(second.numpy(), 2 * np.cos(values) - values * np.sin(values), rtol=1e-9)


@pytest.mark.parametrize("how", ["backward", "create_graph", "grad"])
def test_hooks_see_the_dtype_of_their_tensor(how: str) -> None:
    x = gg.tensor([2.0], dtype=gg.float32, requires_grad=True)
    seen = []
    a = x * 3
    a.register_hook(lambda g: seen.append(g.dtype))
    wide = gg.tensor([2.0], dtype=gg.float64)
    assert walked(how, (a * wide).sum(), x) == 6
    assert seen == [gg.float32]


@pytest.mark.parametrize("how", ["backward", "create_graph", "grad"])
def test_broadcast_in_front_and_inside(how: str) -> None:
    x = gg.tensor(2.0, requires_grad=True)
    y = (x * 1).reshape(1, 1, 1)
    result = (y * gg.ones(2, 3, 4)).sum() + ((x * 1) * gg.ones(5)).sum()
    assert walked(how, result, x) == 24 + 5


@pytest.mark.parametrize("how", ["backward", "create_graph", "grad"])
def test_what_was_overwritten_since_is_refused(how: str) -> None:
    x = gg.tensor([1.0], requires_grad=True)
    y = (x * 1).exp()
    result = (y * 2).sum()
    y.add_(1)
    with pytest.raises(RuntimeError, match="saved by exp"):
        walked(how, result, x)


@pytest.mark.parametrize("how", ["backward", "create_graph", "grad"])
def test_leaves_that_get_one_cotangent_get_memory_of_their_own(how: str) -> None:
    x, y, z = (random(2, 3, seed=seed) for seed in range(3))
    result = (x + y + z).reshape(6).sin().sum()
    if how == "grad":
        found = gg_grad(result, [x, y, z])
    else:
        result.backward(create_graph=how == "create_graph")
        found = [x.grad, y.grad, z.grad]
    arrays = [one.detach().numpy() for one in found]
    for place in range(3):
        np.testing.assert_array_equal(arrays[place], arrays[0])
        if how != "create_graph":  # Tensors are not written to in place
            assert not np.shares_memory(arrays[place], arrays[place - 1])


@pytest.mark.parametrize("shape", [(), (1,), (1, 1), (2, 3)])
def test_a_gradient_that_was_broadcast_can_be_written_to(shape: tuple[int, ...]) -> None:
    x = gg.tensor(np.zeros(shape), requires_grad=True)
    (x.sum() * 2).backward()
    x.grad.add_(1)
    assert x.grad.numpy().ravel().tolist() == [3.0] * x.numel()


@pytest.mark.parametrize("how", ["backward", "grad"])
def test_a_second_walk_names_the_line_of_the_first(how: str) -> None:
    x = random(3)
    result = (x.sin() * x).sum()
    first = inspect.currentframe().f_lineno + 1
    result.backward() if how == "backward" else gg_grad(result, [x])
    with pytest.raises(RuntimeError, match=f"test_walks_of_fused_ops.py:{first}"):
        walked(how, result, x)


def test_one_of_several_results() -> None:
    """Whole numbers have no gradient, and a plain number becomes an array."""
    x = random(3)
    node = (x * 2).node
    order = pick(node, np.arange(3), 1, 2)
    assert not order.requires_grad
    assert order.node is None
    number = pick(node, 2.5, 0, 2)
    assert number.requires_grad
    assert number.shape == ()
    assert number.item() == 2.5


def test_a_gradient_is_recorded_if_asked_for_even_where_nothing_else_is() -> None:
    x = random(3)
    result = x.exp().sum()
    with gg.no_grad():
        (first,) = gg_grad(result, [x], create_graph=True)
        assert not gg.is_grad_enabled()
    assert first.requires_grad
    (second,) = gg_grad(first.sum(), [x])
    np.testing.assert_allclose(second.numpy(), np.exp(x.detach().numpy()))
    (plain,) = gg_grad(x.exp().sum(), [x])
    assert not plain.requires_grad
    assert gg.is_grad_enabled()


@pytest.mark.parametrize("how", ["backward", "grad"])
def test_what_saves_nothing_can_be_walked_again(how: str) -> None:
    x = gg.tensor([1.0], requires_grad=True)
    result = (x + 1).sum()
    assert walked(how, result, x) == 1
    assert walked(how, result, x) == (2 if how == "backward" else 1)


@pytest.mark.parametrize("name", PAIRS)
def test_backward_while_vmap_runs(name: str) -> None:
    function, _, shape = PAIRS[name]
    xs, w, b = random(5, 3, 4), random(*shape, seed=1).detach(), random(4, seed=2).detach()

    def inside(x: Any) -> Any:
        leaf = x.detach().requires_grad_()
        function(leaf, w, b).backward(gg.ones_like(function(leaf, w, b)))
        return leaf.grad

    ours = gg.func.vmap(inside)(xs)
    expected = [inside(x).numpy() for x in xs]
    np.testing.assert_allclose(ours.numpy(), expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", PAIRS)
def test_walks_that_are_traced(name: str) -> None:
    function, _, shape = PAIRS[name]
    found = []
    for compiled in (False, True):
        x, w, b = random(3, 4), random(*shape, seed=1), random(4, seed=2)

        def step(leaves: Any = (x, w, b)) -> Any:
            for leaf in leaves:
                leaf.grad = None
            function(*leaves).sin().sum().backward()
            return [leaf.grad for leaf in leaves]

        run = gg.compile(step, backend="numpy") if compiled else step
        found.append([g.numpy() for g in run()])
    for ours, expected in zip(*found, strict=True):
        np.testing.assert_allclose(ours, expected, rtol=1e-9, atol=1e-12)


def test_roots_of_which_one_leads_to_the_other() -> None:
    for order in (1, -1):
        x = gg.tensor([1.0], requires_grad=True)
        a = x.exp()
        b = a.sin()
        gg.autograd.backward([a, b][::order], [gg.ones(1), gg.ones(1)])
        assert x.grad.item() == pytest.approx(np.e * (1 + np.cos(np.e)))


# --- batches in the walk --------------------------------------------------------------------------------------------


def test_the_root_is_what_vmap_returned() -> None:
    """What the examples share comes from a fused op, which takes no batches."""
    xs, w, matrix = random(5, 3), random(3, seed=1), random(3, 3, seed=2).detach()
    shared = F.linear(w.sin(), matrix)
    gg.func.vmap(lambda x: x * shared)(xs).backward(gg.ones(5, 3, dtype=gg.float64))
    values = w.detach().numpy()
    np.testing.assert_allclose(w.grad.numpy(), xs.detach().numpy().sum(0) @ matrix.numpy() * np.cos(values), rtol=1e-9)


@pytest.mark.parametrize("is_root", [True, False])
@pytest.mark.parametrize("name", PAIRS)
def test_the_cotangent_of_what_has_no_batch_has_one(name: str, is_root: bool) -> None:
    function, _, shape = PAIRS[name]
    start, w, b = random(3, 4).detach(), random(*shape, seed=1).detach(), random(4, seed=2).detach()
    gs = random(5, *function(start, w, b).shape, seed=3).detach()

    def inside(g: Any) -> Any:
        leaf = start.clone().requires_grad_()
        result = function(leaf, w, b)
        return gg_grad(result, [leaf], g)[0] if is_root else gg_grad((result * g).sum(), [leaf])[0]

    expected = [inside(g).numpy() for g in gs]
    np.testing.assert_allclose(gg.func.vmap(inside)(gs).numpy(), expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", PAIRS)
def test_a_leaf_without_batch_is_refused_inside_vmap(name: str) -> None:
    function, _, shape = PAIRS[name]
    x, w, b = random(3, 4), random(*shape, seed=1).detach(), random(4, seed=2).detach()
    gs = random(5, *function(x, w, b).shape, seed=3).detach()
    with pytest.raises(gg.errors.AutogradError, match="inside vmap would store a gradient per example"):
        gg.func.vmap(lambda g: function(x, w, b).backward(g))(gs)


def test_a_hook_of_a_module_that_vmap_calls() -> None:
    xs, module = random(5, 3), gg.nn.Tanh()
    module.register_full_backward_hook(lambda *_: None)
    gg.func.vmap(module)(xs).square().sum().backward()
    values = np.tanh(xs.detach().numpy())
    np.testing.assert_allclose(xs.grad.numpy(), 2 * values * (1 - values**2), rtol=1e-12)


# --- seeds, hooks and rules -----------------------------------------------------------------------------------------


def test_a_seed_gets_the_dtype_and_the_shape_of_its_node() -> None:
    node = (gg.ones(3, requires_grad=True) * 2).node
    for given in (np.ones(3, np.float32), np.ones(3, np.float64), np.ones((2, 3), np.float32)):
        walk = Walk(False, False)
        walk.seed(node, given)
        assert walk.cotangents[node].dtype == np.float32
        assert walk.cotangents[node].tolist() == [given.size / 3] * 3


@pytest.mark.parametrize("how", ["backward", "create_graph", "grad"])
def test_hooks_record_where_the_gradient_is_recorded(how: str) -> None:
    x = gg.tensor([2.0], requires_grad=True)
    seen = []
    y = x * 3
    y.register_hook(lambda g: seen.append(gg.is_grad_enabled()))
    walked(how, y.sum(), x)
    assert seen == [how == "create_graph"]


def test_a_rule_may_find_that_there_is_no_gradient() -> None:
    rules = (lambda g, *_: None, lambda g, *_: 2 * g)
    product = Custom("first_unknown", "add", vjp=rules, jvp=(None, None), saves=("x",), register=False)
    for how in ("backward", "create_graph", "grad"):
        x, y = (gg.tensor([1.0], requires_grad=True) for _ in range(2))
        assert walked(how, (product(x, y) + 0).sum(), y) == 2
        assert x.grad is None


class Summed(gg.autograd.Function):
    """A sum whose gradient is one number, seen in the shape of the input."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.shape = x.shape
        return x.sum()

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return (g * 2).expand(ctx.shape)


@pytest.mark.parametrize("shape", [(1,), (1, 1), (2, 3)])
def test_a_gradient_that_a_rule_of_the_user_broadcast_can_be_written_to(shape: tuple[int, ...]) -> None:
    x = gg.tensor(np.zeros(shape), requires_grad=True)
    Summed.apply(x).backward()
    x.grad.add_(1)
    assert x.grad.numpy().ravel().tolist() == [3.0] * x.numel()
