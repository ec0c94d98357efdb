"""Convolution and pooling over three dimensions, adaptive maxima and unpooling, against PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import glassgrad as gg
from glassgrad import errors
from tests.ops.against_torch import compare, real, torch

F, TF = gg.nn.functional, torch.nn.functional


def whole(*shape: int, seed: int = 0) -> np.ndarray[Any, Any]:
    """Few different numbers, so that many are equal."""
    return np.random.default_rng([seed, *shape]).integers(0, 3, shape).astype(np.float64)


@pytest.mark.filterwarnings("ignore:Using padding='same'")
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"stride": 2, "padding": 1},
        {"dilation": (2, 1, 2), "padding": (2, 0, 1)},
        {"groups": 2, "stride": (1, 2, 3)},
        {"padding": "same"},
        {"padding": "valid", "stride": (3, 1, 1)},
    ],
    ids=str,
)
def test_convolution(options: dict[str, Any]) -> None:
    weight = real(4, 4 // options.get("groups", 1), 3, 2, 3)
    compare(
        lambda x, w, b: F.conv3d(x, w, b, **options),
        lambda x, w, b: TF.conv3d(x, w, b, **options),
        real(2, 4, 6, 5, 7),
        weight,
        real(4),
    )


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"stride": 2, "padding": 1},
        {"stride": (3, 2, 2), "padding": (1, 0, 1), "output_padding": (2, 1, 0)},
        {"dilation": 2, "stride": (1, 2, 3)},
        {"groups": 2, "stride": 3, "output_padding": 2},
        {"stride": 3, "padding": 0, "output_padding": (2, 0, 1), "dilation": (3, 1, 2)},
    ],
    ids=str,
)
def test_transposed_convolution(options: dict[str, Any]) -> None:
    def call(lib: Any, *given: Any) -> Any:
        return lib.conv_transpose3d(*given, **options)

    inputs = real(2, 4, 3, 2, 3), real(4, 2, 2, 3, 2), real(2 * options.get("groups", 1))
    compare(lambda *given: call(F, *given), lambda *given: call(TF, *given), *inputs)


VOLUMES = {"real": real(2, 3, 5, 6, 7), "ties": whole(2, 3, 5, 6, 7), "alone": whole(3, 6, 4, 5)}


@pytest.mark.parametrize("x", VOLUMES.values(), ids=VOLUMES)
@pytest.mark.parametrize(
    "options",
    [
        {"kernel_size": 2},
        {"kernel_size": 3, "stride": 2, "padding": 1},
        {"kernel_size": (2, 3, 1), "stride": (1, 2, 3)},
        {"kernel_size": 2, "dilation": (1, 2, 3), "stride": 1},
        {"kernel_size": 3, "stride": 2, "ceil_mode": True},
    ],
    ids=str,
)
def test_maxima_their_places_and_the_way_back(x: Any, options: dict[str, Any]) -> None:
    compare(lambda t: F.max_pool3d(t, **options), lambda t: TF.max_pool3d(t, **options), x)
    y, places = F.max_pool3d(gg.tensor(x), **options, return_indices=True)
    expected, expected_places = TF.max_pool3d(torch.tensor(x), **options, return_indices=True)
    np.testing.assert_array_equal(places.numpy(), expected_places.numpy())
    if options == {"kernel_size": 2}:
        back = F.max_unpool3d(y, places, 2, output_size=x.shape[-3:])
        wanted = TF.max_unpool3d(expected, expected_places, 2, output_size=x.shape[-3:])
        np.testing.assert_array_equal(back.numpy(), wanted.numpy())


@pytest.mark.parametrize(
    "options",
    [
        {"kernel_size": 2},
        {"kernel_size": 3, "stride": 2, "padding": 1},
        {"kernel_size": (2, 3, 1), "ceil_mode": True},
        {"kernel_size": 3, "padding": 1, "count_include_pad": False},
        {"kernel_size": 2, "divisor_override": 5},
        {"kernel_size": 3, "stride": 2, "padding": 1, "ceil_mode": True, "count_include_pad": False},
    ],
    ids=str,
)
def test_means(options: dict[str, Any]) -> None:
    compare(lambda t: F.avg_pool3d(t, **options), lambda t: TF.avg_pool3d(t, **options), real(2, 3, 5, 6, 4))


@pytest.mark.parametrize("draw", [real, whole])
@pytest.mark.parametrize(
    ("dims", "shape", "size"),
    [
        (1, (2, 3, 7), 3),
        (1, (3, 6), 2),
        (2, (2, 3, 5, 7), (3, 4)),
        (2, (3, 5, 6), (None, 4)),
        (2, (2, 3, 4, 6), 2),
        (2, (1, 2, 2, 3), (4, 5)),
        (3, (2, 2, 3, 5, 4), (2, 3, 3)),
        (3, (2, 4, 5, 3), 2),
    ],
)
def test_parts_of_about_equal_size(draw: Any, dims: int, shape: tuple[int, ...], size: Any) -> None:
    name = f"adaptive_max_pool{dims}d"
    ours, theirs = getattr(F, name), getattr(TF, name)
    compare(lambda t: ours(t, size), lambda t: theirs(t, size), draw(*shape))
    _, places = ours(gg.tensor(draw(*shape)), size, return_indices=True)
    wanted = theirs(torch.tensor(draw(*shape)), size, return_indices=True)[1]
    np.testing.assert_array_equal(places.numpy(), wanted.numpy())
    if dims == 3:
        compare(lambda t: F.adaptive_avg_pool3d(t, size), lambda t: TF.adaptive_avg_pool3d(t, size), draw(*shape))


COMPOSED: dict[str, Callable[..., Any]] = {
    "conv3d": lambda x, w: F.conv3d(x, w, padding=1).sin(),
    "conv_transpose3d": lambda x, w: F.conv_transpose3d(x, w, stride=2).sin(),
    "max_pool3d": lambda x, w: F.max_pool3d(x * x, 2) * w.sum(),
    "avg_pool3d": lambda x, w: F.avg_pool3d(x * x, 2) * w.sum(),
    "adaptive_max_pool3d": lambda x, w: F.adaptive_max_pool3d(x**3, 2) * w.sum(),
    "max_unpool2d": lambda x, w: F.max_unpool2d(*F.max_pool2d(x[0] ** 3, 2, return_indices=True), 2) * w.sum(),
}


@pytest.mark.parametrize("name", COMPOSED)
def test_second_order_vmap_and_compiled(name: str) -> None:
    function = COMPOSED[name]
    x, w = gg.tensor(real(1, 2, 2, 4, 4), requires_grad=True), gg.tensor(real(2, 2, 2, 2, 2), requires_grad=True)
    assert gg.verify.gradcheck(lambda a, b: (gg.func.grad(lambda c: function(c, b).sum())(a) ** 2).sum(), (x, w))
    many = gg.tensor(real(3, 1, 2, 2, 4, 4))
    np.testing.assert_allclose(
        gg.vmap(lambda one: function(one, w.detach()))(many).numpy(),
        np.stack([function(one, w.detach()).numpy() for one in many]),
        rtol=1e-12,
    )

    def step(a: Any, b: Any) -> Any:
        return gg.func.grad(lambda c, d: (function(c, d) ** 2).sum(), argnums=(0, 1))(a, b)

    for found, expected in zip(gg.compile(step)(x.detach(), w.detach()), step(x.detach(), w.detach()), strict=True):
        np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda x: F.conv3d(x[0, 0], gg.ones(1, 1, 1, 1, 1)), "depth, height, width"),
        (lambda x: F.conv3d(x, gg.ones(1, 3, 2, 2, 2)), "3 channels"),
        (lambda x: F.conv3d(x, gg.ones(1, 2, 2, 2)), "5 dimensions"),
        (lambda x: F.conv3d(x, gg.ones(1, 2, 5, 2, 2)), "fit into 4 slices"),
        (lambda x: F.conv3d(x, gg.ones(1, 2, 2, 2, 2), stride=2, padding="same"), "a stride of 1"),
        (lambda x: F.conv_transpose3d(x, gg.ones(2, 2, 2, 2, 2), output_padding=1), "less than the stride"),
        (lambda x: F.max_pool3d(x, 2, padding=2), "at most half"),
        (lambda x: F.max_pool3d(x, 5), "window"),
        (lambda x: F.adaptive_max_pool2d(x, 2), "height, width"),
        (lambda x: F.adaptive_max_pool3d(x, (1, 2)), "3 of them"),
        (lambda x: F.max_unpool2d(x[0], gg.ones(2), 2), "the shape"),
        (lambda x: F.max_unpool2d(x[0], gg.full((2, 4, 4, 4), 64), 2), "64"),
        (lambda x: F.max_unpool2d(x[0], gg.zeros(2, 4, 4, 4, dtype=gg.int64), 2, output_size=(11, 8)), "away from"),
    ],
)
def test_what_cannot_be_is_named(call: Callable[[Any], Any], said: str) -> None:
    with pytest.raises(errors.GlassgradError, match=said):
        call(gg.tensor(real(1, 2, 4, 4, 4)))


@pytest.mark.parametrize(
    "options", [{}, {"padding": 1}, {"padding": 1, "count_include_pad": False}, {"divisor_override": 3}]
)
def test_averages_of_whole_numbers(options: dict[str, Any]) -> None:
    x = np.random.default_rng(0).integers(-9, 9, (2, 3, 4, 4, 6))
    found = F.avg_pool3d(gg.tensor(x), 2, **options)
    assert found.dtype == np.int64
    np.testing.assert_array_equal(found.numpy(), TF.avg_pool3d(torch.tensor(x), 2, **options).numpy())


def test_averages_of_bytes_are_refused() -> None:
    x = gg.ones(1, 1, 4, 4, 4, dtype=gg.uint8)
    with pytest.raises(errors.GlassgradError, match="floating-point or int64"):
        F.avg_pool3d(x, 2)
    for size in (2, 3):
        with pytest.raises(errors.GlassgradError, match="floating-point"):
            F.adaptive_avg_pool3d(x, size)
