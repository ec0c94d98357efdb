"""`amp.autocast` to bfloat16: values, gradients and dtypes beside PyTorch's, for every op that it touches."""

from __future__ import annotations

import functools
import threading
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import glassgrad as gg
from glassgrad import amp
from glassgrad.engine import autocasting
from glassgrad.ops.core import REGISTRY

EPS = 2.0**-8


@pytest.fixture(autouse=True)
def units(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is rounded where does not depend on the processor: these tests run on any."""
    monkeypatch.setattr(amp, "processor_multiplies", lambda: True)


def drawn(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype(np.float32)


def weights(shape: Any) -> np.ndarray:
    return drawn(*shape, seed=9) if len(shape) else np.ones((), np.float32)


# name: (the function of a library's module and its functional one, shapes of float32 inputs)
CASES: dict[str, tuple[Callable[..., Any], tuple[tuple[int, ...], ...]]] = {
    "linear": (lambda T, F, x, w, b: F.linear(x, w, b), ((4, 6), (3, 6), (3,))),
    "matmul": (lambda T, F, a, b: a @ b, ((4, 6), (6, 3))),
    "matvec": (lambda T, F, a, b: a @ b, ((4, 6), (6,))),
    "bmm": (lambda T, F, a, b: T.bmm(a, b), ((2, 4, 6), (2, 6, 3))),
    "einsum": (lambda T, F, a, b: T.einsum("bij,kj->bik", a, b), ((2, 4, 6), (3, 6))),
    "conv1d": (lambda T, F, x, w: F.conv1d(x, w), ((2, 3, 8), (4, 3, 3))),
    "conv2d": (lambda T, F, x, w, b: F.conv2d(x, w, b, padding=1), ((2, 3, 5, 5), (4, 3, 3, 3), (4,))),
    "conv_transpose2d": (lambda T, F, x, w: F.conv_transpose2d(x, w), ((2, 3, 4, 4), (3, 2, 3, 3))),
    "attention": (lambda T, F, q, k, v: F.scaled_dot_product_attention(q, k, v), ((2, 5, 4),) * 3),
    "mse_loss": (lambda T, F, x, w, y: F.mse_loss(x @ w, y), ((4, 6), (6, 3), (4, 3))),
    "l1_loss": (lambda T, F, x, w, y: F.l1_loss(x @ w, y), ((4, 6), (6, 3), (4, 3))),
    "cross_entropy": (
        lambda T, F, x, w: F.cross_entropy(x @ w, T.tensor([0, 2, 1, 1])), ((4, 6), (6, 3))),
    "relu": (lambda T, F, x, w: (x @ w).relu(), ((4, 6), (6, 3))),
    "tanh": (lambda T, F, x, w: T.tanh(x @ w), ((4, 6), (6, 3))),
    "gelu": (lambda T, F, x, w: F.gelu(x @ w), ((4, 6), (6, 3))),
    "softmax": (lambda T, F, x, w: T.softmax(x @ w, -1), ((4, 6), (6, 3))),
    "layer_norm": (lambda T, F, x, w: F.layer_norm(x @ w, (3,)), ((4, 6), (6, 3))),
    "two layers": (lambda T, F, x, w, v: F.linear(F.silu(F.linear(x, w)), v), ((4, 6), (5, 6), (3, 5))),
    "residual": (lambda T, F, x, w: x + F.linear(x, w), ((4, 6), (6, 6))),
    "prod": (lambda T, F, x, w: (x @ w).prod(1), ((4, 6), (6, 3))),
    "cat": (lambda T, F, x, w: T.cat([x @ w, x], 1), ((4, 6), (6, 3))),
    "max_pool2d": (lambda T, F, x, w: F.max_pool2d(F.conv2d(x, w), 2), ((2, 3, 6, 6), (4, 3, 3, 3))),
}  # fmt: skip  # a table


def ours(name: str, how: Callable[..., Any] = lambda function: function) -> tuple[Any, ...]:
    function, shapes = CASES[name]
    inputs = [gg.tensor(drawn(*shape, seed=at), requires_grad=True) for at, shape in enumerate(shapes)]

    def step(*xs: Any) -> Any:
        with gg.autocast("cpu", dtype=gg.bfloat16):
            y = function(gg, gg.nn.functional, *xs)
        (y.float() * gg.tensor(weights(y.shape))).sum().backward()
        return y

    y = how(step)(*inputs)
    return str(y.dtype), y.detach().numpy().astype(np.float64), [x.grad.numpy() for x in inputs]


@functools.cache
def theirs(name: str, dtype: str = "bfloat16") -> tuple[Any, ...]:
    torch = pytest.importorskip("torch", reason="PyTorch is the oracle")
    function, shapes = CASES[name]
    inputs = [torch.tensor(drawn(*shape, seed=at)) for at, shape in enumerate(shapes)]
    inputs = [(x.double() if dtype == "float64" else x).requires_grad_() for x in inputs]
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=dtype == "bfloat16"):
        y = function(torch, torch.nn.functional, *inputs)
    ((y if dtype == "float64" else y.float()) * torch.tensor(weights(y.shape))).sum().backward()
    kind = str(y.dtype).removeprefix("torch.")
    return kind, y.detach().double().numpy(), [x.grad.numpy() for x in inputs]


def near(found: np.ndarray, wanted: np.ndarray, exact: np.ndarray) -> None:
    """Ours differs from PyTorch's by a few roundings, and from the truth by no more than theirs does, nearly."""
    scale = np.abs(exact).max()
    assert np.abs(found - wanted).max() <= 8 * EPS * scale
    assert np.abs(found - exact).max() <= 1.5 * np.abs(wanted - exact).max() + 2 * EPS * scale


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("mode", ["eager", "compiled"])
def test_every_op_beside_pytorchs(name: str, mode: str) -> None:
    dtype, y, gradients = ours(name, functools.partial(gg.compile, strict=True) if mode == "compiled" else lambda f: f)
    kind, their_y, their_gradients = theirs(name)
    _, exact_y, exact_gradients = theirs(name, "float64")
    assert dtype == kind
    near(y, their_y, exact_y)
    for found, wanted, exact in zip(gradients, their_gradients, exact_gradients, strict=True):
        assert found.dtype == wanted.dtype == np.float32
        near(found, wanted, exact)


def test_recurrent_layers_stay_near_float32() -> None:
    gg.manual_seed(0)
    layer, x = gg.nn.LSTM(4, 5), gg.tensor(drawn(7, 2, 4))
    with gg.autocast("cpu"):
        y, _ = layer(x)
    wanted, _ = layer(x)
    np.testing.assert_allclose(y.float().detach().numpy(), wanted.detach().numpy(), atol=4 * EPS)
    y.float().sum().backward()
    assert layer.weight_ih_l0.grad.dtype == np.float32


def test_the_lists_name_primitives_and_agree_with_pytorchs() -> None:
    assert not autocasting.LOWER & autocasting.SINGLE
    assert set(REGISTRY) >= autocasting.LOWER | autocasting.SINGLE
    lists = pytest.importorskip("torch.testing._internal.autocast_test_lists", reason="PyTorch's lists are the oracle")
    table = lists.AutocastCPUTestLists("cpu")
    lower = {entry[0] for entry in (*table.nn_16, *table.torch_16)}
    assert {"linear", "matmul", "conv2d", "scaled_dot_product_attention"} & lower <= autocasting.LOWER
    single = {entry[0] for entry in (*table.nn_fp32, *table.torch_fp32)}
    assert "mse_loss" in single
    assert not lower & autocasting.SINGLE
    assert not single & autocasting.LOWER


def test_blocks_nest_end_and_belong_to_a_thread() -> None:
    a = gg.ones(2, 2)
    seen: list[Any] = []

    @gg.autocast("cpu")
    def decorated() -> Any:
        return (a @ a).dtype

    with gg.autocast("cpu", dtype=gg.bfloat16):
        assert gg.is_autocast_enabled()
        with gg.no_grad():
            assert (a @ a).dtype == gg.bfloat16
        with gg.autocast("cpu", enabled=False):
            assert (a @ a).dtype == np.float32
        with gg.autocast("cpu", dtype=gg.float16):
            assert (a @ a).dtype == np.float32
        assert (a @ a).dtype == gg.bfloat16
        assert (a.double() @ a.double()).dtype == np.float64
        thread = threading.Thread(target=lambda: seen.append((a @ a).dtype))
        thread.start()
        thread.join()
    assert seen == [np.float32]
    assert (a @ a).dtype == np.float32
    assert not gg.is_autocast_enabled()
    assert decorated() == gg.bfloat16
    with pytest.raises(ZeroDivisionError), gg.autocast("cpu"):
        _ = 1 // 0
    assert (a @ a).dtype == np.float32


def test_a_compiled_function_knows_which_block_it_is_called_in() -> None:
    f = gg.compile(lambda x: x @ x, strict=True)
    a = gg.ones(3, 3)
    for _ in range(2):
        assert f(a).dtype == np.float32
        with gg.autocast("cpu"):
            assert f(a).dtype == gg.bfloat16
    assert f.traces == 2


@pytest.fixture
def no_units(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.undo()
    monkeypatch.setattr(amp, "processor_multiplies", lambda: False)
    amp._notice.cache_clear()
    yield
    amp._notice.cache_clear()


def test_elsewhere_a_notice_once_and_float32(no_units: None) -> None:
    a = gg.ones(2, 2)
    with (
        pytest.warns(gg.errors.PrecisionWarning, match=r"test_autocast\.py.*\n?.*stays in float32"),
        gg.autocast("cpu"),
    ):
        assert (a @ a).dtype == np.float32
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with gg.autocast("cpu"):
            assert (a @ a).dtype == np.float32
