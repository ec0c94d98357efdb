"""Convolution, pooling, unfolding and resizing against PyTorch, over grids of their options.

That each primitive's transposes are right, in both modes, to second order and under vmap, follows from the
entries' samples in the tests of the registry; here are the public functions with their options.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import glassgrad as gg
from glassgrad import errors
from glassgrad.nn.functional import conv as F
from glassgrad.ops.kernels import parallel, windows
from tests.ops.against_torch import compare, real

torch = pytest.importorskip("torch", reason="PyTorch is the oracle")
TF = torch.nn.functional


def agree(name: str, *inputs: Any, **options: Any) -> None:
    compare(
        lambda *xs: getattr(F, name)(*xs, **options), lambda *xs: getattr(TF, name)(*xs, **options), *inputs, rtol=1e-8
    )


# --- convolution ----------------------------------------------------------------------------------

# Input channels, output channels, groups: one channel, several, groups, depthwise with one and two outputs each.
CHANNELS = ((1, 2, 1), (4, 6, 1), (4, 6, 2), (3, 3, 3), (2, 4, 2), (2, 16, 1))


@pytest.mark.parametrize(("channels", "kernel"), list(itertools.product(CHANNELS, ((1, 1), (3, 2), (2, 3)))))
def test_conv2d(channels: tuple[int, int, int], kernel: tuple[int, int]) -> None:
    c, o, groups = channels
    x, w, bias = real(2, c, 7, 6), real(o, c // groups, *kernel), real(o)
    for stride, padding, dilation in itertools.product(((1, 1), (2, 3), (3, 1)), ((0, 0), (1, 2)), ((1, 1), (2, 1))):
        agree("conv2d", x, w, bias, stride=stride, padding=padding, dilation=dilation, groups=groups)


@pytest.mark.parametrize("padding", ["same", "valid", 3])
@pytest.mark.filterwarnings("ignore:Using padding='same' with even kernel")
def test_conv_padding_and_missing_batch(padding: Any) -> None:
    for dilation in (1, 2):
        agree("conv2d", real(3, 7, 6), real(2, 3, 3, 2), padding=padding, dilation=dilation)
        agree("conv1d", real(2, 3, 9), real(4, 3, 4), real(4), padding=padding, dilation=dilation)
        agree("conv1d", real(3, 9), real(3, 1, 3), padding=padding, dilation=dilation, groups=3)


@pytest.mark.parametrize(
    ("stride", "padding", "extra", "dilation", "groups"),
    [p for p in itertools.product((1, 2, 3), (0, 1), (0, 1), (1, 2), (1, 3)) if p[2] < max(p[0], p[3])],
)
def test_conv_transpose(stride: int, padding: int, extra: int, dilation: int, groups: int) -> None:
    options = {"stride": stride, "padding": padding, "output_padding": extra, "dilation": dilation, "groups": groups}
    agree("conv_transpose2d", real(2, 3, 5, 4), real(3, 2, 3, 2), real(2 * groups), **options)
    agree("conv_transpose1d", real(2, 3, 6), real(3, 2, 3), **options)


@pytest.mark.parametrize("shape", [(5, 3, 9, 8), (5, 20, 9, 8)])
@pytest.mark.parametrize(("o", "groups", "stride"), [(4, 1, 1), (4, 1, 2), (40, 1, 1), (20, 20, 1), (20, 5, 2)])
def test_work_is_done_in_blocks(
    shape: tuple[int, ...], o: int, groups: int, stride: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Several blocks, the last one smaller, give what one gives."""
    if shape[1] % groups:
        pytest.skip("channels do not divide into these groups")
    x, w = real(*shape), real(o, shape[1] // groups, 3, 3)
    expected = TF.conv2d(torch.tensor(x), torch.tensor(w), stride=stride, groups=groups)
    per_sample = math.prod(expected.shape[2:]) * 9 * shape[1]
    monkeypatch.setattr(windows, "BLOCK", 2 * per_sample)
    assert len(windows.blocks(0, 5, per_sample)) == 3
    agree("conv2d", x, w, stride=stride, groups=groups)


def test_layout_of_the_input_does_not_matter() -> None:
    x, w = real(2, 3, 6, 5), real(4, 3, 3, 3)
    expected = F.conv2d(gg.tensor(x), gg.tensor(w), padding=1).numpy()
    for layout in (
        np.asfortranarray(x),
        np.ascontiguousarray(x.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2),
        x[:, ::-1][:, ::-1],
    ):
        np.testing.assert_allclose(
            F.conv2d(gg.from_numpy(layout), gg.tensor(w), padding=1).numpy(), expected, rtol=1e-12
        )


def test_empty_batches() -> None:
    x = gg.zeros(0, 2, 5, 5, requires_grad=True)
    w = gg.ones(3, 2, 3, 3, requires_grad=True)
    y = F.conv2d(x, w)
    assert y.shape == (0, 3, 3, 3)
    y.sum().backward()
    assert x.grad.shape == (0, 2, 5, 5)
    assert not w.grad.numpy().any()
    assert F.max_pool2d(x, 2).shape == (0, 2, 2, 2)


def test_gradients_of_single_examples_by_vmap() -> None:
    """Weights that differ between examples become groups."""
    from glassgrad.func import grad, vmap

    x, w = real(4, 2, 5, 5), real(3, 2, 3, 3)

    def loss(weight: Any, image: Any) -> Any:
        return (F.conv2d(image.unsqueeze(0), weight, padding=1) ** 2).sum()

    found = vmap(grad(loss), in_dims=(None, 0))(gg.tensor(w), gg.tensor(x)).numpy()
    for position in range(4):
        weight = torch.tensor(w, requires_grad=True)
        (TF.conv2d(torch.tensor(x[position : position + 1]), weight, padding=1) ** 2).sum().backward()
        np.testing.assert_allclose(found[position], weight.grad.numpy(), rtol=1e-9)


PLAIN = (gg.ones(1, 1, 5, 5), gg.ones(1, 1, 3, 3))


@pytest.mark.parametrize(
    ("call", "kind", "text"),
    [
        (lambda: F.conv2d(gg.ones(1, 3, 5, 5), gg.ones(2, 4, 3, 3)), errors.ShapeError, "has 3 channels"),
        (lambda: F.conv2d(gg.ones(1, 4, 5, 5), gg.ones(3, 2, 3, 3), groups=2), errors.ShapeError, "into 2 groups"),
        (lambda: F.conv2d(gg.ones(1, 1, 2, 2), gg.ones(1, 1, 3, 3)), errors.ShapeError, "kernel 3x3"),
        (lambda: F.conv2d(gg.ones(5, 5), gg.ones(1, 1, 3, 3)), errors.ShapeError, "(channels, height, width)"),
        (lambda: F.conv2d(gg.ones(1, 1, 5, 5), gg.ones(1, 1, 3)), errors.ShapeError, "weight with 4 dimensions"),
        (lambda: F.conv2d(*PLAIN, stride=2, padding="same"), errors.ArgumentError, "stride"),
        (lambda: F.conv2d(*PLAIN, padding="full"), errors.ArgumentError, "'full'"),
        (lambda: F.conv2d(*PLAIN, stride=(1, 2, 3)), errors.ArgumentError, "2 of them"),
        (lambda: F.conv_transpose2d(*PLAIN, output_padding=1), errors.ArgumentError, "stride"),
        (lambda: F.max_pool2d(gg.ones(1, 1, 5, 5), 2, padding=2), errors.ArgumentError, "half of kernel_size"),
        (lambda: F.max_pool2d(gg.ones(1, 1, 2, 2), 3), errors.ArgumentError, "window 3x3"),
        (lambda: F.fold(gg.ones(1, 4, 5), (3, 3), 2), errors.ArgumentError, "given 4 and 5"),
        (lambda: F.interpolate(gg.ones(1, 1, 2, 2), 4, mode="linear"), errors.ArgumentError, "'bilinear'"),
        (lambda: F.interpolate(gg.ones(1, 1, 2, 2)), errors.ArgumentError, "either size or scale_factor"),
        (lambda: F.pixel_shuffle(gg.ones(1, 3, 2, 2), 2), errors.ArgumentError, "3 channels"),
        (lambda: F.pixel_unshuffle(gg.ones(1, 3, 3, 2), 2), errors.ArgumentError, "height 3"),
    ],
)
def test_bad_input_is_named(call: Any, kind: type[Exception], text: str) -> None:
    with pytest.raises(kind) as caught:
        call()
    assert text in str(caught.value)
    assert "test_conv.py" in str(caught.value)


# --- pooling --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("kernel", "stride"), list(itertools.product((2, 3, (3, 2)), (None, 1, (2, 3)))))
def test_max_pool2d(kernel: Any, stride: Any) -> None:
    distinct = real(2, 3, 9, 7)
    ties = np.round(distinct)
    last = np.ascontiguousarray(distinct.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2)
    for padding, dilation, ceil in itertools.product((0, 1), (1, 2), (False, True)):
        for x in (distinct, ties, last):
            agree(
                "max_pool2d", x, kernel_size=kernel, stride=stride, padding=padding, dilation=dilation, ceil_mode=ceil
            )
        options = {"kernel_size": kernel, "stride": stride, "padding": padding, "dilation": dilation, "ceil_mode": ceil}
        _, found = F.max_pool2d(gg.tensor(ties), **options, return_indices=True)
        _, expected = TF.max_pool2d(torch.tensor(ties), **options, return_indices=True)
        np.testing.assert_array_equal(found.numpy(), expected.numpy())


def test_max_pool_keeps_nan_and_infinities() -> None:
    x = np.array([[[[math.nan, 1.0, -math.inf, -math.inf], [2.0, 3.0, -math.inf, -math.inf]]]])
    agree("max_pool2d", x, kernel_size=2)


@pytest.mark.parametrize(("kernel", "stride"), list(itertools.product((2, 3, (3, 2)), (None, 1, (2, 3)))))
def test_avg_pool2d(kernel: Any, stride: Any) -> None:
    for padding, ceil, include, divisor in itertools.product((0, 1), (False, True), (False, True), (None, 3)):
        agree(
            "avg_pool2d",
            real(2, 3, 9, 7),
            kernel_size=kernel,
            stride=stride,
            padding=padding,
            ceil_mode=ceil,
            count_include_pad=include,
            divisor_override=divisor,
        )


def test_pooling_of_signals() -> None:
    for kernel, stride, padding, ceil in itertools.product((2, 3), (None, 1, 2), (0, 1), (False, True)):
        options = {"kernel_size": kernel, "stride": stride, "padding": padding, "ceil_mode": ceil}
        agree("avg_pool1d", real(2, 3, 11), **options)
        agree("max_pool1d", real(2, 3, 11), **options, dilation=2)
    agree("max_pool1d", real(3, 11), kernel_size=2)


@pytest.mark.parametrize("size", [1, 2, 3, (3, 7), (None, 2), (4, 5), 9, 12])
def test_adaptive_avg_pool2d(size: Any) -> None:
    agree("adaptive_avg_pool2d", real(2, 3, 9, 7), output_size=size)


@pytest.mark.parametrize("size", [1, 3, 4, 13])
def test_adaptive_avg_pool1d(size: int) -> None:
    agree("adaptive_avg_pool1d", real(2, 3, 11), output_size=size)


# --- windows and sizes ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kernel", "dilation", "padding", "stride"), list(itertools.product((2, (3, 2)), (1, 2), (0, 1), (1, 2)))
)
def test_unfold_and_fold(kernel: Any, dilation: int, padding: int, stride: int) -> None:
    options = {"kernel_size": kernel, "dilation": dilation, "padding": padding, "stride": stride}
    agree("unfold", real(2, 3, 9, 7), **options)
    agree("unfold", real(3, 9, 7), **options)
    columns = TF.unfold(torch.tensor(real(2, 3, 9, 7)), **options).numpy()
    agree("fold", columns, output_size=(9, 7), **options)
    agree("fold", columns[0], output_size=(9, 7), **options)


SIZES = (
    {"size": (5, 4)}, {"size": (18, 14)}, {"size": (13, 11)}, {"scale_factor": 2}, {"scale_factor": 1.7},
    {"scale_factor": (0.6, 2.3)}, {"scale_factor": 1.7, "recompute_scale_factor": True},
)  # fmt: skip  # a table


@pytest.mark.parametrize("mode", ["nearest", "nearest-exact", "bilinear", "bicubic", "area"])
@pytest.mark.parametrize("size", SIZES, ids=str)
def test_interpolate(mode: str, size: dict[str, Any]) -> None:
    for corners in (None, False, True) if mode.startswith("bi") else (None,):
        agree("interpolate", real(2, 3, 9, 7), mode=mode, align_corners=corners, **size)


@pytest.mark.parametrize("mode", ["nearest", "linear", "area"])
def test_interpolate_signals(mode: str) -> None:
    agree("interpolate", real(2, 3, 11), size=17, mode=mode)
    agree("interpolate", real(2, 3, 11), scale_factor=0.5, mode=mode)


@pytest.mark.parametrize("mode", ["nearest", "bilinear", "bicubic"])
def test_infinities_stay_where_they_are(mode: str) -> None:
    """Also where the work is done by products with matrices that are mostly 0."""
    x = real(1, 1, 6, 6)
    x[0, 0, 1, 2] = math.inf
    found = F.interpolate(gg.tensor(x), scale_factor=2, mode=mode).numpy()
    expected = TF.interpolate(torch.tensor(x), scale_factor=2, mode=mode).numpy()
    np.testing.assert_array_equal(np.isfinite(found), np.isfinite(expected))
    np.testing.assert_allclose(found[np.isfinite(found)], expected[np.isfinite(expected)], rtol=1e-10)


def test_long_axes_are_resized_by_reading_neighbours() -> None:
    agree("interpolate", real(1, 2, 150), size=190, mode="linear")
    agree("interpolate", real(1, 2, 300), size=131, mode="linear", align_corners=True)
    agree("interpolate", real(1, 2, 130, 3), scale_factor=(2, 3), mode="bilinear")  # evenly spaced, but for the borders
    agree("interpolate", real(1, 1, 3, 140), size=(5, 210), mode="bicubic")  # unevenly spaced
    agree("interpolate", real(1, 2, 130), size=61, mode="nearest")
    agree("interpolate", real(1, 2, 4), size=200, mode="linear")  # many outputs read one input


def test_pixels_and_channels() -> None:
    agree("pixel_shuffle", real(2, 12, 3, 4), upscale_factor=2)
    agree("pixel_unshuffle", real(2, 3, 4, 6), downscale_factor=2)
    x = gg.tensor(real(1, 8, 2, 2))
    np.testing.assert_array_equal(F.pixel_unshuffle(F.pixel_shuffle(x, 2), 2).numpy(), x.numpy())


# --- shares of samples on several cores -----------------------------------------------------------


@pytest.fixture
def two_threads(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """A BLAS that says it has two threads, and keeps what it is told."""
    told: list[int] = []
    shares = parallel.Shares(lambda: parallel.Blas(lambda: 2, told.append), least=0)
    monkeypatch.setattr(parallel, "shares", shares)
    yield told
    assert not shares.busy.locked()


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("samples", [1, 2, 5])
def test_shares_give_what_one_gives(samples: int, groups: int, two_threads: list[int]) -> None:
    agree("conv2d", real(samples, 4, 10, 9), real(8, 4 // groups, 3, 3), padding=1, groups=groups)  # small: NumPy
    agree("conv2d", real(samples, 2, 6, 5), real(4, 2 // groups, 3, 2), groups=groups, stride=2)
    # One thread for BLAS while the shares run, and what it had before afterwards.
    assert two_threads[:2] == [1, 2]


def test_an_error_in_a_share_is_raised_and_the_threads_are_given_back(two_threads: list[int]) -> None:
    def work(start: int, stop: int) -> None:
        if start:
            raise ValueError(f"share {start} to {stop}")

    with pytest.raises(ValueError, match="share 4 to 8"):
        parallel.shares.run(work, 8, 1)
    assert two_threads == [1, 2]


def test_who_comes_second_works_alone(two_threads: list[int]) -> None:
    shares: list[tuple[int, int]] = []

    def inner(start: int, stop: int) -> None:
        shares.append((start, stop))

    parallel.shares.run(lambda start, stop: parallel.shares.run(inner, 6, 1) if start == 0 else None, 8, 1)
    assert shares == [(0, 6)]


def test_numpys_own_openblas_is_found_where_it_is() -> None:
    blas = parallel.numpys_blas()
    if "openblas" not in str(np.show_config(mode="dicts")).lower():
        pytest.skip("NumPy has another BLAS")
    assert blas is not None
    assert blas.get() >= 1
