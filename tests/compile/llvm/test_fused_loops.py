"""Loop nests: the fused instructions, and that fused code computes NumPy's results, on one thread and on two."""

from __future__ import annotations

import numpy as np
import pytest

from glassgrad.ops.places import PLACES
from tests.compile.graphs import ARRAY, Builder, Slice, agree, interpret, lower, random_inputs

ALL = Slice(None, None, None)


def softmax(b, x):
    e = (x - x.max(-1, keepdims=True)).exp()
    return e / e.sum(-1, keepdims=True)


def layer_norm(b, x, gain, bias):
    d = x - x.mean(-1, keepdims=True)
    return d * ((d * d).mean(-1, keepdims=True) + 1e-5).rsqrt() * gain + bias


def batch_norm(b, x, gain, bias):
    mean = x.mean(0, keepdims=True)
    d = x - mean
    var = d.square().mean(0, keepdims=True)
    return (d * (var + 1e-5).rsqrt() * gain + bias).tanh(), mean * 0.1, var * 0.9


def batch_norm_2d(b, x, gain):
    d = x - x.mean(0, 2, 3, keepdims=True)
    return d * (d.square().mean(0, 2, 3, keepdims=True) + 1e-5).rsqrt() * gain.reshape(1, 5, 1, 1)


def around(x, w):
    return x.exp() + (x @ w) * x


def gelu(b, x):
    return 0.5 * x * (1 + (x * 0.7071067811865476).erf())


def slope_and_column_sums(b, x, bias):
    """Elementwise work, its result, and sums down its columns: what a layer's backward pass consists of."""
    d = (x + bias).tanh() * x
    return d, d.sum(0), (d * x).sum(0)


def adam(b, p, g, m, v, rate):
    m = 0.9 * m + 0.1 * g
    v = 0.999 * v + 0.001 * (g * g)
    return p - rate * m / (v.sqrt() + 1e-8), m, v


# name -> (function, shapes of the inputs, with a dtype where it is not the float, most kernels it may take)
CASES = {
    "softmax": (softmax, [(33, 50)], 1),
    "softmax of long rows": (softmax, [(7, 1000)], 1),
    "softmax in four dimensions": (softmax, [(2, 3, 5, 64)], 1),
    "softmax over rows": (lambda b, x: softmax(b, x.T), [(20, 7)], 1),
    "layer norm": (layer_norm, [(12, 64, 128), (128,), (128,)], 1),
    "layer norm of odd rows": (layer_norm, [(12, 77), (77,), (77,)], 1),
    # Sums of a row that two threads share meet in kernels of their own: the mean, and its correction with the variance.
    "layer norm of long rows": (layer_norm, [(3, 7001), (7001,), (7001,)], 4),
    "batch norm": (batch_norm, [(32, 200), (200,), (200,)], 1),
    "batch norm of few features": (batch_norm, [(9, 7), (7,), (7,)], 1),
    "batch norm of images": (batch_norm_2d, [(3, 5, 6, 7), (5,)], 1),
    "gelu": (gelu, [(100, 37)], 1),
    "adam": (adam, [(100, 37), (100, 37), (100, 37), (100, 37), ()], 1),
    "columns of a large array": (slope_and_column_sums, [(300, 210), (210,)], 3),
    "columns of many short blocks": (
        lambda b, x: (x.reshape(9, 40, 33) * 2 + 1).permute(1, 0, 2).sum(0, 1), [(360, 33)], 2,
    ),
    "columns of each of several blocks": (lambda b, x: (x * x).sum(1), [(5, 70, 130)], 1),
    "sum of all": (lambda b, x: (x * x).sum(), [(1000, 37)], 2),
    "means over axes": (
        lambda b, x: (x.mean(0), x.mean(1), x.mean(2), x.mean(0, 2), x.mean(0, 1), x.mean(1, 2)), [(12, 9, 37)], 6,
    ),
    "sum of a transposed array": (lambda b, x: x.T.sum(1), [(12, 37)], 1),
    "transposed copy": (lambda b, x: x.T * 2, [(12, 37)], 1),
    "reshape in a chain": (lambda b, x, y: (x * 2).reshape(12, 9, 4) + y, [(12, 36), (9, 4)], 1),
    "reshape after permute": (lambda b, x: x.permute(1, 0, 2).reshape(9, 48) * 2, [(12, 9, 4)], 1),
    "reshape of a slice": (lambda b, x: x.getitem(spec=(ALL, Slice(4, 16, None))).reshape(12, 3, 4) * 2, [(12, 20)], 1),
    "slice of a reshape": (lambda b, x: x.reshape(60).getitem(spec=(Slice(3, 50, 2),)) * 2, [(10, 6)], 1),
    "reshape across uneven dimensions": (lambda b, x: x.T.reshape(8, 3) * 2, [(4, 6)], 2),
    "attention heads": (
        lambda b, q, k: q.reshape(2, 10, 4, 8).permute(0, 2, 1, 3) @ k.reshape(2, 10, 4, 8).permute(0, 2, 3, 1),
        [(2, 10, 32), (2, 10, 32)], 1,
    ),
    "products of transposed arrays": (lambda b, x, y: (x @ y.T, x.T @ x, y @ x.T), [(12, 9), (7, 9)], 3),
    "batch of products": (lambda b, x, y: x @ y, [(3, 12, 9), (9, 7)], 1),
    "broadcast batch of products": (lambda b, x, y: x @ y, [(3, 1, 12, 9), (2, 9, 7)], 1),
    "rows, a column, backwards": (
        lambda b, x: (
            x.getitem(spec=(Slice(1, 9, 2), ALL)) * 2, x.getitem(spec=(ALL, 3)),
            x.getitem(spec=(Slice(None, None, -1),)),
        ),
        [(12, 9)], 3,
    ),
    "slice of a result": (lambda b, x: (x * 2).getitem(spec=(Slice(1, 9, 2), ALL)) + 1, [(12, 9)], 2),
    "pad": (lambda b, x: x.pad(widths=((1, 2), (3, 0)), value=1.5) * 2, [(12, 9)], 1),
    "concatenate": (lambda b, x, y: b("concat", x, y * 2, axis=1) * 2, [(12, 9), (12, 5)], 2),
    "concatenate rows": (lambda b, x, y: b("concat", x, y, axis=0) * 2, [(12, 9), (5, 9)], 1),
    "rows": (lambda b, w, i: w.getitem(i, spec=(ARRAY,)) * 2, [(5, 9), ((6, 3), "i8")], 1),
    "embedding": (lambda b, w, i: w.getitem(i, spec=(PLACES,)) * 2, [(5, 9), ((6, 3), "u1")], 1),
    "pick one a row": (
        lambda b, w, i, j: w.getitem(i, j, spec=(ARRAY, ARRAY)), [(5, 9), ((6,), "i8"), ((6,), "i4")], 1,
    ),
    "arrays apart": (
        lambda b, w, i, j: w.getitem(i, j, spec=(ARRAY, ALL, ARRAY)) * 2, [(5, 4, 9), ((6,), "i8"), ((6,), "i8")], 1,
    ),
    "take along rows": (lambda b, w, i: w.take_along_axis(i, axis=1), [(6, 9), ((6, 2), "u8")], 1),
    "take along columns": (lambda b, w, i: w.take_along_axis(i, axis=0), [(6, 9), ((3, 9), "u4")], 1),
    "one hot": (lambda b, i: i.one_hot(count=7), [((6,), "u8")], 1),
    "argmax": (
        lambda b, x: (b("argmax", x, axis=1, keepdims=False), b("argmin", x, axis=0, keepdims=True),
                      b("argmax", x, axis=None, keepdims=False)), [(60, 90)], 3,
    ),
    "triangles": (lambda b, x: (x.tril(diagonal=0), x.triu(diagonal=-1)), [(6, 9)], 2),
    "roll": (lambda b, x: x.roll(shift=(2, -3), axis=(1, 0)), [(6, 9)], 1),
    "flip": (lambda b, x: x.flip(axis=(1,)) + x, [(6, 40)], 1),
    "comparisons": (
        lambda b, x, y: (x > y, b("where", x > 0, x, y), (x > 0).astype(dtype=np.dtype("f4"))), [(6, 9), (6, 9)], 3,
    ),
    "any and all": (lambda b, x: (b("any", x > 1, axis=(1,), keepdims=False),
                                  b("all", x > -1, axis=(0,), keepdims=False)), [(6, 90)], 3),
    "sums over axes of size one": (
        lambda b, x: (
            x.sum(0, keepdims=True).sum(0), x.sum(1, keepdims=True).max(1) * 2, x.sum(0, 1, keepdims=True).sum(0),
        ),
        [(6, 20)], 3,
    ),
    # What makes x + 1 cannot run with what reads it at the end: the product in between waits for it.
    "around a product": (lambda b, x, w: around(x + 1, w), [(40, 40), (40, 40)], 3),
    "scalars": (lambda b, x: (x + 1) * 2, [()], 1),
    "a scalar's chain": (lambda b, x, s: x * (s * 2).exp(), [(3000, 33), ()], 2),
    "a column's chain": (lambda b, x, s: x * (s * 2).exp() + x.sum(1, keepdims=True), [(300, 33), (300, 1)], 1),
}  # fmt: skip  # a table


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("name", CASES)
def test_agrees_with_numpy(name, dtype):
    function, shapes, most = CASES[name]
    b = Builder(np.dtype(dtype))
    inputs = [b.input(*s[0], dtype=s[1]) if s and isinstance(s[0], tuple) else b.input(*s) for s in shapes]
    outputs = function(b, *inputs)
    graph = b.build(*(outputs if isinstance(outputs, tuple) else (outputs,)))
    arrays = random_inputs(graph)
    want, _ = interpret(graph, arrays)
    for threads in (1, 2):
        step = lower(graph, threads=threads)
        assert len(step.explain()) <= most, step.explain()
        for got, expected in zip(step(*arrays), want, strict=True):
            agree(got, expected)
