"""Pools, columns and resizing below the public functions: borders, memory, leading axes, and the choice of code."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import glassgrad as gg
from glassgrad.nn import functional as F
from glassgrad.ops import resample
from glassgrad.ops.core import REGISTRY
from glassgrad.ops.kernels import native
from tests.ops.against_torch import real, torch

TF = torch.nn.functional

# --- maxima ---------------------------------------------------------------------------------------

WINDOWS = (
    {"kernel_size": 3, "stride": 2, "padding": 1},
    {"kernel_size": 2, "stride": 2, "padding": 1},
    {"kernel_size": (3, 2), "stride": 1, "padding": (1, 0), "dilation": (1, 2)},
    {"kernel_size": 2, "stride": 2, "ceil_mode": True},
    {"kernel_size": 3, "stride": 2, "padding": 1, "dilation": 2, "ceil_mode": True},
)


def all_of(x: Any, tangent: Any, weights: Any, options: dict[str, Any]) -> Any:
    """Return the maxima, their places, the cotangent of x and the tangent of the maxima."""
    y, places = F.max_pool2d(x, **options, return_indices=True)
    g = gg.func.vjp(lambda t: F.max_pool2d(t, **options), x)[1](weights)[0]
    return y, places, g, gg.func.jvp(lambda t: F.max_pool2d(t, **options), (x,), (tangent,))[1]


@pytest.mark.parametrize("backend", [None, "numpy", "llvm"])
@pytest.mark.parametrize("options", WINDOWS, ids=str)
def test_a_border_is_never_the_largest(options: dict[str, Any], backend: str | None) -> None:
    """Not even in a window of nothing but -inf, as which a border counts."""
    rng = np.random.default_rng(2)
    x = rng.choice([-np.inf, -1, 0, np.inf], p=[0.7, 0.1, 0.1, 0.1], size=(2, 3, 7, 9))
    theirs = torch.tensor(x, requires_grad=True)
    y, places = TF.max_pool2d(theirs, **options, return_indices=True)
    weights, tangent = rng.normal(size=y.shape), rng.normal(size=x.shape)
    (g,) = torch.autograd.grad(y, theirs, torch.tensor(weights))

    def step(*given: Any) -> Any:
        return all_of(*given, options)

    found = (gg.compile(step, backend=backend) if backend else step)(*map(gg.tensor, (x, tangent, weights)))
    moved = np.take_along_axis(tangent.reshape(2, 3, -1), places.numpy().reshape(2, 3, -1), axis=2).reshape(y.shape)
    for part, expected in zip(found, (y.detach(), places, g, moved), strict=True):
        np.testing.assert_allclose(part.numpy(), np.asarray(expected), rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize("dtype", [np.int8, np.int64])
def test_a_border_is_never_the_largest_of_integers(dtype: Any) -> None:
    x = np.full((1, 1, 4, 4), np.iinfo(dtype).min, dtype)
    x[0, 0, 3, 3] = 0
    y, places = F.max_pool2d(gg.tensor(x), 3, 2, 1, return_indices=True)
    assert y.dtype == dtype
    assert y.tolist() == [[[[x.min()] * 2, [x.min(), 0]]]]
    assert places.tolist() == [[[[0, 1], [4, 15]]]]


def test_the_first_nan_of_a_window_has_its_gradient_and_no_border() -> None:
    x = np.zeros((1, 1, 4, 4))
    x[0, 0, 0, 0] = x[0, 0, 0, 1] = x[0, 0, 3, 3] = math.nan
    leaf = gg.tensor(x, requires_grad=True)
    y = F.max_pool2d(leaf, 3, 2, 1)
    y.backward(gg.tensor([[[[1.0, 2.0], [3.0, 4.0]]]], dtype=gg.float64))
    expected = np.zeros((4, 4))
    expected[0, :2], expected[1, 0], expected[3, 3] = (1, 2), 3, 4  # without NaN, the first of equal elements
    np.testing.assert_array_equal(leaf.grad.numpy()[0, 0], expected)


@pytest.mark.parametrize("backend", [None, "numpy", "llvm"])
def test_nan_keeps_its_gradient_where_it_is(backend: str | None) -> None:
    x = real(2, 3, 6, 8)
    x[0, 1, 3, 2] = x[1, 2, 0, 7] = math.nan
    options = {"kernel_size": 2}
    tangent, weights = real(2, 3, 6, 8, seed=1), real(2, 3, 3, 4)

    def step(*given: Any) -> Any:
        return all_of(*given, options)

    found = (gg.compile(step, backend=backend) if backend else step)(*map(gg.tensor, (x, tangent, weights)))
    theirs = torch.tensor(x, requires_grad=True)
    y, places = TF.max_pool2d(theirs, **options, return_indices=True)
    np.testing.assert_array_equal(found[1].numpy(), places.numpy())
    np.testing.assert_array_equal(found[2].numpy(), torch.autograd.grad(y, theirs, torch.tensor(weights))[0].numpy())
    assert found[3][0, 1, 1, 1].item() == tangent[0, 1, 3, 2]


def test_volumes_of_the_lowest_have_places_inside() -> None:
    x = np.full((1, 2, 4, 4, 4), -np.inf)
    _, places = F.max_pool3d(gg.tensor(x), 3, 2, 1, return_indices=True)
    _, expected = TF.max_pool3d(torch.tensor(x), 3, 2, 1, return_indices=True)
    np.testing.assert_array_equal(places.numpy(), expected.numpy())


# --- memory and axes ------------------------------------------------------------------------------

PLAIN = {"kernel": (2, 3), "stride": (2, 1), "padding": ((1, 0), (0, 2)), "dilation": (1, 1), "ceil": False}


def pools(x: Any, **window: Any) -> list[Any]:
    """Return what every primitive of pooling makes of x."""
    y = REGISTRY["max_pool2d"](x, **window)
    return [
        y,
        REGISTRY["max_pool2d_index"](x, y, **window),
        REGISTRY["max_pool2d_scatter"](y * 2, x, y, **window),
        REGISTRY["max_pool2d_gather"](x * 3, x, y, **window),
        REGISTRY["sum_pool2d"](x, **window),
        REGISTRY["sum_spread2d"](y, size=x.shape[-2:], **window),
    ]


@pytest.mark.parametrize("front", [(), (3,), (2, 2, 3)])
def test_any_number_of_axes_lies_in_front_of_an_image(front: tuple[int, ...]) -> None:
    x = real(*front, 5, 6)
    for found, expected in zip(pools(x, **PLAIN), pools(x.reshape(1, -1, 5, 6), **PLAIN), strict=True):
        assert found.shape == (*front, *expected.shape[-2:])
        np.testing.assert_array_equal(found.reshape(expected.shape), expected)
    for name in ("max_pool2d", "sum_pool2d"):
        t = gg.tensor(x, requires_grad=True)
        y = REGISTRY[name](t, **PLAIN)
        assert REGISTRY[name].abstract(x, **PLAIN).shape == y.shape
        (y * y).sum().backward()
        again = gg.tensor(x.reshape(1, -1, 5, 6), requires_grad=True)
        (REGISTRY[name](again, **PLAIN) ** 2).sum().backward()
        np.testing.assert_allclose(t.grad.numpy().reshape(again.shape), again.grad.numpy(), rtol=1e-13)
    assert REGISTRY["sum_spread2d"].abstract(x, size=(7, 9), **PLAIN).shape == (*front, 7, 9)


@pytest.mark.parametrize("shape", [(2, 2, 5, 6), (2, 3, 1, 6), (2, 3, 5, 6), (3, 5, 6)])
@pytest.mark.parametrize("last", [False, True])
def test_channels_stay_innermost_where_they_were(shape: tuple[int, ...], last: bool) -> None:
    x = real(*shape)
    last = last and len(shape) == 4
    if last:
        x = np.ascontiguousarray(x.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2)
    window = {**PLAIN, "kernel": (1, 3), "stride": (1, 1), "padding": ((1, 0), (0, 2))}
    largest, _, scattered, _, total, spread = pools(x, **window)
    for y in (largest, scattered, total, spread):
        assert y.strides[1 if last else -1] == y.itemsize
        assert y.strides[-1 if last else -2] > y.itemsize


def test_a_window_of_one_element_is_a_copy() -> None:
    window = {**PLAIN, "kernel": (1, 1), "stride": (1, 1), "padding": ((0, 0), (0, 0))}
    x = real(1, 2, 3, 3)
    for y in pools(x, **window):
        assert not np.shares_memory(x, y)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: REGISTRY["sum_pool2d"](real(1, 1, 2, 9), **{**PLAIN, "kernel": (4, 3)}),
         "the window 4x3 is larger than the input 2x9 with its padding ((1, 0), (0, 2))"),
        (lambda: REGISTRY["im2col"](real(1, 1, 9, 2), **{**PLAIN, "kernel": (2, 5)}),
         "the window 2x5 is larger than the input 9x2 with its padding ((1, 0), (0, 2))"),
        (lambda: REGISTRY["col2im"](real(1, 7, 4), size=(3, 2), **PLAIN),
         "expected rows in multiples of 6 (the window) and 4 columns (its positions), given 7 and 4"),
        (lambda: REGISTRY["col2im"](real(1, 6, 5), size=(3, 2), **PLAIN),
         "expected rows in multiples of 6 (the window) and 4 columns (its positions), given 6 and 5"),
    ],
)  # fmt: skip  # a table
def test_windows_that_do_not_fit_are_described(call: Callable[[], Any], text: str) -> None:
    with pytest.raises(ValueError, match=re.escape(text) + "$"):
        call()


# --- resizing -------------------------------------------------------------------------------------


def weights_of(how: resample.Resizing) -> Any:
    """Return the matrix of a resizing, from one impulse after the other."""
    return np.stack([REGISTRY["resample"](row, axis=0, how=how) for row in np.eye(how.before)], axis=1)


@pytest.mark.parametrize("mode", ["nearest", "nearest-exact", "linear", "cubic"])
def test_resizing_is_one_matrix_by_every_way(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """By repeating, by a product and by neighbours; for all axes, and back by the transpose."""
    sizes = ((4, 8, 1 / 2), (4, 8, 1 / 2.05), (4, 4, 1.1), (6, 3, 2.0), (5, 7, 5 / 7), (3, 9, 1 / 3), (1, 3, 1 / 3))
    for (before, after, scale), dense in itertools.product(sizes, (128, 0)):
        monkeypatch.setattr(resample, "DENSE", dense)
        how = resample.Resizing(mode, before, after, scale)
        matrix = np.zeros((after, before))
        for index, weight in resample.neighbours(how):
            np.add.at(matrix, (np.arange(after), index), 1.0 if weight is None else weight)
        np.testing.assert_allclose(weights_of(how), matrix, rtol=1e-13, atol=1e-15)
        for axis in range(3):
            shape = [2, 3, 2]
            shape[axis] = before
            x = real(*shape)
            expected = np.moveaxis(np.tensordot(matrix, x, (1, axis)), 0, axis)
            np.testing.assert_allclose(REGISTRY["resample"](x, axis=axis, how=how), expected, rtol=1e-12, atol=1e-13)
            shape[axis] = after
            g = real(*shape)
            back = np.moveaxis(np.tensordot(matrix.T, g, (1, axis)), 0, axis)
            np.testing.assert_allclose(REGISTRY["resample_back"](g, axis=axis, how=how), back, rtol=1e-12, atol=1e-13)


def test_short_axes_are_resized_by_a_product_and_long_ones_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    real_matrix = resample.matrix_of
    monkeypatch.setattr(resample, "matrix_of", lambda how, dtype: asked.append(how) or real_matrix(how, dtype))
    for before, after, wanted in ((128, 128, 1), (128, 64, 1), (129, 64, 0), (64, 129, 0)):
        asked.clear()
        REGISTRY["resample"](real(before), axis=0, how=resample.Resizing("linear", before, after, before / after))
        assert len(asked) == wanted


# --- convolution ----------------------------------------------------------------------------------

# Images, channels, outputs, groups, size, kernel, stride, padding, dilation; padding may cut.
CONVOLUTIONS = {
    "cut on three sides": (2, 3, 4, 1, (7, 6), (3, 2), (1, 1), ((-1, -2), (2, -1)), (1, 1)),
    "cut with a stride": (2, 4, 6, 2, (9, 8), (2, 3), (2, 1), ((-2, 1), (-1, -1)), (1, 1)),
    "many small images": (9, 3, 6, 3, (3, 3), (2, 2), (1, 2), ((0, 1), (0, 1)), (1, 1)),
    "rows of windows": (3, 16, 5, 1, (12, 10), (3, 2), (1, 1), ((1, 1), (0, 1)), (2, 1)),
    "rows of windows, one image": (1, 8, 3, 1, (11, 9), (2, 2), (1, 1), ((0, 0), (0, 0)), (3, 2)),
    "one channel": (2, 1, 4, 1, (5, 6), (3, 3), (1, 1), ((1, 1), (1, 1)), (1, 1)),
}


def channels_last(x: Any) -> Any:
    return np.ascontiguousarray(x.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2)


@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_convolutions_as_arrays_lie(name: str) -> None:
    n, c, o, groups, size, kernel, stride, padding, dilation = CONVOLUTIONS[name]
    settings = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
    x, w = real(n, c, *size), real(o, c // groups, *kernel)
    tx, tw = (torch.tensor(one, requires_grad=True) for one in (x, w))
    y = TF.conv2d(TF.pad(tx, (*padding[1], *padding[0])), tw, stride=stride, dilation=dilation, groups=groups)
    g = real(*y.shape, seed=4)
    gx, gw = torch.autograd.grad(y, (tx, tw), torch.tensor(g))
    for lie, other in itertools.product((np.asarray, channels_last), repeat=2):
        for found, expected in (
            (REGISTRY["conv2d"](lie(x), other(w), **settings), y.detach()),
            (REGISTRY["conv2d_input"](lie(g), other(w), size=size, **settings), gx),
            (REGISTRY["conv2d_weight"](lie(x), other(g), kernel=kernel, **settings), gw),
        ):
            np.testing.assert_allclose(found, expected.numpy(), rtol=1e-10, atol=1e-12, strict=True)


@pytest.mark.parametrize("front", [(2, 2), (3,), (2, 2, 2)], ids=str)
@pytest.mark.parametrize("name", ["max_pool2d", "max_pool2d_scatter", "conv2d", "conv2d_input", "conv2d_weight"])
def test_what_native_code_is_asked_for_and_returns(
    name: str, front: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its result is the result; where it has none, NumPy computes."""
    if name.startswith("conv"):
        n, front = len(front), (len(front) - 1, 4)
        settings = {**SETTINGS, "stride": (2, 1), "groups": 2}  # with a stride no other convolution is asked for
        x, w = real(n - 1 or 1, 4, 6, 5), real(6, 2, 3, 2)
        y = REGISTRY["conv2d"](x, w, **settings)
        args, params = {
            "conv2d": ((x, w), settings),
            "conv2d_input": ((y, w), {**settings, "size": (6, 5)}),
            "conv2d_weight": ((x, y), {**settings, "kernel": (3, 2)}),
        }[name]
    else:
        x = real(*front, 5, 6)
        y, params = REGISTRY["max_pool2d"](x, **PLAIN), PLAIN
        args = (x,) if name == "max_pool2d" else (y * 2, x, y)
    expected = REGISTRY[name](*args, **params)
    asked: list[Any] = []
    answers = [None, np.zeros(1)]

    def result(op: str, arrays: Any, shape: Any, options: dict[str, Any]) -> Any:
        asked.append((op, len(arrays), tuple(shape), options))
        return answers[len(asked) - 1]

    monkeypatch.setattr(native, "result", result)
    monkeypatch.setattr(native, "kernels", native.Kernels(least_work=1))
    np.testing.assert_array_equal(REGISTRY[name](*args, **params), expected)
    assert REGISTRY[name](*args, **params) is answers[1]
    assert asked == [(name, len(args), expected.shape, params)] * 2


def test_pools_ask_for_native_code_from_some_work_on(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[float] = []
    monkeypatch.setattr(native, "pays", lambda work: bool(asked.append(work)))
    x = real(1, 2, 10, 10)
    y = REGISTRY["max_pool2d"](x, **PLAIN)
    REGISTRY["max_pool2d_scatter"](y, x, y, **PLAIN)
    assert asked == pytest.approx([native.WINDOWS * 0.7 * x.size, native.WINDOWS * 5 * x.size])


SETTINGS = {"stride": (1, 1), "padding": ((0, 0), (0, 0)), "dilation": (1, 1)}


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda how: how("conv2d")(real(1, 3, 5, 5), real(2, 4, 3, 3), groups=1, **SETTINGS),
         "the input has 3 channels, the weight of shape (2, 4, 3, 3) expects 4"),
        (lambda how: how("conv2d")(real(1, 3, 5, 5), real(6, 2, 3, 3), groups=3, **SETTINGS),
         "the input has 3 channels, the weight of shape (6, 2, 3, 3) expects 2 * 3 groups = 6"),
        (lambda how: how("conv2d")(real(1, 4, 5, 5), real(3, 2, 3, 3), groups=2, **SETTINGS),
         "3 output channels cannot be cut into 2 groups"),
    ],
)  # fmt: skip  # a table
def test_channels_that_do_not_fit_are_described_also_in_a_trace(call: Callable[..., Any], text: str) -> None:
    for how in (REGISTRY.__getitem__, lambda name: REGISTRY[name].abstract):
        with pytest.raises(ValueError, match=re.escape(text) + "$"):
            call(how)


@pytest.mark.parametrize("shape", [(1, 3, 3, 2), (1, 2, 3, 3), (1, 2, 4, 2)])
def test_a_cotangent_of_another_size_is_described(shape: tuple[int, ...]) -> None:
    text = f"expected an input with 2 channels of size (3, 2), given {shape[1]} of {shape[2:]}"
    with pytest.raises(ValueError, match=re.escape(text) + "$"):
        REGISTRY["conv2d_input"](real(*shape), real(2, 5, 3, 4), size=(5, 5), groups=1, **SETTINGS)
