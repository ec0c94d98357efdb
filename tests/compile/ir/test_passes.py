"""Each pass on small graphs: what it removes, and that the program still computes the same numbers."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest

import glassgrad as gg
from glassgrad.compile import report
from glassgrad.compile.front.capture import capture
from glassgrad.compile.ir import passes
from glassgrad.compile.ir.evaluate import evaluate
from glassgrad.compile.ir.graph import GraphBuilder
from glassgrad.compile.ir.passes.rules import RULES_TEXT, rule
from glassgrad.nn import functional as F


def traced(function, *args):
    return capture(function, args, {}, names=["x", "y", "z"]).graph


def ops(graph):
    return [instr.op for instr in graph.instrs]


def results(graph, arrays):
    values = evaluate(graph, arrays)
    return [values[out] for out in graph.outputs]


def standard(function, *args):
    graph = traced(function, *args)
    better = passes.run(graph)
    arrays = [arg.array for arg in args]
    for one, other in zip(results(better, arrays), results(graph, arrays), strict=True):
        np.testing.assert_array_equal(one, other)
    return ops(better)


X = gg.tensor([[1.0, -2.0, 3.0], [0.5, 0.25, -1.0]])
Y = gg.tensor([[2.0, 2.0, -1.0], [1.0, 3.0, 4.0]])


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda x: (x * 3, x + 1)[0], ["multiply"]),
        (lambda x: (0 - (-x)) * 1 + 0, ["copy"]),
        (lambda x: x.reshape(6).reshape(3, 2).reshape(6) * 2, ["reshape", "multiply"]),
        (lambda x: x.T.T * 2, ["multiply"]),
        (lambda x: x.sum(0, keepdim=True).reshape(3), ["sum"]),
        (lambda x: (-x).sum(), ["sum", "negative"]),
        (lambda x: x.exp() + x.exp(), ["exp", "add"]),
        (lambda x: x.clone().float() / 1, ["copy"]),
        (lambda x: x + x[:1].expand(2, 3), ["getitem", "add"]),
        (lambda x: 1 / x.sqrt(), ["rsqrt"]),
        (lambda x: (x @ gg.ones(3, 3)).T @ x, ["permute_dims", "matmul", "matmul"]),
        (lambda x: gg.arange(4).float().exp().sum() * x, ["multiply"]),
    ],
)
def test_what_remains(function, expected):
    with np.errstate(invalid="ignore"):
        assert standard(function, X) == expected


def test_a_transposed_product_is_one_product():
    found = standard(lambda x, y: (x.T @ y).T, X, Y)
    assert found.count("matmul") == 1
    assert found == ["permute_dims", "matmul"]


def test_states_that_are_exchanged_keep_their_values():
    a, b = gg.tensor([1.0]), gg.tensor([2.0])

    def swap():
        first, second = a * 1, b * 1
        a.copy_(second)
        b.copy_(first)

    for backend in ("numpy", "llvm"):
        gg.compile(swap, backend=backend)()
    assert (a.item(), b.item()) == (1.0, 2.0)
    gg.compile(swap, backend="numpy")()
    assert (a.item(), b.item()) == (2.0, 1.0)


def test_results_do_not_share_memory_with_state_or_each_other():
    state = gg.tensor([[1.0, 2.0]])

    @gg.compile(backend="numpy")
    def run():
        state.mul_(2)
        return state.view(2), state * 1, state * 1

    flat, one, other = run()
    run()
    assert flat.tolist() == [2.0, 4.0]
    assert one.tolist() == other.tolist() == [[2.0, 4.0]]
    assert not np.shares_memory(one.array, other.array)


@pytest.mark.parametrize(("left", "right"), RULES_TEXT, ids=[f"{left} -> {right}" for left, right in RULES_TEXT])
def test_every_rewrite_keeps_the_numbers(left, right):
    """Both sides are evaluated on numbers of all kinds; they may differ in the sign of a zero only."""
    rng = np.random.default_rng(5)
    space = {name: rng.normal(size=64) for name in "xyab"}
    for value in space.values():
        value[:6] = [0.0, -0.0, np.inf, -np.inf, np.nan, 1e300]
    functions = {
        "square": np.square, "abs": np.abs, "reciprocal": lambda x: 1 / x, "sqrt": np.sqrt,
        "rsqrt": lambda x: 1 / np.sqrt(x), "where": np.where, "logical_not": np.logical_not, "maximum": np.maximum,
        "minimum": np.minimum, "relu": lambda x: np.maximum(x, 0), "copy": np.copy, "alias": np.copy,
    }  # fmt: skip  # a table
    if "logical_not" in left or left.startswith("where"):
        space["x"] = rng.random(64) < 0.5
    with np.errstate(all="ignore"):
        one, other = (eval(side, dict(functions), space) for side in (left, right))  # noqa: S307 - our own table
    np.testing.assert_array_equal(one, other)
    assert rule(left, right).op


def test_composites_are_written_out():
    graph = traced(lambda x: (x.softmax(1), x.log_softmax(0), x.logsumexp(1)), X)
    plain = passes.decompose(graph)
    assert not {"softmax", "log_softmax", "logsumexp"} & set(ops(plain))
    for one, other in zip(results(plain, [X.array]), results(graph, [X.array]), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6)


def test_constants_are_folded_and_not_blown_up():
    builder = GraphBuilder()
    small = builder.constant(np.ones((), np.float32))
    shape = (4096, 4096)
    wide = builder.apply("broadcast_to", [small], shape, np.float32, {"shape": shape})
    total = builder.apply("exp", [small], (), np.float32)
    folded = passes.fold(builder.build([wide, total]))
    assert ops(folded) == ["broadcast_to"]


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
def test_what_has_no_elements_is_known(backend):
    def run(x, y):
        x, y = (one.detach().requires_grad_() for one in (x, y))
        (gg.where(x > y, x, y) * 2.0).sum().backward()
        return x.grad, y.grad

    empty, row = gg.zeros(0, 3), gg.ones(3)
    for one, other in zip(gg.compile(run, backend=backend)(empty, row), run(empty, row), strict=True):
        np.testing.assert_array_equal(one.array, other.array)


def test_a_pass_may_be_checked():
    seen = []
    passes.run(traced(lambda x: x * 2 + 0, X), check=lambda graph: seen.append(len(graph.instrs)))
    assert len(seen) == len(passes.STANDARD)


def test_the_plan_fits_into_a_terminal():
    weights = [gg.ones(64, 64) for _ in range(3)]

    def run(x):
        for weight in weights:
            x = F.softmax(F.gelu(x @ weight), -1) * 2 + F.layer_norm(x, (64,))
        return x

    step = gg.compile(run, backend="llvm", threads=1)
    step(gg.ones(32, 64))
    wide, narrow = io.StringIO(), io.StringIO()
    step.explain(wide)
    narrow.write(report.table(step._latest, "llvm", [], width=80))
    for text, most in ((wide.getvalue(), 100), (narrow.getvalue(), 80)):
        place = len(f"{Path(__file__).name}:000") + len("tests/compile/ir/")
        assert max(map(len, text.splitlines())) <= most + place
        assert len(text.splitlines()) == step.stats.kernels + 4
    assert len(max(narrow.getvalue().splitlines(), key=len)) < len(max(wide.getvalue().splitlines(), key=len))
