"""vmap: axes, containers, chunks, randomness, per-example gradients, and refused calls."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest

import glassgrad as gg
from glassgrad import errors
from glassgrad.func import functional_call, grad, stack_module_state, vmap
from glassgrad.nn import functional as F
from glassgrad.ops.core import REGISTRY


class Pair(NamedTuple):
    left: Any
    right: Any


def normal(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).normal(size=shape)


def test_dimensions_go_in_and_out_anywhere() -> None:
    x, y = normal(3, 4, 5), normal(5, 3, seed=1)
    found = vmap(lambda a, b: (a.sum(0) * b[0], b), in_dims=(-1, 0), out_dims=(1, -1))(gg.tensor(x), gg.tensor(y))
    np.testing.assert_allclose(found[0].numpy(), np.stack([x[..., i].sum(0) * y[i, 0] for i in range(5)], axis=1))
    np.testing.assert_array_equal(found[1].numpy(), y.T)


def test_in_axes_and_out_axes_are_other_names() -> None:
    x = normal(3, 4)
    found = vmap(lambda a: a * 2, in_axes=1, out_axes=1)(gg.tensor(x))
    np.testing.assert_array_equal(found.numpy(), x * 2)


def test_containers_in_and_out() -> None:
    x, y, z = normal(4, 2), normal(2, 4, seed=1), normal(3, seed=2)

    def f(tree: Any, rest: Any) -> Any:
        return {"sum": tree["a"] + tree["b"].left, "same": [rest, None]}

    arguments = {"a": gg.tensor(x), "b": Pair(gg.tensor(y), None)}
    found = vmap(f, in_dims=({"a": 0, "b": Pair(1, None)}, None), out_dims={"sum": 0, "same": None})(
        arguments, gg.tensor(z)
    )
    np.testing.assert_allclose(found["sum"].numpy(), x + y.T)
    np.testing.assert_array_equal(found["same"][0].numpy(), z)
    assert found["same"][1] is None


def test_nested_vmap_is_an_outer_product() -> None:
    a, b = normal(3), normal(4, seed=1)
    outer = vmap(vmap(lambda x, y: x * y, in_dims=(None, 0)), in_dims=(0, None))
    np.testing.assert_allclose(outer(gg.tensor(a), gg.tensor(b)).numpy(), np.outer(a, b))
    both = vmap(lambda x: vmap(lambda y: (x * y).sin() + x)(gg.tensor(b)))(gg.tensor(a))
    np.testing.assert_allclose(both.numpy(), np.sin(np.outer(a, b)) + a[:, None])


@pytest.mark.parametrize("chunk_size", [1, 2, 5, 100])
def test_chunks_change_nothing(chunk_size: int) -> None:
    x, w = normal(5, 3), normal(3, seed=1)
    f = vmap(lambda a, b: {"y": a * b, "s": (a * b).sum()}, (0, None), {"y": 1, "s": 0}, chunk_size=chunk_size)
    found = f(gg.tensor(x), gg.tensor(w))
    np.testing.assert_allclose(found["y"].numpy(), (x * w).T)
    np.testing.assert_allclose(found["s"].numpy(), (x * w).sum(1))


def test_an_empty_batch() -> None:
    found = vmap(lambda a: (a.sum(), a @ gg.ones(3, 2)))(gg.zeros(0, 3))
    assert [y.shape for y in found] == [(0,), (0, 2)]


def test_keyword_arguments_are_the_same_for_all() -> None:
    assert vmap(lambda a, *, k: a * k)(gg.ones(2), k=gg.tensor(3.0)).tolist() == [3.0, 3.0]


# --- gradients --------------------------------------------------------------------------------------


def test_gradients_of_each_example_of_a_network() -> None:
    gg.manual_seed(0)
    model = gg.nn.Sequential(gg.nn.Linear(4, 8), gg.nn.Tanh(), gg.nn.Linear(8, 3))
    params = {name: p.detach() for name, p in model.named_parameters()}
    x, labels = gg.tensor(normal(6, 4).astype("f4")), gg.tensor(np.array([0, 1, 2, 1, 0, 2]))

    def loss(params: Any, one: Any, label: Any) -> Any:
        return F.cross_entropy(functional_call(model, params, one.unsqueeze(0)), label.unsqueeze(0))

    found = vmap(grad(loss), in_dims=(None, 0, 0))(params, x, labels)
    for number in range(6):
        model.zero_grad()
        F.cross_entropy(model(x[number : number + 1]), labels[number : number + 1]).backward()
        for name, p in model.named_parameters():
            assert found[name].shape == (6, *p.shape)
            np.testing.assert_allclose(found[name].numpy()[number], p.grad.numpy(), rtol=2e-4, atol=1e-6)


def test_an_ensemble_of_models() -> None:
    models = [gg.nn.Linear(3, 2) for _ in range(4)]
    params, buffers = stack_module_state(models)
    x = gg.tensor(normal(5, 3).astype("f4"))
    found = vmap(lambda p, b, x: functional_call(models[0], (p, b), (x,)), (0, 0, None))(params, buffers, x)
    for number, model in enumerate(models):
        np.testing.assert_allclose(found.detach().numpy()[number], model(x).detach().numpy(), rtol=1e-5, atol=1e-6)
    found.sum().backward()
    np.testing.assert_allclose(params["bias"].grad.numpy(), np.full((4, 2), 5.0))


def test_autograd_grad_inside_vmap_is_for_one_example() -> None:
    w = gg.tensor([1.0, 2.0], requires_grad=True)

    def one(x: Any) -> Any:
        return gg.autograd.grad((w * x).sum() ** 2, w)[0]

    x = normal(3, 2).astype("f4")
    expected = np.stack([2 * (np.array([1, 2]) * row).sum() * row for row in x])
    np.testing.assert_allclose(vmap(one)(gg.tensor(x)).numpy(), expected, rtol=1e-5)


def test_gradient_of_what_is_mapped_as_a_whole_inside_vmap() -> None:
    """Example i depends on row i alone, so its gradient with respect to all rows is zero but there."""
    x = gg.tensor([1.0, 2.0, 3.0], requires_grad=True)
    found = vmap(lambda row: gg.autograd.grad(row**2, x)[0])(x)
    np.testing.assert_allclose(found.numpy(), np.diag([2.0, 4.0, 6.0]))


def test_backward_inside_vmap_is_refused() -> None:
    w = gg.tensor(1.0, requires_grad=True)
    with pytest.raises(errors.AutogradError, match=r"use glassgrad\.func\.grad inside vmap"):
        vmap(lambda x: (w * x).backward())(gg.ones(2))


# --- randomness -------------------------------------------------------------------------------------


def test_random_draws() -> None:
    x = gg.zeros(4, 3)
    with pytest.raises(errors.AutogradError, match="randomness='different'"):
        vmap(lambda a: a + gg.rand(3))(x)
    same = vmap(lambda a: a + gg.randn(3), randomness="same")(x).numpy()
    np.testing.assert_array_equal(same, np.broadcast_to(same[0], same.shape))
    different = vmap(lambda a: a + gg.randn(3), randomness="different")(x).numpy()
    assert len(np.unique(different)) == 12
    gg.manual_seed(7)
    expected = gg.randn(4, 3).numpy()
    gg.manual_seed(7)
    np.testing.assert_array_equal(vmap(lambda a: a + gg.randn(3), randomness="different")(x).numpy(), expected)


def test_random_draws_in_nested_maps() -> None:
    def inner(randomness: str) -> Any:
        return vmap(lambda a: a + gg.rand(()), randomness=randomness)

    found = vmap(inner("same"), randomness="different")(gg.zeros(3, 4)).numpy()
    np.testing.assert_array_equal(found, np.broadcast_to(found[:, :1], found.shape))
    assert len(np.unique(found)) == 3
    found = vmap(inner("different"), randomness="same")(gg.zeros(3, 4)).numpy()
    np.testing.assert_array_equal(found, np.broadcast_to(found[:1], found.shape))
    assert len(np.unique(found)) == 4


def test_every_kind_of_draw() -> None:
    def draws(p: Any) -> Any:
        return (
            gg.randint(0, 1000, (3,)), gg.randperm(5), gg.bernoulli(p), gg.normal(p, 1.0),
            gg.multinomial(p, 2), gg.multinomial(p, 6, replacement=True), F.dropout(p, 0.5),
        )  # fmt: skip  # a table

    p = gg.tensor(np.array([[0.2, 0.8, 0.0], [0.0, 0.3, 0.7]]))
    found = vmap(draws, randomness="different")(p)
    assert [y.shape for y in found] == [(2, 3), (2, 5), (2, 3), (2, 3), (2, 2), (2, 6), (2, 3)]
    assert all(sorted(row) == [0, 1, 2, 3, 4] for row in found[1].tolist())
    assert sorted(found[4].tolist()[0]) == [0, 1]
    assert set(found[5].tolist()[1]) <= {1, 2}


# --- companions and ops with rules of their own -------------------------------------------------------


COMPANIONS = {
    "argmax": lambda x: x.argmax(),
    "argmax-dim": lambda x: x.argmax(0),
    "argmin-keepdim": lambda x: x.argmin(-1, keepdim=True),
    "argmax-of-all-keepdim": lambda x: x.argmax(keepdim=True),
    "all": lambda x: (x > -1).all(),
    "any": lambda x: (x > 1).any(1),
    "argsort": lambda x: x.argsort(0, descending=True),
    "sort": lambda x: x.sort(1).values,
    "topk": lambda x: x.topk(2, 1).indices,
    "median": lambda x: x.median(),
    "cummax": lambda x: x.cummax(0).indices,
    "max": lambda x: x.max(1),
    "one_hot": lambda x: gg.one_hot(x.argmax(1), 4),
    "searchsorted": lambda x: gg.searchsorted(gg.tensor([-1.0, 0.0, 1.0]), x),
    "searchsorted-rows": lambda x: gg.searchsorted(x.sort(1).values, x),
    "searchsorted-shared-rows": lambda x: gg.searchsorted(gg.tensor([[-1.0, 0.5], [0.0, 1.0], [-2.0, 2.0]]), x),
    "searchsorted-row": lambda x: gg.searchsorted(x[0].sort(0).values, x),
    "isin": lambda x: gg.isin(x.argmax(1), gg.tensor([0, 2])),
    "isin-own": lambda x: gg.isin(gg.tensor([0, 1, 2]), x.argmax(1)),
    "masked_fill": lambda x: x.masked_fill(x > 0, 0.0),
    "where": lambda x: gg.where(x > 0, x, -1.0),
    "trace": lambda x: x[:, :3].trace(),
    "diagonal": lambda x: x.diagonal(offset=1),
    "negative-index": lambda x: x[-1, gg.tensor([0, -1])],
    "apart": lambda x: x.unsqueeze(1)[gg.tensor([0, 1]), :, gg.tensor([2, 3])],
    "own-index": lambda x: x[x.argmax(0)],
    "own-index-behind": lambda x: x[:, x.argmax(0)[:3]],
    "own-index-apart": lambda x: x.unsqueeze(1)[x.argmax(0), :, x.argmax(1).sum() % 4],
    "new-axis": lambda x: x[None, ..., x.argmax(0), None],
    "einsum": lambda x: gg.einsum("ij,kj->ik", x, x),
    "len": lambda x: x * len(x),
    "iterate": lambda x: sum(row * number for number, row in enumerate(x)),
}


@pytest.mark.parametrize("name", COMPANIONS)
def test_companions_agree_with_a_loop(name: str) -> None:
    x = normal(5, 3, 4)
    f = COMPANIONS[name]

    def parts(y: Any) -> Any:
        return tuple(y) if isinstance(y, tuple) else y

    found = vmap(lambda a: parts(f(a)))(gg.tensor(x))
    loop = [parts(f(gg.tensor(row))) for row in x]
    if not isinstance(found, tuple):
        found, loop = (found,), [(one,) for one in loop]
    for y, expected in zip(found, zip(*loop, strict=True), strict=True):
        np.testing.assert_allclose(y.numpy(), np.stack([one.numpy() for one in expected]), rtol=1e-12)


def test_a_primitive_without_a_rule_is_looped() -> None:
    prim = REGISTRY["histogram"]
    assert prim.batch is None
    found, _edges = vmap(lambda a: prim(a, np.array([-9.0, 0.0, 9.0]), density=False))(gg.tensor(normal(4, 7)))
    assert found.shape == (4, 2)
    assert found.sum(1).tolist() == [7, 7, 7, 7]


def test_nearly_all_primitives_have_a_rule() -> None:
    from glassgrad.ops.core import Elementwise, Fused

    without = {
        prim.name for prim in REGISTRY.values() if prim.batch is None and not isinstance(prim, Elementwise | Fused)
    }
    assert without <= {"pick", "bincount", "histogram"}, "give these batch=..., or name them here with the loop in mind"


# --- what it refuses --------------------------------------------------------------------------------


TAKEN = [float, bool, lambda x: x.item(), lambda x: x.numpy() + 1, lambda x: x.tolist(), np.asarray]


@pytest.mark.parametrize("take", TAKEN)
def test_there_is_no_single_value(take: Any) -> None:
    with pytest.raises(errors.NoValueError, match=r"stands for 2 examples at once[\s\S]*test_vmap.py:\d+"):
        vmap(lambda x: gg.tensor(0.0) * take(x))(gg.ones(2))


def test_shapes_that_depend_on_numbers_are_refused() -> None:
    with pytest.raises(errors.NoValueError, match="stands for 2 examples"):
        vmap(lambda x: x[x > 0])(gg.ones(2, 3))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: vmap(lambda x, y: x)(gg.ones(2), gg.ones(3)), "different sizes: 2, 3"),
        (lambda: vmap(lambda x: x, in_dims=None)(gg.ones(2)), "no argument is mapped"),
        (lambda: vmap(lambda x: x, in_dims=1)(gg.ones(2)), r"in_dims has 1 for a tensor of shape \(2,\)"),
        (lambda: vmap(lambda x: x)(gg.tensor(1.0)), "in_dims has 0 for a tensor of shape"),
        (lambda: vmap(lambda x: x)(3.0), "maps over a float"),
        (lambda: vmap(lambda x: x, in_dims=(0, 0))(gg.ones(2)), "vmap: in_dims: given the structure"),
        (lambda: vmap(lambda x: 1.0)(gg.ones(2)), "returned float where a tensor was expected"),
        (lambda: vmap(lambda x: x, out_dims=None)(gg.ones(2)), "out_dims is None for a result that differs"),
        (lambda: vmap(lambda x: x, out_dims=(0, 0))(gg.ones(2)), "vmap: out_dims: given the structure"),
        (lambda: vmap(lambda x: x, randomness="maybe"), "randomness='maybe' is not possible"),
    ],
)
def test_messages(call: Any, message: str) -> None:
    with pytest.raises(errors.GlassgradError, match=message):
        call()


def test_a_tensor_that_escaped_says_where_it_is_from() -> None:
    kept: list[Any] = []
    vmap(lambda x: (kept.append(x * 2), x)[1])(gg.ones(3, 2))
    for read in (lambda x: x.sum().item(), lambda x: x.numpy(), lambda x: bool((x * 3).sum() > 0)):
        with pytest.raises(errors.NoValueError, match=r"a call of vmap that has ended[\s\S]*return it from the mapped"):
            read(kept[0])


def test_levels_end_with_an_exception() -> None:
    with pytest.raises(ZeroDivisionError):
        vmap(lambda x: x / gg.tensor(1.0) * (1 // 0))(gg.ones(2))
    assert gg.rand(2).shape == (2,)  # would be refused inside vmap


# --- in place ---------------------------------------------------------------------------------------


def written(x: Any) -> Any:
    z = x.clone()
    z[:1].mul_(3)
    z[1].add_(x[0])
    z[2] = z[2] * 10
    z += 1
    filled = gg.zeros_like(x)
    filled[1:] = x[1:]
    return (z * z).sum() + (filled * z).sum()


def test_writes_in_place_and_into_views() -> None:
    x = gg.tensor(normal(4, 3))
    before = x.numpy().copy()
    for f in (written, grad(written), gg.func.hessian(written), gg.func.jacfwd(written)):
        np.testing.assert_allclose(vmap(f)(x).numpy(), np.stack([f(row).numpy() for row in x]), rtol=1e-12)
    np.testing.assert_array_equal(x.numpy(), before)


def test_what_all_examples_share_is_not_written_to() -> None:
    shared = gg.zeros(3)

    def assign(x: Any) -> Any:
        shared[0] = x[0]
        return shared.sum()

    for write in (assign, lambda x: shared.add_(x).sum(), lambda x: shared.mul_(x.sum()).sum()):
        with pytest.raises(errors.AutogradError, match=r"a tensor that all of them share[\s\S]*zeros_like"):
            vmap(write)(gg.ones(2, 3))
    assert shared.tolist() == [0.0, 0.0, 0.0]


# --- layers -----------------------------------------------------------------------------------------


LAYERS: dict[str, tuple[Any, tuple[int, ...]]] = {
    "conv1d": (lambda: gg.nn.Conv1d(3, 4, 3, padding=1), (2, 3, 6)),
    "conv2d": (lambda: gg.nn.Conv2d(4, 4, 3, stride=2, groups=2), (2, 4, 6, 6)),
    "conv_transpose2d": (lambda: gg.nn.ConvTranspose2d(3, 4, 3, stride=2), (2, 3, 5, 5)),
    "batch_norm": (lambda: gg.nn.BatchNorm1d(4, track_running_stats=False), (5, 4)),
    "layer_norm": (lambda: gg.nn.LayerNorm(4), (5, 4)),
    "group_norm": (lambda: gg.nn.GroupNorm(2, 4), (5, 4, 3)),
    "max_pool2d": (lambda: gg.nn.MaxPool2d(2), (2, 3, 6, 6)),
    "avg_pool2d": (lambda: gg.nn.AvgPool2d(2), (2, 3, 6, 6)),
    "adaptive": (lambda: gg.nn.AdaptiveAvgPool2d(2), (2, 3, 7, 7)),
    "gelu": (gg.nn.GELU, (3, 4)),
}


@pytest.mark.parametrize("name", LAYERS)
def test_layers_agree_with_a_loop_in_value_and_gradient(name: str) -> None:
    build, shape = LAYERS[name]
    gg.manual_seed(0)
    model = build()
    model.double()
    x = gg.tensor(normal(3, *shape))
    params = {key: p.detach() for key, p in model.named_parameters()}

    def loss(params: Any, one: Any) -> Any:
        return (functional_call(model, params, one) ** 3).sum()

    gradient = grad(loss, argnums=(0, 1))
    found = vmap(gradient, in_dims=(None, 0))(params, x)
    loop = [gradient(params, one) for one in x]
    np.testing.assert_allclose(found[1].numpy(), np.stack([g[1].numpy() for g in loop]), rtol=1e-8, atol=1e-9)
    for key in params:
        expected = np.stack([g[0][key].numpy() for g in loop])
        np.testing.assert_allclose(found[0][key].numpy(), expected, rtol=1e-8, atol=1e-9)


def test_running_statistics_are_refused_and_left_alone() -> None:
    layer = gg.nn.BatchNorm1d(4)
    with pytest.raises(errors.AutogradError, match="update of running statistics"):
        vmap(layer)(gg.tensor(normal(3, 5, 4).astype("f4")))
    assert layer.running_mean.tolist() == [0.0] * 4
    assert vmap(layer.eval())(gg.ones(3, 5, 4)).shape == (3, 5, 4)
