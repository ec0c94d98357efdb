"""Windows under vmap, image and weight batched or not, against a loop; and batches without an example."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import glassgrad as gg
from glassgrad import func
from glassgrad.nn import functional as F

RNG = np.random.default_rng(5)
IMAGES = gg.tensor(RNG.normal(size=(2, 2, 4, 6, 5)))
OPTIONS = [{"groups": 1}, {"groups": 2, "stride": (2, 1), "padding": (1, 2), "dilation": (1, 2)}]


@pytest.mark.parametrize("dims", [(0, 0), (0, None), (None, 0)])
@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("name", ["conv2d", "conv_transpose2d"])
def test_derivatives_are_those_of_a_loop(name: str, options: dict[str, Any], dims: Any) -> None:
    groups = options["groups"]
    shape = (6, 4 // groups, 3, 2) if name == "conv2d" else (4, 6 // groups, 3, 2)
    weights = gg.tensor(RNG.normal(size=(2, *shape)))

    def loss(x: Any, w: Any) -> Any:
        return (getattr(F, name)(x, w, **options) ** 3).sum()

    def derivatives(x: Any, w: Any) -> Any:
        gradient = func.grad(loss, (0, 1))
        return *gradient(x, w), *func.jvp(gradient, (x, w), (x, w))[1]

    given = [array if dim == 0 else array[0] for array, dim in zip((IMAGES, weights), dims, strict=True)]
    found = func.vmap(derivatives, dims)(*given)
    for number in range(2):
        one = [array if dim is None else array[number] for array, dim in zip(given, dims, strict=True)]
        for part, expected in zip(found, derivatives(*one), strict=True):
            np.testing.assert_allclose(part[number].numpy(), expected.numpy(), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(
    ("f", "shape"),
    [
        (lambda x: gg.sort(x).values, (4,)),
        (lambda x: gg.linalg.svd(x.reshape(2, 2))[0], (2, 2)),
        (lambda x: gg.linalg.lu(x.reshape(2, 2))[1], (2, 2)),
        (lambda x: gg.linalg.eigvals(x.reshape(2, 2)), (2,)),
        (lambda x: gg.median(x, 0).values, ()),
        (lambda x: gg.logcumsumexp(x, 0), (4,)),
        (lambda x: F.conv2d(x.reshape(1, 1, 2, 2), gg.ones(1, 1, 1, 1).double()), (1, 1, 2, 2)),
    ],
)
def test_a_batch_of_nothing_has_the_shapes_of_one_of_something(f: Any, shape: tuple[int, ...]) -> None:
    x = gg.tensor(RNG.normal(size=(3, 4)))
    nothing, something = func.vmap(f)(x[:0]), func.vmap(f)(x)
    assert nothing.shape == (0, *shape)
    assert something.shape == (3, *shape)
    assert nothing.dtype == something.dtype
