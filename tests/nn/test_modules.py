"""Modules: state, containers, hooks, modes, copies, and their error messages."""

from __future__ import annotations

import contextlib
import copy
import pickle
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import glassgrad as gg
from glassgrad import nn


class Tied(nn.Module):
    """Shared weights, buffers of both kinds, a list and a parameter of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(5, 3)
        self.blocks = nn.ModuleList([nn.Linear(3, 3), nn.LayerNorm(3)])
        self.head = nn.Linear(3, 5, bias=False)
        self.head.weight = self.table.weight
        self.scale = nn.Parameter(gg.ones(3))
        self.register_buffer("mask", gg.ones(2, 2).tril())
        self.register_buffer("scratch", gg.zeros(1), persistent=False)
        self.register_parameter("nothing", None)

    def forward(self, tokens: Any) -> Any:
        x = self.table(tokens) * self.scale
        for block in self.blocks:
            x = block(x)
        return self.head(x)


NAMES = ["scale", "mask", "table.weight", "blocks.0.weight", "blocks.0.bias", "blocks.1.weight", "blocks.1.bias",
         "head.weight"]  # fmt: skip  # a table


def test_state_dict_names_every_place_and_parameters_come_once() -> None:
    model = Tied()
    assert list(model.state_dict()) == NAMES
    assert [name for name, _ in model.named_parameters()] == [n for n in NAMES if n not in {"mask", "head.weight"}]
    assert [name for name, _ in model.named_buffers()] == ["mask", "scratch"]
    assert "head.weight" in dict(model.named_parameters(remove_duplicate=False))
    assert next(iter(model.state_dict(prefix="a."))) == "a.scale"
    assert model.state_dict()["scale"].array is model.scale.array
    assert list(model._modules) == ["table", "blocks", "head"]
    assert list(model._parameters) == ["scale"]
    assert list(model._buffers) == ["mask", "scratch"]


def test_the_same_model_in_pytorch_has_the_same_state() -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is the oracle")

    class Twin(torch.nn.Module):  # torch has no types here
        def __init__(self) -> None:
            super().__init__()
            self.table = torch.nn.Embedding(5, 3)
            self.blocks = torch.nn.ModuleList([torch.nn.Linear(3, 3), torch.nn.LayerNorm(3)])
            self.head = torch.nn.Linear(3, 5, bias=False)
            self.head.weight = self.table.weight
            self.scale = torch.nn.Parameter(torch.ones(3))
            self.register_buffer("mask", torch.ones(2, 2).tril())
            self.register_buffer("scratch", torch.zeros(1), persistent=False)

    ours, theirs = Tied(), Twin()
    assert list(ours.state_dict()) == list(theirs.state_dict())
    theirs.load_state_dict({name: torch.tensor(value.numpy()) for name, value in ours.state_dict().items()})
    ours.load_state_dict(theirs.state_dict())
    assert [n for n, _ in ours.named_modules()] == [n for n, _ in theirs.named_modules()]
    assert repr(ours) == repr(theirs).replace("Twin", "Tied")


def test_loading_copies_or_assigns_and_keeps_sharing() -> None:
    model = Tied()
    state = {name: gg.full(value.shape, 2.0) for name, value in model.state_dict().items()}
    memory = model.scale.array
    assert model.load_state_dict(state) == ([], [])
    assert model.scale.array is memory
    assert model.head.weight is model.table.weight
    assert model.head.weight.array.max() == 2
    model.load_state_dict(state, assign=True)
    assert model.scale.array is state["scale"].array
    found = model.load_state_dict({"scale": gg.zeros(3), "more": gg.zeros(1)}, strict=False)
    assert found.unexpected_keys == ["more"]
    assert found.missing_keys == NAMES[1:]
    assert model.scale.array.max() == 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda s: s.pop("mask"), "missing: mask"),
        (lambda s: s.update(other=gg.zeros(1)), "unexpected: other"),
        (lambda s: s.update(scale=gg.zeros(4)), r"wrong shape: scale: \(4,\), expected \(3,\)"),
    ],
)
def test_a_state_that_does_not_fit_changes_nothing(change: Callable[[Any], Any], message: str) -> None:
    model = Tied()
    before = {name: value.numpy().copy() for name, value in model.state_dict().items()}
    state = {name: gg.full(value.shape, 7.0) for name, value in before.items()}
    change(state)
    with pytest.raises(RuntimeError, match=message):
        model.load_state_dict(state)
    for name, value in model.state_dict().items():
        np.testing.assert_array_equal(value.numpy(), before[name])


def through_pickle(model: Any) -> Any:
    return pickle.loads(pickle.dumps(model))  # noqa: S301 - made a moment ago


@pytest.mark.parametrize("copied", [copy.deepcopy, through_pickle])
def test_a_copy_is_whole_and_separate(copied: Callable[[Any], Any]) -> None:
    model = Tied()
    twin = copied(model)
    tokens = gg.tensor([0, 3])
    np.testing.assert_array_equal(twin(tokens).detach().numpy(), model(tokens).detach().numpy())
    assert list(twin.state_dict()) == NAMES
    assert twin.head.weight is twin.table.weight
    twin.scale.array[...] = 0
    assert model.scale.array.min() == 1


def test_modes_freezing_dtypes_and_apply() -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.Sequential(nn.BatchNorm1d(2)))
    assert not any(module.training for module in model.eval().modules())
    assert all(module.training for module in model.train().modules())
    model.requires_grad_(False)
    assert not any(p.requires_grad for p in model.parameters())
    model.double()
    assert {t.dtype.name for t in model.state_dict().values()} == {"float64", "int64"}
    model.to("cpu", gg.float32)
    assert model[0].weight.dtype == np.float32
    seen: list[str] = []
    model.apply(lambda module: seen.append(type(module).__name__))
    assert seen == ["Linear", "BatchNorm1d", "Sequential", "Sequential"]
    with pytest.raises(ValueError, match="cuda"):
        model.cuda()


def test_containers_are_lists_and_dictionaries() -> None:
    layers = nn.ModuleList([nn.Tanh()])
    layers.append(nn.ReLU()).extend([nn.GELU(), nn.SiLU()])
    layers.insert(1, nn.Sigmoid())
    kinds = ["Tanh", "Sigmoid", "ReLU", "GELU", "SiLU"]
    assert [type(one).__name__ for one in layers] == kinds
    assert list(layers._modules) == list("01234")
    assert isinstance(layers[1:3], nn.ModuleList)
    assert type(layers[-1]).__name__ == "SiLU"
    del layers[0]
    assert type(layers.pop(0)).__name__ == "Sigmoid"
    layers[0] = nn.Tanh()
    assert len(layers + nn.ModuleList([nn.ELU()])) == 4
    with pytest.raises(IndexError, match="out of range"):
        layers[3]
    with pytest.raises(TypeError, match="holds entries of type Module, given a ufunc"):
        layers.append(np.sin)  # narrowed by the caller
    named = nn.Sequential(OrderedDict(first=nn.Linear(2, 3), second=nn.ReLU()))
    assert named.first.out_features == 3
    assert list(named[1:]._modules) == ["second"]
    table = nn.ModuleDict({"a": nn.Tanh()})
    table["b"] = nn.ReLU()
    assert list(table) == ["a", "b"]
    assert "b" in table
    assert table.pop("a")(gg.zeros(1)).item() == 0
    weights = nn.ParameterList([gg.zeros(2), nn.Parameter(gg.ones(3))])
    assert [p.shape for p in weights.parameters()] == [(2,), (3,)]
    assert nn.ParameterDict({"w": gg.zeros(2)})["w"].requires_grad


def test_a_list_keeps_its_empty_places() -> None:
    layers = nn.ModuleList([None, nn.Linear(2, 2), None])
    assert [type(one).__name__ for one in layers] == ["NoneType", "Linear", "NoneType"]
    assert [name for name, _ in layers.named_parameters()] == ["1.weight", "1.bias"]
    assert [name for name, _ in layers.named_children()] == ["1"]
    layers[0] = nn.Tanh()
    assert layers.pop(2) is None
    assert len(layers) == 2


def test_lists_of_parameters_hold_lists() -> None:
    scales = nn.ParameterList([nn.ParameterList([gg.ones(1), gg.ones(2)]), gg.ones(3)])
    assert [name for name, _ in scales.named_parameters()] == ["1", "0.0", "0.1"]
    table = nn.ParameterDict({"a": nn.ParameterList([gg.ones(1)])})
    assert list(table.state_dict()) == ["a.0"]


class Recall(nn.Module):
    """Keeps its last result in a buffer, as spiking neurons do."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("level", gg.zeros(2))

    def forward(self, x: gg.Tensor) -> gg.Tensor:
        self.level = 0.5 * self.level + x
        return self.level


def test_gradients_flow_through_a_buffer_that_was_assigned() -> None:
    w = gg.tensor([1.0, 2.0], requires_grad=True)
    cell = Recall()
    cell(3 * w)
    (cell(w) * gg.tensor([1.0, 10.0])).sum().backward()
    assert w.grad.tolist() == [2.5, 25.0]
    assert list(cell.state_dict()) == ["level"]
    cell.level = w  # a leaf
    assert isinstance(cell.level, nn.Buffer)
    cell.level.sum().backward()
    assert w.grad.tolist() == [3.5, 26.0]


def test_a_buffer_of_another_module_is_a_tensor_like_any_other() -> None:
    first, second = Recall(), Recall()
    other = nn.Module()
    other.seen = first.level
    assert not other.state_dict()
    assert np.shares_memory(other.seen.numpy(), first.level.numpy())
    second.level = first.level
    assert second.level is first.level
    other.own = nn.Buffer(gg.ones(1))
    assert list(other.state_dict()) == ["own"]


def test_forward_hooks_change_arguments_and_results() -> None:
    layer = nn.Linear(2, 2)
    x = gg.ones(1, 2)
    plain = layer(x).detach().numpy()
    first = layer.register_forward_pre_hook(lambda module, args: (args[0] * 0,))
    second = layer.register_forward_hook(lambda module, args, output: output + 5)
    np.testing.assert_allclose(layer(x).detach().numpy(), layer.bias.detach().numpy()[None] + 5, rtol=1e-6)
    first.remove()
    second.remove()
    np.testing.assert_array_equal(layer(x).detach().numpy(), plain)
    layer.register_forward_pre_hook(lambda module, args, kwargs: ((), {"input": kwargs["input"] * 2}), with_kwargs=True)
    seen: list[Any] = []
    layer.register_forward_hook(lambda module, args, kwargs, output: seen.append(sorted(kwargs)), with_kwargs=True)
    layer(input=x)
    assert seen == [["input"]]


def test_backward_hooks_see_this_call_alone() -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is the oracle")

    def run(library: Any) -> list[Any]:
        layer = library.nn.Linear(3, 2)
        state = {"weight": np.arange(6.0).reshape(2, 3), "bias": np.ones(2)}
        layer.load_state_dict({name: library.tensor(value) for name, value in state.items()})
        found: list[Any] = []

        def hook(module: Any, grad_input: Any, grad_output: Any) -> Any:
            found.extend([grad_input[0].numpy().copy(), grad_output[0].numpy().copy()])
            return (grad_input[0] * 10,)

        layer.register_full_backward_pre_hook(lambda module, grad_output: (grad_output[0] * 2,))
        layer.register_full_backward_hook(hook)
        x = library.ones(4, 3)
        x.requires_grad = True
        (layer(x).sum() + (x * x).sum()).backward()
        return [*found, x.grad.numpy(), layer.weight.grad.numpy()]

    for a, b in zip(run(gg), run(torch), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)


def test_a_parameter_is_not_replaced_by_accident() -> None:
    layer = nn.Linear(2, 2)
    with pytest.raises(TypeError, match=r"Linear.weight is a Parameter"):
        layer.weight = gg.zeros(2, 2)
    model = Tied()
    model.mask = gg.zeros(2, 2)
    assert isinstance(model.mask, nn.Buffer)
    layer.bias = None
    assert list(layer.state_dict()) == ["weight"]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: nn.Module()(1), "no forward"),
        (lambda: nn.Conv4d, "Nearest: Conv"),
        (lambda: nn.functional.grouped_mm, "has no 'grouped_mm'"),
        (lambda: nn.LazyInstanceNorm2d, "InstanceNorm2d with"),
        (lambda: nn.MultiheadAttention(5, 2), "a divisor of embed_dim=5"),
        (lambda: nn.Conv2d(3, 4, 3, groups=2), "in_channels=3"),
        (lambda: nn.Conv2d(3, 4, 3, padding_mode="same"), "padding_mode"),
        (lambda: nn.Dropout(1.5), "a probability"),
        (lambda: nn.GroupNorm(3, 4), "a multiple of num_groups=3"),
        (lambda: nn.RNN(2, 2, nonlinearity="sigmoid"), "'tanh' or 'relu'"),
        (lambda: nn.LSTM(3, 4)(gg.zeros(5, 2, 2)), r"expects input of shape \(L, N, 3\)"),
        (lambda: nn.GRU(3, 4)(gg.zeros(5, 2, 3), gg.zeros(1, 3, 4)), r"a state \(1, 2, 4\)"),
        (lambda: nn.BatchNorm1d(3)(gg.zeros(4, 2)), r"expects input of shape \(N, 3"),
        (lambda: nn.BatchNorm1d(3)(gg.zeros(1, 3)), "has no variance"),
        (lambda: nn.LayerNorm(3)(gg.zeros(4, 2)), r"\(\.\.\., 3\)"),
        (lambda: nn.TransformerEncoderLayer(4, 2, activation="swish"), "'relu', 'gelu' or a function"),
        (lambda: nn.MSELoss(reduction="average"), "'mean', 'sum' or 'none'"),
        (
            lambda: nn.functional.scaled_dot_product_attention(
                *[gg.zeros(2, 3)] * 3, attn_mask=gg.zeros(2, 2), is_causal=True
            ),
            "both given",
        ),
        (lambda: nn.RoPE(3), "an even number"),
    ],
)
def test_bad_input_is_named(make: Callable[[], Any], message: str) -> None:
    with pytest.raises((ValueError, TypeError, AttributeError, gg.errors.GlassgradError), match=message):
        make()


def test_every_function_is_callable() -> None:
    for name in nn.functional.__all__:
        assert callable(getattr(nn.functional, name))


@pytest.mark.parametrize("key", ["keys", "forward", "training", "a.b", "", 1])
def test_keys_that_would_hide_something_are_refused_as_in_torch(key: Any) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is the oracle")
    for lib, kinds, words in (
        (torch, (KeyError, TypeError), None),
        (gg, ValueError, r"cannot hold an entry under the key .*test_modules\.py"),
    ):
        with pytest.raises(kinds, match=words):
            lib.nn.ModuleDict({key: lib.nn.Tanh()})
        if key not in {"keys", 1}:  # Sequential has no keys(), and numbers its entries itself
            with pytest.raises(kinds, match=words):
                lib.nn.Sequential(OrderedDict({key: lib.nn.Tanh()}))


@pytest.mark.parametrize("fails_in", ["forward", "first hook", "nowhere"])
def test_a_hook_that_is_always_called_is_called_as_in_torch(fails_in: str) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is the oracle")

    def calls(lib: Any) -> list[Any]:
        seen: list[Any] = []

        class Layer(lib.nn.Module):  # one library or the other
            def forward(self, x: Any) -> Any:
                if fails_in == "forward":
                    raise ValueError
                return x + 1

        def first(module: Any, args: Any, output: Any) -> None:
            seen.append(("first", output is None))
            if fails_in == "first hook":
                raise ValueError

        layer = Layer()
        layer.register_forward_hook(first)
        layer.register_forward_hook(lambda m, args, output: seen.append(("plain", output is None)))
        layer.register_forward_hook(lambda m, args, output: seen.append(("always", output is None)), always_call=True)
        with contextlib.nullcontext() if fails_in == "nowhere" else pytest.raises(ValueError):
            layer(lib.ones(2))
        return seen

    assert calls(gg) == calls(torch)
