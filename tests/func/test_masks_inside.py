"""Writes through masks whose numbers are unknown so far, and `as_strided` under vmap, against eager PyTorch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import glassgrad as gg
from glassgrad import errors, func
from tests.func.test_views_inside import WAYS, X, eagerly
from tests.ops.against_torch import torch


def numbers(lib: Any, x: Any) -> Any:
    y = x * 2
    y[y > 3] = 0.5
    y[..., x[0] > 0.5] = 7.0
    whole = (x * 5).detach().to(lib.int64)
    whole[whole > 6] = -1
    return (y**2).sum() + (whole * x).sum()


def tensors(lib: Any, x: Any) -> Any:
    y = x * 2
    y[x[:, 0] > 1] = x[0] * 3
    y[:, x[1] > 1.4] = x[:, :1]
    y[1, x[2] > 2.2] = x[0, 0]
    z = y.reshape(2, 3, 2)
    z[y.reshape(2, 3, 2)[:, :, 0] > 2, 1] = x.sum()
    y.t()[x.t() > 2.3] = x[0].max()
    return (y**2).sum()


def elements_in_order(lib: Any, x: Any) -> Any:
    y = (x * 2).masked_scatter(x > 1, x.t() ** 2)
    y.masked_scatter_(x[0] > 0.8, lib.cat([x, x * 3]))
    return (y * y * x).sum()


PROGRAMS = [numbers, tensors, elements_in_order]


@pytest.mark.parametrize("way", [way for way in WAYS if way != "vmap of columns"])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_loss_and_gradient_are_pytorchs(program: Any, way: str) -> None:
    expected = eagerly(program, torch)
    for found, wanted in zip(WAYS[way](program), expected, strict=True):
        np.testing.assert_allclose(found.numpy(), wanted.numpy(), rtol=1e-12)


def test_a_function_writes_through_a_mask_too() -> None:
    def f(x: Any) -> Any:
        return gg.at_set(x, (slice(1, None), x[1] > 1.5), x[0, 0])

    x = gg.tensor(X)
    expected = X.copy()
    expected[1:, X[1] > 1.5] = X[0, 0]
    np.testing.assert_array_equal(f(x).numpy(), expected)
    np.testing.assert_array_equal(gg.compile(f, backend="numpy", strict=True)(x).numpy(), expected)
    np.testing.assert_array_equal(func.vmap(f)(x[None]).numpy()[0], expected)


@pytest.mark.parametrize(
    "write",
    [
        lambda x: gg.at_set(x, x > 1, x[x > 1]),  # what is read has a shape that nobody knows
        lambda x: gg.at_set(x, x > 1, gg.ones(5)),  # an element for each that is selected
        lambda x: gg.at_set(x, x[0] > 1, 0.0),  # a mask of 4 for an axis of 3
        lambda x: gg.at_set(x, x[:, 0] > 1, gg.ones(3)),  # a value of 3 for rows of 4
    ],
)
def test_what_depends_on_the_numbers_is_refused(write: Any) -> None:
    with pytest.raises(errors.GlassgradError, match=r"no single value|cannot be broadcast"):
        func.vmap(write)(gg.tensor(X)[None])


def test_too_few_elements_are_an_error_wherever_they_are_counted() -> None:
    def f(x: Any) -> Any:
        return x.masked_scatter(x > 1, x[0, :2])

    x = gg.tensor(X)
    for call in (f, gg.compile(f, backend="numpy"), lambda x: func.vmap(f)(x[None])):
        with pytest.raises(errors.GlassgradError, match=r"at least 8 elements|out of bounds"):
            call(x)


def windows(lib: Any, x: Any) -> Any:
    y = x * 2
    view = lib.as_strided(y, (3, 2, 2), (2, 3, 1))
    y.mul_(x)
    return (view * lib.as_strided(x * 3, (2, 2), (0, 5), 1)).sum()


@pytest.mark.parametrize("way", ["eager", "vmap"])
def test_any_strides_of_each_example(way: str) -> None:
    expected = eagerly(windows, torch)
    for found, wanted in zip(WAYS[way](windows), expected, strict=True):
        np.testing.assert_allclose(found.numpy(), wanted.numpy(), rtol=1e-12)


@pytest.mark.parametrize("f", [lambda x: gg.as_strided(x.t(), (2,), (1,)), lambda x: gg.as_strided(x, (13,), (1,))])
def test_strides_of_an_example_that_lies_otherwise_are_refused(f: Any) -> None:
    with pytest.raises(errors.GlassgradError, match=r"no single value|would be 12"):
        func.vmap(f)(gg.tensor(X)[None])
