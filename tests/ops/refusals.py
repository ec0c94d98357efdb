"""Calls of ops with good and bad arguments in all combinations: PyTorch refuses some and accepts others.

`TABLE` lists for each op a function of a library and its arguments, and for each argument its possible values. An
ndarray becomes a tensor of the library.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

Array = np.ndarray[Any, Any]
MOST = 60  # calls of one op


class Entry(NamedTuple):
    """One op: how it is called, and what each argument may be."""

    call: Callable[..., Any]
    candidates: tuple[tuple[Any, ...], ...]


def real(*shape: int) -> Array:
    return np.random.default_rng([3, *shape]).normal(size=shape)


def whole(*shape: int, below: int = 2, dtype: Any = np.int64) -> Array:
    return np.random.default_rng([5, *shape]).integers(0, below, shape).astype(dtype)


MATRIX = (real(2, 3),)
SHAPES = (real(2, 3), real(3), real(), real(0, 3), real(2, 1, 3))
DIMS = (0, 1, -1, -2, 2, -3, 5)
SETS = (0, -1, (0,), (0, 1), (1, 0), (0, 0), (1, -1), (2,), (), (0, 1, 0))
# Positions in rows of 3: right, of other shapes and dtypes, and out of range at both ends.
PLACES = (
    whole(2, 3), whole(2, 2), whole(3, 3), whole(2, 4), whole(2), whole(), whole(0, 3), whole(2, 3, 1),
    whole(2, 3).astype(np.int32), whole(2, 3).astype(float), whole(2, 3).astype(bool), whole(2, 3).astype(np.uint8),
    np.array([[0, 1, 5], [0, 0, 0]]), np.array([[0, 1, -1], [0, 0, 0]]), np.array([[0, 1, -4], [0, 0, 0]]),
)  # fmt: skip  # a table
ROWS = (
    whole(2), whole(3), whole(), whole(0), whole(2, 2), whole(2).astype(np.int32), whole(2).astype(float),
    np.array([True, False]), np.array([0, 7]), np.array([0, -1]), np.array([-5, 0]), whole(2).astype(np.uint8),
)  # fmt: skip  # a table
MASKS = (real(2, 3) > 0, real(3) > 0, real(2, 1) > 0, real(4) > 0, real(2, 3), (real(2, 3) > 0).astype(np.int64),
         (real(2, 3) > 0).astype(np.uint8), real(2, 2, 3) > 0, np.asarray(real() > 0))  # fmt: skip  # a table
COUNTS = (-2, -1, 0, 1, 2, 3, 4)


def method(name: str, **keywords: Any) -> Callable[..., Any]:
    return lambda lib, x, *args: getattr(x, name)(*args, **keywords)


def function(path: str, **keywords: Any) -> Callable[..., Any]:
    def call(lib: Any, *args: Any) -> Any:
        found = lib
        for part in path.split("."):
            found = getattr(found, part)
        return found(*args, **keywords)

    return call


TABLE: dict[str, Entry] = {
    "roll": Entry(
        method("roll"), (SHAPES[:3], (1, -4, (1,), (1, 2), (1, 1, 1), ()), (0, -1, 2, (0,), (0, 1), (0, 0), (), None))
    ),
    "flip": Entry(method("flip"), (SHAPES, SETS)),
    "permute": Entry(method("permute"), (SHAPES[:2], ((1, 0), (0, 0), (0,), (0, 1, 2), (0, -1), (0, -3), ()))),
    "transpose": Entry(method("transpose"), (SHAPES[:3], DIMS, DIMS)),
    "movedim": Entry(method("movedim"), ((real(2, 3, 4),), (0, (0, 1), (0, 0), 3), (1, (1, 2), (1, 1), -4, ()))),
    "squeeze": Entry(method("squeeze"), (SHAPES, SETS)),
    "unsqueeze": Entry(method("unsqueeze"), (SHAPES[:3], (0, 1, 2, 3, -1, -3, -4))),
    "unfold": Entry(method("unfold"), ((real(4, 3),), (0, 1, 2), (-1, 0, 1, 3, 4, 5), (-1, 0, 1, 2))),
    "chunk": Entry(method("chunk"), (SHAPES, COUNTS, (0, -1, 1))),
    "split": Entry(method("split"), (SHAPES[:4], (*COUNTS, (1, 1), (1, 2), (3, -1), (), (3,)), (0, 1))),
    "tensor_split": Entry(method("tensor_split"), (SHAPES[:3], (*COUNTS, (1,), (1, 5), (2, 1), (-1,), ()), (0, 1))),
    "narrow": Entry(method("narrow"), (MATRIX, (0, 1, 2), (-4, -1, 0, 2, 3, 4), (-1, 0, 1, 3))),
    "select": Entry(method("select"), (SHAPES[:3], (0, 1, -3), (-4, -2, 0, 1, 2, 3))),
    "unbind": Entry(method("unbind"), (SHAPES, DIMS)),
    "topk": Entry(method("topk"), (SHAPES, COUNTS, (0, -1, 1, 2))),
    "kthvalue": Entry(method("kthvalue"), (SHAPES, COUNTS, (0, -1, 1, 2))),
    "tril": Entry(method("tril"), (SHAPES, (0, 1, -9, 9))),
    "triu": Entry(method("triu"), (SHAPES, (0, 1, -9, 9))),
    "diag": Entry(method("diag"), (SHAPES, (0, 1, -1, 3, -5))),
    "diagonal": Entry(method("diagonal"), (SHAPES, (0, 1, -3), (0, 1, -1), (0, 1, 2))),
    "diag_embed": Entry(method("diag_embed"), (SHAPES[:3], (0, 1, -1), (0, -2, 1), (1, -1, 0, 5))),
    "trace": Entry(method("trace"), (SHAPES,)),
    "cat": Entry(
        lambda lib, a, b, dim: lib.cat([a, b], dim),
        (SHAPES, (real(2, 3), real(2, 4), real(3), real(0), whole(2, 3)), (0, 1, -1, 2)),
    ),
    "stack": Entry(
        lambda lib, a, b, dim: lib.stack([a, b], dim),
        (SHAPES, (real(2, 3), real(2, 4), real(3), real(0)), (0, 1, -1, -3, 3)),
    ),
    "hstack": Entry(lambda lib, a, b: lib.hstack([a, b]), (SHAPES, (real(2, 3), real(2, 4), real(3), real(0)))),
    "vstack": Entry(lambda lib, a, b: lib.vstack([a, b]), (SHAPES, (real(2, 3), real(2, 4), real(3), real(0)))),
    "dstack": Entry(lambda lib, a, b: lib.dstack([a, b]), (SHAPES, (real(2, 3), real(2, 4), real(3)))),
    "column_stack": Entry(lambda lib, a, b: lib.column_stack([a, b]), (SHAPES, (real(2, 3), real(3, 4), real(3)))),
    "where": Entry(function("where"), (MASKS, (real(2, 3), real(3), real(2), 1.0), (real(2, 3), real(1), 0.0))),
    "one_hot": Entry(function("nn.functional.one_hot"), ((*ROWS, np.array([-1, 0])), (-1, 1, 2, 3, 0))),
    "bincount": Entry(
        lambda lib, x, w, n: lib.bincount(x, w, n),
        ((*ROWS, np.array([-1, 0])), (None, real(2), real(3), real(2, 2)), (0, 5, -1)),
    ),
    "index_select": Entry(method("index_select"), (SHAPES, (0, 1, 3), ROWS)),
    "gather": Entry(method("gather"), (SHAPES[:3], (0, 1, -1, 2), PLACES)),
    "take_along_dim": Entry(lambda lib, x, i, dim: lib.take_along_dim(x, i, dim), (MATRIX, PLACES, (0, 1, 2))),
    "take": Entry(method("take"), (SHAPES, (*ROWS, np.array([0, 6])))),
    "index_add": Entry(
        method("index_add"),
        (SHAPES[:3], (0, 1, 2), ROWS, (real(2, 3), real(2, 2), real(3), real(), real(2, 3).astype(np.float32))),
    ),
    "index_copy": Entry(
        method("index_copy"),
        (SHAPES[:3], (0, 1, 2), ROWS, (real(2, 3), real(2, 2), real(3), real(), real(2, 3).astype(np.float32))),
    ),
    "index_fill": Entry(method("index_fill"), (SHAPES[:3], (0, 1, 2), ROWS, (1.5, real(), real(1), real(2)))),
    "scatter": Entry(
        method("scatter"),
        (
            SHAPES[:3],
            (0, 1, 2),
            PLACES,
            (real(2, 3), real(3, 3), real(1, 1), real(3), 1.5, real(2, 3).astype(np.float32), real()),
        ),
    ),
    "scatter reduce": Entry(
        method("scatter", reduce="add"), (MATRIX, (0, 1), PLACES[:4], (real(2, 3), real(2, 2), 1.5))
    ),
    "scatter_add": Entry(
        method("scatter_add"),
        (SHAPES[:3], (0, 1, 2), PLACES, (real(2, 3), real(3, 3), real(1, 1), real(3), whole(2, 3))),
    ),
    "scatter_reduce": Entry(
        method("scatter_reduce"),
        (MATRIX, (0, 1, 2), PLACES, (real(2, 3), real(3, 3), real(1, 1), whole(2, 3)), ("sum", "amax", "add")),
    ),
    "masked_fill": Entry(method("masked_fill"), (SHAPES[:3], MASKS, (1.5, real(), real(1), real(3)))),
    "masked_select": Entry(method("masked_select"), (SHAPES[:3], MASKS)),
    "masked_scatter": Entry(method("masked_scatter"), (SHAPES[:2], MASKS, (real(2, 3), real(1), real(0), whole(2, 3)))),
    "select_scatter": Entry(
        method("select_scatter"), (MATRIX, (real(3), real(2), real(), real(1, 3)), (0, 1, 2), (0, -2, 2, 3))
    ),
    "slice_scatter": Entry(
        method("slice_scatter"),
        (MATRIX, (real(1, 3), real(2, 3), real(2, 2), real(3)), (0, 1, 2), (0, 1, -1), (1, 2, 9), (1, 0, -1)),
    ),
    "diagonal_scatter": Entry(method("diagonal_scatter"), (MATRIX, (real(2), real(1), real(), real(2, 1)), (0, 1, 7))),
    "index_put": Entry(
        lambda lib, x, i, v: x.index_put((i,), v),
        (MATRIX, (*ROWS, real(2, 3) > 0), (real(), real(3), real(2, 3), real(2))),
    ),
    "put": Entry(method("put"), (SHAPES[:4], (whole(2), PLACES[0], real(2)), (real(2), real(1, 2), real(3), whole(2)))),
    "renorm": Entry(method("renorm"), (SHAPES, (2, 0, 1.0, -1), (0, 1, 2, -3), (0.5, 0.0, -1.0))),
    "getitem": Entry(lambda lib, x, i: x[i], (SHAPES, (*ROWS, real(2, 3) > 0, real(3) > 0, (0, 1, 2, 3), slice(0, 1)))),
    "expand": Entry(
        method("expand"),
        (SHAPES, ((2, 3), (4, 3), (3,), (-1, 3), (-1, -1, 3), (5, 2, 3), (2, -1), (), (0, 3), (2, -2))),
    ),
    "reshape": Entry(
        method("reshape"),
        (SHAPES, ((2, 3), (3, 2), (-1,), (-1, -1), (4, -1), (0, -1), (-2, 3), (), (6, 1), (0, 3), (1,))),
    ),
    "view": Entry(method("view"), (SHAPES, ((3, 2), (-1,), (-1, -1), (4, -1), (0, -1), (-2, -3), ()))),
    "flatten": Entry(method("flatten"), (SHAPES, (0, 1, -1, 2), (0, 1, -1, 2, -3))),
    "unflatten": Entry(
        method("unflatten"), (SHAPES[:3], (0, 1, 2), ((1, 3), (-1, 1), (3, -1), (2, 2), (), (-1, -1), (0, -1)))
    ),
    "repeat": Entry(method("repeat"), (SHAPES, ((2, 2), (2,), (0, 1), (-1, 2), (1, 2, 3), ()))),
    "tile": Entry(method("tile"), (SHAPES, ((2, 2), (2,), (0, 1), (-1, 2), (1, 2, 3), ()))),
    "repeat_interleave": Entry(
        method("repeat_interleave"),
        (SHAPES, (2, 0, -1, whole(2), whole(3), np.array([1, -1]), real(2), whole(2, 2)), (None, 0, 1, 2)),
    ),
    "broadcast_to": Entry(method("broadcast_to"), (SHAPES, ((2, 3), (4, 3), (3,), (-1, 3), (5, 2, 3), (2, 4), ()))),
    "rot90": Entry(method("rot90"), (SHAPES, (0, 1, -1), ((0, 1), (0, 0), (1, 0), (0,), (0, 2), (0, 1, 2)))),
    "sum": Entry(method("sum"), (SHAPES, SETS)),
    "mean": Entry(method("mean"), (SHAPES, SETS)),
    "var": Entry(method("var"), (SHAPES[:3], SETS)),
    "amax": Entry(method("amax"), (SHAPES, SETS)),
    "logsumexp": Entry(method("logsumexp"), (SHAPES, SETS[:-1])),
    "all": Entry(method("all"), (SHAPES, SETS)),
    "nansum": Entry(method("nansum"), (SHAPES, SETS)),
    "count_nonzero": Entry(method("count_nonzero"), (SHAPES, SETS)),
    "norm": Entry(method("norm", p=2), (SHAPES,)),
    "argmax": Entry(method("argmax"), (SHAPES, (None, *DIMS))),
    "max": Entry(method("max"), (SHAPES, DIMS)),
    "min of all": Entry(method("min"), (SHAPES,)),
    "prod": Entry(method("prod"), (SHAPES, DIMS)),
    "cumsum": Entry(method("cumsum"), (SHAPES, DIMS)),
    "cummax": Entry(method("cummax"), (SHAPES, DIMS)),
    "logcumsumexp": Entry(method("logcumsumexp"), (SHAPES, DIMS)),
    "softmax": Entry(method("softmax"), (SHAPES, DIMS)),
    "sort": Entry(method("sort"), (SHAPES, DIMS)),
    "median": Entry(method("median"), (SHAPES, DIMS)),
    "mode": Entry(method("mode"), (SHAPES, DIMS)),
    "aminmax": Entry(lambda lib, x, dim: x.aminmax(dim=dim), (SHAPES, DIMS)),
    "std of all": Entry(method("std"), (SHAPES,)),
    "diff": Entry(method("diff"), (SHAPES, (-1, 0, 1, 4), (0, 1, 2))),
    "quantile": Entry(
        method("quantile"),
        (
            SHAPES[:4],
            (0.5, -0.1, 1.5, 0, real(2) * 0 + 0.5, real(1, 1) * 0, np.array([2.0]), np.array([0.5], np.float32)),
            (None, 0, 2),
        ),
    ),
    "unique dim": Entry(lambda lib, x, dim: lib.unique(x, dim=dim), (SHAPES[:3], (0, 1, 2))),
    "searchsorted": Entry(
        function("searchsorted"),
        ((np.sort(real(4)), np.sort(real(2, 4)), real()), (real(3), real(2, 3), real(3, 3), 1.0)),
    ),
    "bucketize": Entry(function("bucketize"), ((real(3), real(2, 2)), (np.sort(real(4)), real(2, 2), real()))),
    "meshgrid": Entry(
        lambda lib, a, b, how: lib.meshgrid(a, b, indexing=how),
        ((real(2), real(), real(2, 2)), (real(3), real(1, 1)), ("ij", "xy", "yx")),
    ),
    "matmul": Entry(
        method("matmul"), ((*SHAPES, real(3, 2)), (real(3, 2), real(2, 3), real(3), real(), real(2, 3, 1)))
    ),
    "mm": Entry(method("mm"), (SHAPES, (real(3, 2), real(2, 3), real(3), real(), real(2, 3, 1)))),
    "bmm": Entry(method("bmm"), ((*SHAPES, real(2, 2, 3)), (real(2, 3, 1), real(1, 3, 1), real(3, 2), real(2, 2, 2)))),
    "mv": Entry(method("mv"), (SHAPES, (real(3), real(2), real(3, 1)))),
    "dot": Entry(method("dot"), (SHAPES, (real(3), real(2), real(3, 1), real(), whole(3)))),
    "inner": Entry(method("inner"), (SHAPES, (real(3), real(2), real(4, 3), real()))),
    "outer": Entry(method("outer"), (SHAPES, (real(3), real(), real(2, 2)))),
    "addmm": Entry(
        function("addmm"),
        ((real(2, 2), real(2), real(3), real(), real(1, 2, 2)), (real(2, 3), real(3)), (real(3, 2), real(2, 2))),
    ),
    "cross": Entry(
        function("linalg.cross"), ((real(2, 3), real(3), real(2), real(2, 2)), (real(2, 3), real(3), real(4, 3)))
    ),
    "tensordot": Entry(
        function("tensordot"),
        ((real(2, 3),), (real(3, 2), real(2, 3), real(3)), (0, 1, 2, -1, ([0], [1]), ([0, 1], [1]))),
    ),
    "einsum": Entry(
        lambda lib, eq, a: lib.einsum(eq, a), (("ij->ji", "ij->ii", "ijk->i", "ij->k", "i->i", "ij->", "1->"), SHAPES)
    ),
    "add": Entry(lambda lib, a, b: a + b, (SHAPES, (real(2, 3), real(2, 4), real(2), real(0, 1), real(5, 1, 1)))),
    "clamp": Entry(method("clamp"), (SHAPES[:2], (None, 0.0, real(3), real(4)), (None, 1.0, real(2, 3)))),
    "lerp": Entry(method("lerp"), (SHAPES[:2], (real(2, 3), real(4)), (0.5, real(3), real(2)))),
    "inverse": Entry(function("linalg.inv"), ((*SHAPES, real(2, 2), real(3, 2, 2), np.zeros((2, 2)), whole(2, 2)),)),
    "cholesky": Entry(function("linalg.cholesky"), ((*SHAPES, np.eye(2), -np.eye(2), whole(2, 2)),)),
    "solve": Entry(
        function("linalg.solve"), ((real(2, 2), real(2, 3), np.zeros((2, 2))), (real(2), real(3), real(2, 3), real()))
    ),
    "det": Entry(function("linalg.det"), ((*SHAPES, real(2, 2), whole(2, 2)),)),
    "matrix_power": Entry(function("linalg.matrix_power"), ((real(2, 2), real(2, 3), real(3)), (0, 1, -1, 3))),
    "pad": Entry(
        function("nn.functional.pad"),
        (SHAPES[:3], ((1, 1), (1,), (1, 1, 1), (1, 1, 1, 1, 1, 1), (-1, -1), (-2, -2), (-5, 0), ())),
    ),
    "pad reflected": Entry(
        function("nn.functional.pad", mode="reflect"),
        ((real(1, 2, 4), real(2, 4), real(4)), ((1, 1), (3, 3), (4, 0), (1, 1, 1, 1), (-1, 0))),
    ),
    "pad around": Entry(
        function("nn.functional.pad", mode="circular"),
        ((real(1, 2, 4), real(2, 4), real(4)), ((1, 1), (4, 4), (5, 0), (1, 1, 1, 1), (-1, 0))),
    ),
    "pixel_shuffle": Entry(
        function("nn.functional.pixel_shuffle"), ((real(1, 4, 2, 2), real(4, 2, 2), real(2, 2)), (2, 1, 3, 0, -2))
    ),
    "pixel_unshuffle": Entry(
        function("nn.functional.pixel_unshuffle"), ((real(1, 1, 4, 4), real(1, 4, 6), real(2, 2)), (2, 1, 3, 0, -2))
    ),
    "embedding": Entry(
        lambda lib, i, w: lib.nn.functional.embedding(i, w),
        ((*ROWS, *PLACES[:3]), (real(2, 3), real(3), real(2, 3, 1))),
    ),
    "cross_entropy": Entry(
        function("nn.functional.cross_entropy"),
        (
            (real(2, 3), real(3), real(2, 3, 4)),
            (
                whole(2),
                whole(),
                whole(2, 4),
                np.array([0, 3]),
                np.array([0, -1]),
                np.array([0, -100]),
                real(2, 3),
                real(2),
                whole(2).astype(np.int32),
                whole(3),
            ),
        ),
    ),
    "nll_loss": Entry(
        function("nn.functional.nll_loss"),
        (
            (real(2, 3), real(3), real(2, 3, 4)),
            (whole(2), whole(), whole(2, 4), np.array([0, 3]), np.array([0, -1]), real(2, 3), whole(3)),
        ),
    ),
    "binary_cross_entropy": Entry(
        function("nn.functional.binary_cross_entropy"),
        ((np.full((2, 3), 0.5), np.full(3, 1.5)), (np.ones((2, 3)), np.ones(3), whole(2, 3))),
    ),
    "bce_with_logits": Entry(
        function("nn.functional.binary_cross_entropy_with_logits"),
        ((real(2, 3),), (np.ones((2, 3)), np.ones(3), np.ones((2, 1)))),
    ),
    "kl_div": Entry(function("nn.functional.kl_div"), ((real(2, 3),), (np.ones((2, 3)), np.ones(4), real(2, 3)))),
    "linear": Entry(
        function("nn.functional.linear"), (SHAPES, (real(4, 3), real(4, 2), real(3)), (None, real(4), real(3)))
    ),
    "layer_norm": Entry(function("nn.functional.layer_norm"), (SHAPES, ((3,), (2, 3), (2,), ()))),
    "group_norm": Entry(function("nn.functional.group_norm"), ((real(2, 4, 3), real(2, 4), real(4)), (2, 4, 3, 0, -1))),
    "conv1d": Entry(
        function("nn.functional.conv1d"),
        ((real(2, 3, 5), real(3, 5), real(3)), (real(4, 3, 2), real(4, 2, 2), real(4, 3), real(4, 3, 7))),
    ),
    "conv2d": Entry(
        function("nn.functional.conv2d"),
        (
            (real(2, 4, 5, 5), real(4, 5)),
            (real(4, 2, 2, 2), real(4, 4, 2, 2), real(3, 2, 2, 2)),
            (None, real(4), real(3)),
            (1, 2, 0, -1),
            (0, 1, -1),
            (1, 0),
            (1, 2, 3, 0),
        ),
    ),
    "max_pool1d": Entry(
        function("nn.functional.max_pool1d"),
        ((real(2, 3, 5), real(3, 5), real(5)), (2, 0, 7, -1), (None, 1, 0), (0, 1, 2, -1)),
    ),
    "avg_pool2d": Entry(
        function("nn.functional.avg_pool2d"),
        ((real(1, 3, 5, 5), real(3, 5, 5), real(5, 5)), (2, 0, 7, -1), (None, 1, 0), (0, 1, 2, -1)),
    ),
    "adaptive_avg_pool1d": Entry(
        function("nn.functional.adaptive_avg_pool1d"), ((real(2, 3, 5), real(5)), (2, 0, -1, 9))
    ),
    "fold": Entry(
        function("nn.functional.fold"),
        ((real(1, 4, 9), real(4, 9), real(1, 3, 9), real(1, 4, 8)), (4, (4, 4), 5, 0), (2, 0)),
    ),
    "unfold windows": Entry(function("nn.functional.unfold"), ((real(1, 1, 4, 4), real(4, 4)), (2, 5, 0, -1))),
    "glu": Entry(function("nn.functional.glu"), ((real(2, 4), real(2, 3), real()), (0, -1, 2))),
    "cosine_similarity": Entry(
        function("nn.functional.cosine_similarity"), ((real(2, 3),), (real(2, 3), real(3), real(2)), (0, 1, 2))
    ),
    "arange": Entry(function("arange"), ((0, 5, -1.5), (3, 0, -2), (1, 2, 0, -1, 0.5))),
    "linspace": Entry(function("linspace"), ((0, 1.5), (2, -1), (0, 1, 3, -1))),
    "eye": Entry(function("eye"), ((0, 2, -1), (3, -1, 0))),
    "zeros": Entry(function("zeros"), (((2, 3), (-1,), (2, -1), (), (0,)),)),
    "full": Entry(function("full"), (((2, 3), (-1,), (2, -1), ()), (1.5, 2, True))),
    "randint": Entry(lambda lib, low, high, size: lib.randint(low, high, size) * 0, ((0, 3), (3, 0, 5), ((2,), (-1,)))),
    "randperm": Entry(lambda lib, n: lib.randperm(n) * 0, ((0, 3, -1),)),
    "multinomial": Entry(
        lambda lib, x, n, r: lib.multinomial(x, n, r) * 0,
        (
            (
                np.ones(3),
                np.ones((2, 3)),
                -np.ones(3),
                np.zeros(3),
                np.ones((1, 1, 3)),
                np.array(1.0),
                np.full(3, np.nan),
                np.ones(3, int),
            ),
            (1, 3, 4, 0, -1),
            (True, False),
        ),
    ),
    "bernoulli": Entry(lambda lib, p: lib.bernoulli(p) * 0, ((np.full(3, 0.5), np.full(3, 1.5), np.full(3, -0.5)),)),
    "trapezoid": Entry(
        lambda lib, y, x, dim: lib.trapezoid(y, x, dim=dim), (SHAPES[:2], (real(3), real(2), real(2, 3)), (0, -1, 2))
    ),
    "cdist": Entry(function("cdist"), ((real(2, 3), real(3)), (real(4, 3), real(4, 2), real(3)))),
    "dist": Entry(function("dist"), ((real(2, 3),), (real(2, 3), real(3), real(4)))),
    "cov": Entry(function("cov"), (SHAPES,)),
    "unravel_index": Entry(
        lambda lib, i, s: lib.unravel_index(i, s),
        ((whole(2), np.array(7), np.array(-1), real(2)), ((2, 3), (3,), (-1, 3))),
    ),
    "nonzero": Entry(method("nonzero"), (SHAPES,)),
    "item": Entry(method("item"), (SHAPES,)),
    "atleast_2d": Entry(function("atleast_2d"), (SHAPES,)),
    "msort": Entry(function("msort"), (SHAPES,)),
    "kron": Entry(function("kron"), (SHAPES, (real(2), real(), real(1, 2, 1)))),
    "swapaxes": Entry(method("swapaxes"), (SHAPES, (0, 1, 3), (0, -1))),
    "normalize": Entry(function("nn.functional.normalize"), (SHAPES, (1, 2), (0, 1, 2))),
    "isin": Entry(function("isin"), (SHAPES[:2], (real(2), 1.0, real()))),
    "tril_indices": Entry(function("tril_indices"), ((2, 0, -1), (3, -1), (0, 1, -5))),
}


def calls(name: str) -> Iterator[tuple[Any, ...]]:
    """Return the combinations of an op's arguments: all, or `MOST` drawn by a fixed seed."""
    every = list(itertools.product(*TABLE[name].candidates))
    if len(every) > MOST:
        chosen = np.random.default_rng(len(every)).choice(len(every), MOST, replace=False)
        every = [every[at] for at in sorted(chosen)]
    yield from every


def told(args: tuple[Any, ...]) -> str:
    """Return the arguments as a text that names shapes and dtypes."""
    parts = [f"{x.dtype}{list(x.shape)}" if isinstance(x, np.ndarray) else repr(x) for x in args]
    return f"({', '.join(parts)})"
