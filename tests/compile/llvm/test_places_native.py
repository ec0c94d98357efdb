"""Gathers and scatters with places that follow from options, larger than the samples: vectors, threads, borders."""

from __future__ import annotations

import numpy as np
import pytest

import glassgrad as gg
from glassgrad.compile.ir.graph import GraphBuilder, Instr
from glassgrad.compile.llvm.without_code import WITHOUT_CODE
from glassgrad.ops.core import REGISTRY
from glassgrad.ops.resample import Resizing
from tests.compile.graphs import agree, lower

RNG = np.random.default_rng(3)
WINDOW = {"kernel": (3, 2), "stride": (2, 1), "padding": ((1, 2), (0, 1)), "dilation": (1, 2), "ceil": True}


def reals(*shape):
    return RNG.uniform(-1, 1, shape).astype(np.float32)


def places(extent, *shape):
    return RNG.integers(0, extent, shape)


IMAGE = reals(3, 4, 21, 19)
POOLED = REGISTRY["max_pool2d"].compute((IMAGE,), WINDOW)
COLUMNS = REGISTRY["im2col"].compute((IMAGE,), WINDOW)
CASES = {
    "overlap_add": ((reals(70, 33, 40),), {"axis": 1, "step": 7, "length": 270}),
    "overlap_add apart": ((reals(5, 33, 8, 3),), {"axis": 1, "step": 4, "length": 131}),
    "add_strided": ((reals(50, 41),), {"shape": (45, 61), "stride": (37, 1), "offset": 11}),
    "add_strided on one place": ((reals(50, 41),), {"shape": (3, 3), "stride": (0, 0), "offset": 4}),
    "as_strided": ((reals(45, 61),), {"size": (9, 50, 41), "stride": (3, 37, 1), "offset": 11}),
    "put_along_axis": ((reals(90, 50), reals(90, 20), places(50, 90, 20)), {"axis": 1}),
    "put_along_axis by rows": ((reals(50, 90), reals(20, 90), places(50, 20, 90)), {"axis": 0}),
    "put_along_axis one value": ((reals(50, 90), reals(), places(50, 20, 90)), {"axis": 0}),
    "scatter_extreme": ((reals(50, 90), reals(80, 90), places(50, 80, 90)), {"axis": 0, "largest": True}),
    "put_diagonal": ((reals(30, 38),), {"offset": -3, "axis1": 0, "axis2": 2, "shape": (41, 30, 40)}),
    "mirror": ((reals(4, 37, 37),), {"lower": False}),
    "im2col": ((IMAGE,), WINDOW),
    "col2im": ((COLUMNS,), {"size": IMAGE.shape[-2:], **WINDOW}),
    "max_pool2d_gather": ((reals(*IMAGE.shape), IMAGE, POOLED), WINDOW),
    "max_pool2d_index": ((IMAGE, POOLED), WINDOW),
    "resample": ((reals(5, 21, 19),), {"axis": 1, "how": Resizing("cubic", 21, 50, 0.42)}),
    "resample_back": ((reals(5, 50, 19),), {"axis": 1, "how": Resizing("linear", 21, 50, 0.42)}),
}  # fmt: skip  # a table


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("case", CASES)
def test_places_are_those_of_numpy(case, threads):
    (args, params), prim = CASES[case], REGISTRY[case.split()[0]]
    builder = GraphBuilder()
    operands = tuple(builder.input(x.shape, x.dtype) for x in args)
    want = prim.compute(args, params)
    out = builder.var(want.shape, want.dtype)
    builder.instrs.append(Instr(prim.name, operands, (out,), params))
    agree(lower(builder.build([out]), threads=threads)(*args)[0], want)
    assert prim.name not in WITHOUT_CODE


def test_windows_are_read_where_a_reader_cannot_take_them_apart():
    """The rows of the columns, (channel, place), as pairs: no loop counter divides both."""
    x = gg.tensor(reals(2, 2, 9, 9))

    def step(x):
        return gg.im2col(x, 3).reshape(2, 9, 2, 49).sum(2) * 2

    agree(gg.compile(step, strict=True)(x).numpy(), step(x).numpy())


def test_a_number_is_put_along_an_axis():
    x, index = gg.tensor(reals(6, 5)), gg.tensor(places(5, 6, 2))

    def step(x, index):
        return gg.scatter(x, 1, index, value=2.5) + 1

    compiled = gg.compile(step, strict=True)
    agree(compiled(x, index).numpy(), step(x, index).numpy())
    with pytest.raises(IndexError):
        compiled(x, index + 4)


def test_a_write_to_no_element_leaves_results_of_their_own():
    """Of a copy of an argument, and of a value that is a result as well: both have memory that is to be filled."""

    def step(x):
        copied, doubled = x.clone(), x * 2
        written = doubled.clone()
        copied[:0] = x[:0] * 2
        written[2:2] = 5.0
        return copied, doubled, written, written + 1

    x = gg.tensor(reals(3, 4))
    compiled = gg.compile(step, strict=True)
    for mine, wanted in zip(compiled(x), step(x), strict=True):
        np.testing.assert_array_equal(mine.numpy(), wanted.numpy())
