"""Graphs drawn at random, compiled and run on one and two threads, against NumPy one instruction at a time."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from glassgrad.compile.ir.well_formed import verify
from tests.compile.graphs import Builder, Slice, interpret, lower, random_inputs

UNARY = ["negative", "exp", "tanh", "abs", "square", "relu", "sigmoid", "sign", "sin", "erf", "floor"]
BINARY = ["add", "subtract", "multiply", "divide", "maximum", "minimum"]
SHAPES = [(6, 20), (6, 1), (20,), (), (3, 6, 20), (3, 1, 20), (16, 16), (2, 3, 16)]


class Drawing:
    """Grows a graph by one op at a time from the values it has."""

    def __init__(self, draw, dtype):
        self.draw = draw
        self.b = Builder(dtype)
        count = draw(st.integers(1, 3))
        self.values = [self.b.input(*draw(st.sampled_from(SHAPES))) for _ in range(count)]

    def pick(self, allowed=lambda value: True):
        fitting = [value for value in self.values if allowed(value)]
        return self.draw(st.sampled_from(fitting)) if fitting else None

    def axes(self, value):
        return tuple(sorted(self.draw(st.sets(st.integers(0, len(value.shape) - 1), min_size=1))))

    def grow(self):
        kinds = ["unary"] * 2 + ["binary"] * 3 + ["reduce"] * 2 + ["shape", "where", "slice", "matmul"]
        kind = self.draw(st.sampled_from(kinds))
        made = getattr(self, f"_{kind}")()
        if made is not None and np.prod(made.shape) <= 4000:
            self.values.append(made)

    def _unary(self):
        return self.b(self.draw(st.sampled_from(UNARY)), self.pick())

    def _other(self, first):
        def fits(value):
            try:
                np.broadcast_shapes(first.shape, value.shape)
            except ValueError:
                return False
            return True

        return self.pick(fits)

    def _binary(self):
        first = self.pick()
        second = self._other(first) if self.draw(st.booleans()) else self.draw(st.sampled_from([0.5, 2, -1.5]))
        return self.b(self.draw(st.sampled_from(BINARY)), first, second)

    def _reduce(self):
        value = self.pick(lambda value: value.shape)
        if value is None:
            return None
        how = self.draw(st.sampled_from(["sum", "max", "min"]))
        return self.b(how, value, axis=self.axes(value), keepdims=self.draw(st.booleans()))

    def _where(self):
        first = self.pick()
        return self.b("where", self.b("greater", first, 0.1), first, self._other(first))

    def _shape(self):
        value = self.pick(lambda value: value.shape)
        if value is None:
            return None
        match self.draw(st.sampled_from(["flat", "permute", "front", "pad", "broadcast", "flip"])):
            case "flat":
                return value.reshape(int(np.prod(value.shape)))
            case "permute":
                return value.permute(*self.draw(st.permutations(range(len(value.shape)))))
            case "front":
                return value.reshape(1, *value.shape)
            case "pad":
                return value.pad(widths=((1, 2),) + ((0, 0),) * (len(value.shape) - 1), value=0.25)
            case "broadcast":
                return value.broadcast_to(shape=(2, *value.shape))
            case _:
                return value.flip(axis=(len(value.shape) - 1,))

    def _slice(self):
        value = self.pick(lambda value: value.shape and value.shape[0] > 2)
        if value is None:
            return None
        step = self.draw(st.sampled_from([None, 2, -1]))
        return value.getitem(spec=(Slice(-1, 0, -1) if step == -1 else Slice(1, None, step),))

    def _matmul(self):
        first = self.pick(lambda value: len(value.shape) > 1)
        if first is None:
            return None
        second = self.pick(lambda value: len(value.shape) == 2 and value.shape[0] == first.shape[-1])
        return first @ (second if second is not None else first.T)

    def graph(self):
        outputs = self.values[-self.draw(st.integers(1, 3)) :]
        return self.b.build(*outputs)


@st.composite
def graphs(draw, dtype):
    drawing = Drawing(draw, np.dtype(dtype))
    for _ in range(draw(st.integers(1, 14))):
        drawing.grow()
    return drawing.graph()


def same(got, want, exact, rtol):
    """Compare with a tolerance that allows for what a change in the last digit of the inputs would do."""
    with np.errstate(invalid="ignore"):
        return _same(got, want, exact, rtol)


def _same(got, want, exact, rtol):
    noise = np.abs(np.nan_to_num(want.astype(np.float64) - exact.astype(np.float64), posinf=0, neginf=0))
    finite = np.isfinite(want) & np.isfinite(exact)
    size = np.max(np.abs(want[finite]), initial=0.0)
    allowed = rtol * (np.abs(want) + size) + 50 * noise.max(initial=0)
    close = np.abs(got.astype(np.float64) - want.astype(np.float64)) <= allowed
    alike = (got == want) | (np.isnan(got) & np.isnan(want))
    return bool(np.all(close | alike | ~finite))


@pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["one", "every"])
@pytest.mark.parametrize(("dtype", "rtol"), [("f4", 1e-5), ("f8", 1e-12)])
def test_compiled_graphs_agree_with_numpy(dtype, rtol, every):
    @settings(max_examples=30)
    @given(graph=graphs(dtype), seed=st.integers(0, 5))
    def check(graph, seed):
        verify(graph)
        arrays = random_inputs(graph, seed)
        want, _ = interpret(graph, arrays)
        # The same program on inputs that differ in the last digit: how well-conditioned it is.
        moved, _ = interpret(graph, [array * array.dtype.type(1 + 4 * np.finfo(dtype).eps) for array in arrays])
        for threads in (1, 2) if every else (1 + seed % 2,):
            for got, expected, near in zip(lower(graph, threads=threads)(*arrays), want, moved, strict=True):
                assert got.shape == expected.shape
                assert got.dtype == expected.dtype
                assert same(got, expected, near, rtol), (str(graph), got, expected)

    check()


def test_products_of_all_layouts():
    rng = np.random.default_rng(5)
    sizes = [(1, 1, 1), (5, 3, 2), (9, 48, 7), (14, 32, 256), (31, 50, 257), (64, 47, 513), (100, 129, 30)]
    for dtype, rtol in (("f4", 2e-5), ("f8", 1e-12)):
        for m, n, k in sizes:
            for left in (False, True):
                for right in (False, True):
                    b = Builder(np.dtype(dtype))
                    a, c = b.input(*((k, m) if left else (m, k))), b.input(*((n, k) if right else (k, n)))
                    graph = b.build((a.T if left else a) @ (c.T if right else c))
                    arrays = [rng.normal(size=var.shape).astype(dtype) for var in graph.inputs]
                    want = (arrays[0].T if left else arrays[0]) @ (arrays[1].T if right else arrays[1])
                    threads = 1 + (m + n + left) % 3
                    got = lower(graph, threads=threads)(*arrays)[0]
                    np.testing.assert_allclose(got, want, rtol=rtol, atol=rtol * np.abs(want).max())


def test_products_of_different_widths_in_one_program():
    """Each product has its own panels: what one packs must not be laid out for another."""
    rng = np.random.default_rng(6)
    widths = (16, 32, 64, 100)
    for first, second in ((a, b) for a in widths for b in widths if a < b):
        for right in (False, True):
            b = Builder(np.dtype("f4"))
            shapes = [(width, 16) if right else (16, width) for width in (first, second)]
            a, c, d = b.input(9, 16), *(b.input(*shape) for shape in shapes)
            graph = b.build(a @ (c.T if right else c), a @ (d.T if right else d))
            arrays = [rng.normal(size=var.shape).astype("f4") for var in graph.inputs]
            want = [arrays[0] @ (array.T if right else array) for array in arrays[1:]]
            for got, expected in zip(lower(graph, threads=1)(*arrays), want, strict=True):
                np.testing.assert_allclose(got, expected, rtol=2e-5, atol=2e-5)
