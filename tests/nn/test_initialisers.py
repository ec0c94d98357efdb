"""Initialisers: the moments that their papers state, and PyTorch's bounds."""

from __future__ import annotations

import math
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import glassgrad as gg
from glassgrad.nn import init

SHAPE = (200, 300)
# name, options, mean, standard deviation, largest |x - mean| (None: no bound)
DRAWS: list[tuple[str, dict[str, Any], float, float, float | None]] = [
    ("normal_", {"mean": 1.0, "std": 2.0}, 1.0, 2.0, None),
    ("uniform_", {"a": -1.0, "b": 3.0}, 1.0, 4 / math.sqrt(12), 2.0),
    ("trunc_normal_", {"std": 1.0, "a": -2.0, "b": 2.0}, 0.0, 0.8796, 2.0),
    ("xavier_uniform_", {}, 0.0, math.sqrt(2 / 500), math.sqrt(6 / 500)),
    ("xavier_normal_", {"gain": 2.0}, 0.0, 2 * math.sqrt(2 / 500), None),
    ("kaiming_uniform_", {"nonlinearity": "relu"}, 0.0, math.sqrt(2 / 300), math.sqrt(6 / 300)),
    ("kaiming_uniform_", {"a": math.sqrt(5)}, 0.0, math.sqrt(1 / 900), math.sqrt(1 / 300)),
    ("kaiming_normal_", {"mode": "fan_out", "nonlinearity": "relu"}, 0.0, math.sqrt(2 / 200), None),
]


@pytest.mark.parametrize(("name", "options", "mean", "std", "bound"), DRAWS)
def test_moments_and_bounds(name: str, options: dict[str, Any], mean: float, std: float, bound: float | None) -> None:
    gg.manual_seed(1)
    x = gg.zeros(SHAPE)
    assert getattr(init, name)(x, **options) is x
    assert x.numpy().mean() == pytest.approx(mean, abs=0.02 * std)
    assert x.numpy().std() == pytest.approx(std, rel=0.01)
    if bound is not None:
        largest = np.abs(x.numpy() - mean).max()
        assert 0.97 * bound < largest <= bound * (1 + 1e-6)


def test_the_rest() -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is the oracle")
    assert init.zeros_(gg.ones(3)).tolist() == [0, 0, 0]
    assert init.ones_(gg.zeros(2)).tolist() == [1, 1]
    assert init.constant_(gg.zeros(2), 0.5).tolist() == [0.5, 0.5]
    np.testing.assert_array_equal(init.eye_(gg.zeros(3, 4)).numpy(), np.eye(3, 4, dtype=np.float32))
    for shape in ((4, 3, 3), (4, 4, 3, 3), (4, 2, 5)):
        np.testing.assert_array_equal(
            init.dirac_(gg.ones(shape)).numpy(), torch.nn.init.dirac_(torch.ones(shape)).numpy()
        )
    for shape in ((6, 4), (4, 6), (4, 2, 3)):
        x = init.orthogonal_(gg.zeros(shape), gain=2.0).numpy().reshape(shape[0], -1)
        gram = x @ x.T if x.shape[0] <= x.shape[1] else x.T @ x
        np.testing.assert_allclose(gram, 4 * np.eye(len(gram)), atol=1e-5)
    for name in ("linear", "conv2d", "sigmoid", "tanh", "relu", "selu", "leaky_relu"):
        assert init.calculate_gain(name) == pytest.approx(torch.nn.init.calculate_gain(name))
    assert init.calculate_gain("leaky_relu", 0.3) == pytest.approx(torch.nn.init.calculate_gain("leaky_relu", 0.3))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: init.calculate_gain("swish"), "swish"),
        (lambda: init.xavier_uniform_(gg.zeros(3)), "at least 2 dimensions"),
        (lambda: init.kaiming_normal_(gg.zeros(3, 3), mode="fan"), "mode"),
    ],
)
def test_bad_input_is_named(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize("name", ["kaiming_uniform_", "kaiming_normal_", "xavier_uniform_", "xavier_normal_"])
def test_nothing_is_drawn_for_an_empty_tensor(name: str) -> None:
    assert getattr(init, name)(gg.empty(0, 0)).shape == (0, 0)
    assert gg.nn.Linear(0, 2)(gg.zeros(3, 0)).shape == (3, 2)


@pytest.mark.parametrize("dtype", [gg.float32, gg.float64, gg.float16])
@pytest.mark.parametrize("shape", [(), (3,), (70_001,), (300, 333), (0, 4)])
@pytest.mark.parametrize("across", [False, True])
def test_numbers_drawn_in_place_are_those_of_new_arrays(dtype: Any, shape: tuple[int, ...], across: bool) -> None:
    """NumPy's generator is the oracle; what is not contiguous, or a half, takes the way over a new array."""
    kind = np.float64 if dtype == gg.float64 else np.float32 if dtype == gg.float32 else None
    rng = np.random.Generator(type(gg.Generator().manual_seed(5).rng.bit_generator)())
    generator = gg.Generator().manual_seed(5)
    rng.bit_generator.state = generator.rng.bit_generator.state
    x = (
        gg.empty(*shape[::-1], dtype=dtype).permute(*range(len(shape))[::-1])
        if across
        else gg.empty(*shape, dtype=dtype)
    )

    def drawn(draw: Any) -> Any:
        return draw(shape, dtype=kind or np.float64).astype(x.numpy().dtype)

    for _ in range(2):
        init.normal_(x, 0.5, 0.02, generator=generator)
        np.testing.assert_array_equal(x.numpy(), 0.5 + 0.02 * drawn(rng.standard_normal))
        init.uniform_(x, -0.3, 0.7, generator=generator)
        np.testing.assert_array_equal(x.numpy(), -0.3 + 1.0 * drawn(rng.random))


def test_first_weights_take_no_memory_beside_their_own() -> None:
    """By tracemalloc; new arrays would take three times that of the weight."""
    layer = gg.nn.Linear(1000, 1000)
    tracemalloc.start()
    layer.reset_parameters()
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 0.1 * layer.weight.numel() * 4
