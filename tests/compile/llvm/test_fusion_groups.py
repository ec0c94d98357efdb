"""The instructions that share a loop nest: only the grouping is tested, without code."""

from __future__ import annotations

import numpy as np
import pytest

from glassgrad.compile.plan.fusion import LoopOp, fuse
from glassgrad.compile.plan.view_chains import only_moves
from glassgrad.ops.places import Slice
from tests.compile.graphs import Builder

ALL = Slice(None, None, None)
TABLE = {
    **dict.fromkeys(["add", "multiply", "subtract", "divide", "exp", "tanh", "negative"], LoopOp()),
    **dict.fromkeys(["sum", "max"], LoopOp(reduces=True)),
}


def softmax(x):
    e = (x - x.max(1, keepdims=True)).exp()
    return e / e.sum(1, keepdims=True)


def chain(x, length):
    for _ in range(length):
        x = x + 1
    return x


def read_by_two(s, x, y):
    e = s.exp()
    return x * e, y * e


def split_by_the_first_reader(x, y):
    double = x * 2
    return double.reshape(12, 9, 4) + y, double + 1


def split_by_the_second_reader(x, y):
    double = x * 2
    return double + 1, double.reshape(12, 9, 4) + y


def split_and_cut(size):
    def function(x, y, z):
        double = x * 2
        return double.reshape(3, 9, 4) + y, double.getitem(spec=(ALL, Slice(0, size, 1))) + z

    return function


def turned(x):
    double = x * 2
    return double + double.T


def around(x, w):
    near = x + 1
    return near.exp() + (near @ w) * near


def around_two(x, w):
    near = x + 1
    return near.exp() + ((near @ w) @ w) * near


def beside_a_product(x, w):
    near = x + 1
    product = near @ w
    return product, near.exp()


def summed_and_split(x, y):
    double = x * 2
    return double.sum(1), double.reshape(12, 9, 4) + y


def one_of_all(row):
    return lambda x, y: (x * 2).getitem(spec=(Slice(row, row + 1, 1), ALL)) + y


def turned_around(x):
    return (x * 2).getitem(spec=(ALL, Slice(None, None, -1))) + 1


def three_levels(s, x, z):
    return (x * s.exp()).reshape(64, 20, 1) * z


def part_of_a_split_axis(s, x):
    e = s.exp()
    return (x * 2).reshape(3, 9, 4) * e


# name -> (function, shapes of the inputs, the groups: their members, the extents of outer and of inner axes)
CASES = {
    "softmax": (softmax, [(33, 50)], ["max subtract exp sum divide [33] [50]"]),
    "softmax of a small nest": (softmax, [(8, 2048)], ["max subtract exp sum divide [8] [2048]"]),
    "softmax of an element too many": (
        softmax, [(5, 3277)], ["max [5] [3277]", "subtract exp sum [5] [3277]", "divide [5, 3277] []"],
    ),
    "softmax of few long rows": (
        softmax, [(8, 2049)], ["max [8] [2049]", "subtract exp sum [8] [2049]", "divide [8, 2049] []"],
    ),
    "softmax of enough rows": (softmax, [(16, 1025)], ["max subtract exp sum divide [16] [1025]"]),
    "softmax of a row less": (
        softmax, [(15, 1100)], ["max [15] [1100]", "subtract exp sum [15] [1100]", "divide [15, 1100] []"],
    ),
    "as many as a nest holds": (lambda x: chain(x, 120), [(7,)], [" ".join(["add"] * 120) + " [7] []"]),
    "one more": (lambda x: chain(x, 121), [(7,)], ["add [7] []", " ".join(["add"] * 120) + " [7] []"]),
    "a few scalars for two": (
        read_by_two, [(64, 1), (64, 100), (64, 90)], ["exp [64] []", "multiply [64, 100] []", "multiply [64, 90] []"],
    ),
    "more of them": (
        read_by_two, [(65, 1), (65, 100), (65, 90)], ["exp multiply [65] [100]", "multiply [65, 90] []"],
    ),
    "of one reader": (lambda s, x: x * s.exp(), [(64, 1), (64, 100)], ["exp multiply [64] [100]"]),
    "a row for all rows": (lambda s, x: x * s.exp(), [(64,), (100, 64)], ["exp [64] []", "multiply [64, 100] []"]),
    "a scalar, small": (lambda s, x: x * s.exp(), [(), (2, 1024)], ["exp multiply [] [2, 1024]"]),
    "a scalar, larger": (lambda s, x: x * s.exp(), [(), (3, 683)], ["exp [] []", "multiply [3, 683] []"]),
    "split by the first": (
        split_by_the_first_reader, [(12, 36), (9, 4)], ["multiply add add [4, 9, 12] []"],
    ),
    "split by the second": (
        split_by_the_second_reader, [(12, 36), (9, 4)], ["multiply add add [4, 9, 12] []"],
    ),
    "the start of what was split": (
        split_and_cut(4), [(3, 36), (9, 4), (4,)], ["multiply add [3, 4, 9] []", "add [3, 4] []"],
    ),
    "a little more": (split_and_cut(5), [(3, 36), (9, 4), (5,)], ["multiply add [3, 4, 9] []", "add [3, 5] []"]),
    "half of it": (split_and_cut(18), [(3, 36), (9, 4), (18,)], ["multiply add [3, 4, 9] []", "add [3, 18] []"]),
    "two thirds": (split_and_cut(24), [(3, 36), (9, 4), (24,)], ["multiply add [3, 4, 9] []", "add [3, 24] []"]),
    "the first half": (
        lambda x: (x * 2).getitem(spec=(Slice(0, 6, 1), ALL)) + 1, [(12, 9)], ["multiply [9, 12] []", "add [6, 9] []"],
    ),
    "a matrix and itself turned": (turned, [(9, 9)], ["multiply [9, 9] []", "add [9, 9] []"]),
    "a part": (
        lambda x: (x * 2).getitem(spec=(Slice(1, 9, 1), ALL)) + 1, [(12, 9)], ["multiply [9, 12] []", "add [8, 9] []"],
    ),
    "the first part": (
        lambda x: (x * 2).getitem(spec=(Slice(0, 9, 1), ALL)) + 1, [(12, 9)], ["multiply [9, 12] []", "add [9, 9] []"],
    ),
    "every other": (
        lambda x: (x * 2).getitem(spec=(Slice(None, None, 2), ALL)) + 1, [(12, 9)],
        ["multiply [9, 12] []", "add [6, 9] []"],
    ),
    "one row": (
        lambda x: (x * 2).getitem(spec=(Slice(0, 1, 1), ALL)) + 1, [(12, 9)], ["multiply [9, 12] []", "add [9] []"],
    ),
    "an uneven reshape of the same shape": (
        lambda x: (x + 1).T.reshape(4, 6) * 2, [(4, 6)], ["add [4, 6] []", "multiply [4, 6] []"],
    ),
    "beside rows of another length": (
        lambda x, y: y + x.sum(1, keepdims=True), [(33, 50), (33, 40)], ["sum [33] [50]", "add [33, 40] []"],
    ),
    "beside rows of the same length": (
        lambda x, y: y + x.sum(1, keepdims=True), [(33, 50), (33, 50)], ["sum add [33] [50]"],
    ),
    "what both read, in another order": (
        lambda x: x.permute(0, 2, 1) - x.sum(1, 2, keepdims=True), [(33, 5, 6)], ["sum subtract [33] [5, 6]"],
    ),
    "sums of both axes": (lambda x: x.exp().sum(0) + x.exp().sum(1), [(20, 20)],
                          ["exp sum exp sum add [20] [20]"]),
    "a sum of sums": (lambda x: x.sum(1).exp().sum(0), [(20, 30)], ["sum [20] [30]", "exp sum [] [20]"]),
    "no axes left": (lambda x: x.sum(0, 1).exp(), [(20, 30)], ["sum exp [] [20, 30]"]),
    "after a sum of few results": (lambda x: x.sum(1).exp() + 1, [(3, 9000)], ["sum exp add [3] [9000]"]),
    "around a product": (
        around, [(40, 40), (40, 40)], ["add [40, 40] []", "matmul", "exp multiply add [40, 40] []"],
    ),
    "around two products": (
        around_two, [(40, 40), (40, 40)], ["add [40, 40] []", "matmul", "matmul", "exp multiply add [40, 40] []"],
    ),
    "beside a product": (beside_a_product, [(40, 40), (40, 40)], ["add exp [40, 40] []", "matmul"]),
    "summed, and split by another": (summed_and_split, [(12, 36), (9, 4)], ["multiply sum add [12] [4, 9]"]),
    "the first row for all rows": (one_of_all(0), [(12, 9), (12, 9)], ["multiply [9, 12] []", "add [9, 12] []"]),
    "the second row for all rows": (one_of_all(1), [(12, 9), (12, 9)], ["multiply [9, 12] []", "add [9, 12] []"]),
    "turned around": (turned_around, [(12, 9)], ["multiply [9, 12] []", "add [9, 12] []"]),
    "three levels": (three_levels, [(64, 1), (64, 20), (64, 20, 7)], ["exp [64] []", "multiply multiply [20, 64] [7]"]),
    "part of a split axis": (part_of_a_split_axis, [(3, 9, 1), (3, 36)], ["exp multiply multiply [3, 9] [4]"]),
}  # fmt: skip  # a table


def grouped(name, alone=(), hosts=()):
    function, shapes, wanted = CASES[name]
    b = Builder(np.dtype("f4"))
    outputs = function(*[b.input(*shape) for shape in shapes])
    graph = b.build(*(outputs if isinstance(outputs, tuple) else (outputs,)))
    chosen = [{instr for instr in graph.instrs if instr.op in ops} for ops in (hosts, alone)]
    fusion, groups = fuse(graph, TABLE, {instr for instr in graph.instrs if only_moves(instr)}, *chosen)
    return graph, fusion, groups, wanted


def told(group):
    ops = " ".join(instr.op for instr in group.members)
    outer, inner = (sorted(group.extents[axis] for axis in axes) for axes in (group.outer, group.inner))
    return ops if group.solid else f"{ops} {outer} {inner}"


@pytest.mark.parametrize("name", CASES)
def test_groups(name):
    graph, _, groups, wanted = grouped(name)
    assert [told(group) for group in groups] == wanted
    made = set()
    for group in groups:
        made |= {out for instr in group.members for out in instr.outputs}
        assert {base for base in group.bases if base in graph.producers()} <= made


def test_who_is_alone_shares_with_nobody():
    _, _, groups, _ = grouped("softmax", alone=("exp",))
    assert [told(group) for group in groups] == ["max subtract [33] [50]", "exp [33, 50] []", "sum divide [33] [50]"]


def test_what_the_host_computes_is_no_loop():
    _, _, groups, _ = grouped("softmax", hosts=("exp",))
    assert [told(group) for group in groups] == ["max subtract [33] [50]", "exp", "sum divide [33] [50]"]


def test_who_reads_what_is_known():
    graph, fusion, _, _ = grouped("split by the second")
    double = graph.instrs[0].output
    assert [instr.op for instr in fusion.users[double]] == ["add", "add"]
    assert double not in {base for base in fusion.users if base not in graph.producers()}


@pytest.mark.parametrize("keepdims", [False, True])
def test_a_sum_reads_along_the_axes_it_reduces(keepdims):
    b = Builder(np.dtype("f4"))
    x = b.input(3, 5, 7)
    graph = b.build(x.sum(1, keepdims=keepdims))
    fusion, (group,) = fuse(graph, TABLE, set(), set())
    ((base, indices),) = fusion.reads_of(group, x.var)
    assert base is x.var
    assert [[group.extents[axis] for axis in index.axes] for index in indices] == [[3], [5], [7]]
    assert [index.axes <= group.inner for index in indices] == [False, True, False]
    assert fusion.reads_of(group, graph.instrs[0].output) == []
