"""Convolutions by minimal filtering: all three passes against float64, with every width of vectors."""

from __future__ import annotations

import numpy as np
import pytest

import glassgrad as gg
from glassgrad.compile.llvm.convolutions import minimal, winograd
from glassgrad.compile.llvm.convolutions.kernels import ConvCode, chosen
from glassgrad.compile.llvm.convolutions.windows import shape_of
from glassgrad.compile.llvm.module.target import host, parsed
from glassgrad.compile.llvm.products import tiles
from glassgrad.nn import functional as F
from tests.compile.graphs import Builder, lower, written
from tests.thinning import covering

# images, channels, outputs, size, padding, side of the kernel: 3 at stride 1, 4 at stride 2
CASES = {
    "even": (2, 3, 5, (8, 8), ((1, 1), (1, 1)), 3),
    "odd, uneven borders": (3, 4, 2, (7, 9), ((0, 1), (2, 0)), 3),
    "blocks of rows, the last overlaps": (2, 3, 4, (33, 70), ((1, 1), (1, 1)), 3),
    "one tile, no border": (1, 2, 3, (3, 3), ((0, 0), (0, 0)), 3),
    "images together, wide borders": (6, 17, 9, (5, 4), ((2, 2), (2, 2)), 3),
    "a single row": (5, 2, 3, (1, 6), ((1, 1), (1, 1)), 3),
    "panels": (1, 33, 67, (12, 10), ((1, 1), (1, 1)), 3),
    "halves, even": (2, 3, 5, (8, 8), ((1, 1), (1, 1)), 4),
    "halves, odd, uneven borders": (3, 4, 2, (9, 11), ((0, 1), (2, 0)), 4),
    "halves, blocks of rows, the last overlaps": (2, 3, 4, (70, 136), ((1, 1), (1, 1)), 4),
    "halves, one tile, no border": (1, 2, 3, (4, 4), ((0, 0), (0, 0)), 4),
    "halves, images together, wide borders": (6, 17, 9, (10, 7), ((2, 2), (2, 2)), 4),
    "halves, a column that no window sees": (3, 5, 3, (7, 9), ((1, 0), (0, 0)), 4),
    "some images fill a vector": (7, 3, 8, (4, 4), ((1, 1), (1, 1)), 3),
    "an image fills two vectors": (3, 8, 4, (9, 14), ((0, 1), (2, 0)), 3),
    "halves, some images fill a vector": (11, 8, 4, (8, 8), ((1, 1), (1, 1)), 4),
    "few tiles": (2, 12, 10, (4, 4), ((1, 1), (1, 1)), 3),
    "halves, few tiles": (2, 10, 12, (8, 8), ((1, 1), (1, 1)), 4),
    "halves, an image fills two vectors": (2, 4, 6, (16, 28), ((1, 1), (2, 2)), 4),
}
WIDTHS = [64, 32, 16]


@pytest.fixture(autouse=True)
def _everything_is_filtered(monkeypatch):
    monkeypatch.setattr(minimal, "FILTERED_CHANNELS", 1)
    monkeypatch.setattr(minimal, "FILTERED_TILES", 1)


def settings(padding=((1, 1), (1, 1)), side=3):
    return {"stride": (side - 2, side - 2), "padding": padding, "dilation": (1, 1), "groups": 1}


def graph_of(op, arrays, params):
    b = Builder(arrays[0].dtype)
    return b.build(b(op, *(b.input(*array.shape) for array in arrays), **params))


def truth(x, w, g, padding):
    """The convolution and the gradients of its product with g, tap by tap in float64."""
    x, w, g = (array.astype(np.float64) for array in (x, w, g))
    padded = np.pad(x, ((0, 0), (0, 0), *padding))
    (high, wide), (side, _) = g.shape[2:], w.shape[2:]
    step = side - 2
    y, dx, dw = np.zeros(g.shape), np.zeros(padded.shape), np.zeros(w.shape)
    for i, j in np.ndindex(side, side):
        seen = np.s_[:, :, i : i + step * high : step, j : j + step * wide : step]
        y += np.einsum("nchw,oc->nohw", padded[seen], w[:, :, i, j])
        dx[seen] += np.einsum("nohw,oc->nchw", g, w[:, :, i, j])
        dw[:, :, i, j] = np.einsum("nohw,nchw->oc", g, padded[seen])
    (top, _), (left, _) = padding
    return y, dx[:, :, top : top + x.shape[2], left : left + x.shape[3]], dw


def passes(x, w, g, padding):
    """The three primitives with their operands and parameters."""
    side = w.shape[2]
    given = settings(padding, side)
    return [
        ("conv2d", [x, w], given),
        ("conv2d_input", [g, w], {**given, "size": x.shape[2:]}),
        ("conv2d_weight", [x, g], {**given, "kernel": (side, side)}),
    ]


def drawn(name, dtype, draw):
    n, c, o, size, padding, side = CASES[name]
    out = tuple((extent + sum(pair) - side) // (side - 2) + 1 for extent, pair in zip(size, padding, strict=True))
    shapes = (n, c, *size), (o, c, side, side), (n, o, *out)
    return [*(draw(shape).astype(dtype) for shape in shapes), padding]


@pytest.mark.parametrize(("name", "dtype", "width"), covering(list(CASES), [np.float32, np.float64], WIDTHS))
def test_all_passes_agree_with_float64(name, dtype, width, monkeypatch):
    monkeypatch.setattr(host(), "vector_bytes", width)
    rng = np.random.default_rng(5)
    given = drawn(name, dtype, lambda shape: rng.normal(size=shape))
    for (op, arrays, params), want in zip(passes(*given), truth(*given), strict=True):
        found = []
        for threads in (1, 2):
            step = lower(graph_of(op, arrays, params), threads)
            found.append(step(*arrays)[0])
            assert all(row.kind != "host" for row in step.explain())
        # The same bits on any number of threads; a few roundings, seen from the size of the results: 23 on ARM.
        assert found[0].tobytes() == found[1].tobytes()
        error = np.abs(found[0] - want).max() / np.sqrt((want**2).mean())
        assert error < 32 * np.finfo(dtype).eps


@pytest.mark.parametrize("name", ["panels", "halves, odd, uneven borders"])
def test_small_integers_are_exact(name):
    rng = np.random.default_rng(6)
    given = drawn(name, np.float32, lambda shape: rng.integers(-9, 10, shape))
    for (op, arrays, params), want in zip(passes(*given), truth(*given), strict=True):
        np.testing.assert_array_equal(lower(graph_of(op, arrays, params), 1)(*arrays)[0], want)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_what_is_not_finite_reaches_the_outputs_that_see_it_and_no_other(value):
    rng = np.random.default_rng(8)
    x, w = np.zeros((1, 1, 5, 8), np.float32), rng.normal(size=(2, 1, 3, 3)).astype(np.float32)
    step = lower(graph_of("conv2d", [x, w], settings()), 1)
    for row, column in np.ndindex(5, 8):
        x = rng.normal(size=(1, 1, 5, 8)).astype(np.float32)
        x[0, 0, row, column] = value
        (y,) = step(x, w)
        near = np.add.outer(abs(np.arange(5) - row) > 1, abs(np.arange(8) - column) > 1)
        np.testing.assert_array_equal(np.isfinite(y), np.broadcast_to(near, y.shape))


def test_second_derivatives_are_convolutions_again():
    rng = np.random.default_rng(7)
    x, w = rng.normal(size=(2, 3, 6, 5)), rng.normal(size=(4, 3, 3, 3))

    def slope(x, w):
        return gg.autograd.grad(F.conv2d(x, w, padding=1).square().sum(), [x, w], create_graph=True)

    def curvature(x, w):
        first = slope(x, w)
        return gg.autograd.grad(sum(part.square().sum() for part in first), [x, w])

    given = [gg.tensor(array, requires_grad=True) for array in (x, w)]
    compiled = gg.compile(curvature, strict=True)(*given)
    for got, want in zip(compiled, curvature(*given), strict=True):
        np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=1e-10, atol=1e-8)


@pytest.mark.parametrize(
    ("x", "w", "more", "is_filtered"),
    [
        ((32, 512, 4, 4), (512, 512, 3, 3), {}, True),
        ((32, 148, 32, 32), (12, 148, 3, 3), {}, True),
        ((32, 3, 32, 32), (64, 3, 3, 3), {}, False),  # few channels
        ((2, 64, 4, 4), (64, 64, 3, 3), {}, False),  # few tiles for the weights that are transformed
        ((32, 64, 32, 32), (64, 64, 3, 3), {"stride": (2, 2)}, False),
        ((32, 64, 32, 32), (64, 64, 3, 3), {"dilation": (2, 2)}, False),
        ((32, 64, 32, 32), (64, 32, 3, 3), {"groups": 2}, False),
        ((32, 64, 32, 32), (64, 64, 4, 4), {"stride": (2, 2)}, True),
        ((32, 64, 32, 32), (64, 64, 4, 4), {"stride": (2, 1)}, False),
        ((32, 64, 32, 32), (64, 64, 1, 3), {}, False),
        ((32, 64, 8, 8), (64, 64, 3, 3), {"padding": ((3, 3), (3, 3))}, False),  # borders beyond the kernel
        ((2, 64, 224, 224), (64, 64, 3, 3), {}, True),  # more columns than there may be
        ((32, 1024, 8, 8), (512, 1024, 3, 3), {}, False),  # too many transformed weights
    ],
)
def test_which_convolutions_are_filtered(x, w, more, is_filtered, monkeypatch):
    monkeypatch.undo()
    b = Builder()
    graph = b.build(b("conv2d", b.input(*x), b.input(*w), **{**settings(), **more}))
    assert (chosen(shape_of(graph.instrs[0])) is minimal.MinimalFiltering) == is_filtered
    assert ConvCode.takes(graph.instrs[0])


def test_layers_share_their_transforms():
    """LLVM must not make a copy for the numbers of each call; a module in parts would miss it when it is linked."""
    b = Builder()
    given = b.input(2, 3, 8, 8), b.input(5, 3, 3, 3), b.input(4, 5, 3, 3)
    inner = b("conv2d", *given[:2], **settings())
    step = lower(b.build(b("conv2d", inner, given[2], **settings())), 1)
    module = parsed(step.llvm)
    host().optimise(module)
    assert "specialized" not in str(module)
    # One function each for the weights, the data and the results of both layers.
    assert step.llvm.count("noduplicate") == 3


def test_scratch_memory_is_counted(monkeypatch):
    monkeypatch.undo()
    b = Builder()
    graph = b.build(b("conv2d", b.input(16, 64, 16, 16), b.input(64, 64, 3, 3), **settings()))
    assert lower(graph, 1).stats.peak_bytes >= 16 * 64 * 64 * 4 + 2 * 16 * 64 * 64 * 4


@pytest.mark.parametrize("name", CASES)
def test_transforms_are_written_alike_for_layers_of_any_size(name, monkeypatch):
    arrays = drawn(name, np.float32, np.zeros)

    def texts():
        tiles.TEXTS.clear()
        return [written(graph_of(op, given, params)) for op, given, params in passes(*arrays)]

    for_any = texts()
    monkeypatch.setattr(winograd, "of_any_size", lambda shape: shape)
    monkeypatch.setattr(winograd, "of_any_layer", lambda plan: plan)
    assert texts() == for_any
