"""Reading images between their pixels, and tensors with explicit strides, against PyTorch."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import glassgrad as gg
from glassgrad import errors
from tests.ops.against_torch import compare, real, torch

F, TF = gg.nn.functional, torch.nn.functional
BORDERS = ("zeros", "border", "reflection")
SHAPES = {2: ((2, 3, 4, 5), (2, 6, 7, 2)), 3: ((2, 2, 3, 4, 5), (2, 2, 3, 4, 3))}


@pytest.mark.parametrize("corners", [True, False])
@pytest.mark.parametrize("border", BORDERS)
@pytest.mark.parametrize(
    ("dims", "mode"),
    [
        (2, "bilinear"),
        (2, "nearest"),
        (2, "bicubic"),
        (3, "bilinear"),
        (3, "nearest"),
    ],
)
def test_places_in_and_around_an_image(dims: int, mode: str, border: str, corners: bool) -> None:
    image, grid = (real(*shape) for shape in SHAPES[dims])
    options = {"mode": mode, "padding_mode": border, "align_corners": corners}
    if mode == "nearest":  # PyTorch's gradient of the places is 0 there; here there is none
        places = grid * 1.5
        compare(
            lambda x: F.grid_sample(x, gg.tensor(places), **options),
            lambda x: TF.grid_sample(x, torch.tensor(places), **options),
            image,
        )
        return
    for scale in (0.6, 3.0):
        compare(
            lambda x, g: F.grid_sample(x, g, **options),
            lambda x, g: TF.grid_sample(x, g, **options),
            image,
            grid * scale,
            rtol=1e-8,
        )


@pytest.mark.parametrize("corners", [True, False])
@pytest.mark.parametrize("border", BORDERS)
def test_places_exactly_at_pixels_edges_and_in_images_of_one_pixel(border: str, corners: bool) -> None:
    ends = np.array(list(itertools.product([-2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 3.0], repeat=2)))[None, None]
    options = {"padding_mode": border, "align_corners": corners}
    for shape in ((1, 1, 5, 4), (1, 2, 1, 1), (1, 1, 1, 3)):
        compare(
            lambda x: F.grid_sample(x, gg.tensor(ends), **options),
            lambda x: TF.grid_sample(x, torch.tensor(ends), **options),
            real(*shape),
        )


@pytest.mark.filterwarnings("ignore:Since version 1.3.0")
@pytest.mark.parametrize("corners", [True, False])
@pytest.mark.parametrize("size", [(2, 3, 4, 5), (2, 1, 1, 3), (2, 3, 2, 3, 4)])
def test_affine_maps(size: tuple[int, ...], corners: bool) -> None:
    theta = real(2, len(size) - 2, len(size) - 1)
    compare(lambda t: F.affine_grid(t, size, corners), lambda t: TF.affine_grid(t, size, corners), theta)


def test_a_transformer_of_images_second_order_vmap_and_compiled() -> None:
    def loss(theta: Any, image: Any) -> Any:
        return (F.grid_sample(image, F.affine_grid(theta, image.shape, False), align_corners=False) ** 3).sum()

    theta, image = real(2, 2, 3) * 0.3, real(2, 1, 4, 5)
    given = gg.tensor(theta, requires_grad=True), gg.tensor(image, requires_grad=True)
    assert gg.verify.gradcheck(loss, given)
    assert gg.verify.gradcheck(lambda t, x: (gg.func.grad(loss)(t, x) ** 2).sum(), given)
    x = gg.tensor(image)
    many = gg.vmap(lambda t: loss(t, x))(gg.tensor(np.stack([theta, 2 * theta])))
    np.testing.assert_allclose(many.numpy(), [loss(gg.tensor(t), x).item() for t in (theta, 2 * theta)])
    step = gg.func.grad(loss, argnums=(0, 1))
    for found, expected in zip(gg.compile(step)(gg.tensor(theta), x), step(gg.tensor(theta), x), strict=True):
        np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize(
    ("shape", "size", "stride", "offset"),
    [
        ((12,), (3, 4), (1, 1), None),
        ((3, 4), (2, 2), (5, 2), 1),
        ((4, 4), (4,), (5,), None),
        ((6,), (), (), 3),
        ((6,), (3, 0), (1, 9), None),
        ((5,), (3, 3), (0, 2), 0),
    ],
)
def test_strides_of_ones_own(shape: Any, size: Any, stride: Any, offset: int | None) -> None:
    compare(
        lambda x: gg.as_strided(x, size, stride, offset),
        lambda x: torch.as_strided(x, size, stride, offset or 0),
        real(*shape),
    )


def test_a_part_of_a_tensor_begins_at_itself() -> None:
    compare(lambda x: x[2:].as_strided((2, 2), (1, 2)), lambda x: x[2:].as_strided((2, 2), (1, 2)), real(8))


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda x: gg.as_strided(x.mT, (2,), (1,)), "contiguous"),
        (lambda x: gg.as_strided(x, (13,), (1,)), "would be 12"),
        (lambda x: gg.as_strided(x, (2,), (-1,)), "none below 0"),
        (lambda x: gg.as_strided(x, (2,), (1, 1)), "each of 1"),
        (lambda x: gg.as_strided(x[1:], (2,), (1,), 1), "larger tensor"),
        (lambda x: gg.as_strided(x, (2, 2), (1, 1)).add_(1), "read-only"),
        (lambda x: F.grid_sample(x, x), "images"),
        (lambda x: F.grid_sample(x[None, None], x[None, :, :, None]), "H, W, 2"),
        (lambda x: F.grid_sample(x[None, None], gg.zeros(1, 2, 2, 2)), "float64"),
        (lambda x: F.grid_sample(x[None, None], gg.zeros(1, 2, 2, 2, dtype=gg.float64), "cubic"), "'bicubic'"),
        (
            lambda x: F.grid_sample(x[None, None], gg.zeros(1, 2, 2, 2, dtype=gg.float64), padding_mode="edge"),
            "'border'",
        ),
        (lambda x: F.affine_grid(x[None], (1, 1, 3, 3)), "2, 3"),
    ],
)
def test_what_cannot_be_is_named(call: Callable[[Any], Any], said: str) -> None:
    with pytest.raises(errors.GlassgradError, match=said):
        call(gg.tensor(real(3, 4)))
