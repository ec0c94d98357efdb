"""Negative indices: functions with PyTorch's names refuse them, NumPy's and x[index] count from the end.

PyTorch itself decides which calls must be refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import glassgrad as gg
from glassgrad import errors
from tests.ops.against_torch import agree_in_two_orders

torch = pytest.importorskip("torch", reason="PyTorch is the oracle")

LIBS = {"glassgrad": gg, "torch": torch}

# (lib, index of shape (2,)) to a result; tables have 4 rows or 3 classes.
USES: dict[str, Callable[[Any, Any], Any]] = {
    "embedding": lambda lib, i: lib.nn.functional.embedding(i, lib.ones(4, 3)),
    "embedding of limited norm": lambda lib, i: lib.nn.functional.embedding(i, lib.ones(4, 3), max_norm=1.0),
    "embedding scaled": lambda lib, i: lib.nn.functional.embedding(i, lib.ones(4, 3), scale_grad_by_freq=True),
    "embedding_bag": lambda lib, i: lib.nn.functional.embedding_bag(i.reshape(1, 2), lib.ones(4, 3)),
    "gather": lambda lib, i: lib.gather(lib.ones(4, 3), 0, i.reshape(2, 1)),
    "index_select": lambda lib, i: lib.index_select(lib.ones(4, 3), 0, i),
    "index_select columns": lambda lib, i: lib.ones(3, 4).index_select(1, i),
    "scatter": lambda lib, i: lib.scatter(lib.ones(4, 3), 0, i.reshape(2, 1), 5.0),
    "scatter in rows": lambda lib, i: lib.scatter(lib.ones(3, 4), 1, i.reshape(1, 2), 5.0),
    "scatter_add in rows": lambda lib, i: lib.ones(3, 4).scatter_add(1, i.reshape(1, 2), lib.ones(1, 2)),
    "scatter of one number": lambda lib, i: lib.ones(4).scatter(0, i[1], 5.0),
    "scatter_add of one number": lambda lib, i: lib.ones(4).scatter_add(0, i[1], lib.tensor(5.0)),
    "scatter_reduce of one number": lambda lib, i: lib.ones(4).scatter_reduce(0, i[1], lib.tensor(5.0), "amax"),
    "gather of one number": lambda lib, i: lib.gather(lib.arange(4), 0, i[1]),
    "scatter_add to one number": lambda lib, i: lib.tensor(1.0).scatter_add(0, i[1] * 0, lib.tensor(5.0)),
    "scatter into one number": lambda lib, i: lib.tensor(1.0).scatter(0, i[1], 5.0),
    "index_select of columns": lambda lib, i: lib.ones(3, 4).index_select(1, i),
    "scatter_add": lambda lib, i: lib.ones(4, 3).scatter_add(0, i.reshape(2, 1), lib.ones(2, 1)),
    "scatter_reduce": lambda lib, i: lib.ones(4, 3).scatter_reduce(0, i.reshape(2, 1), lib.ones(2, 1), "amax"),
    "index_add": lambda lib, i: lib.ones(4, 3).index_add(0, i, lib.ones(2, 3)),
    "index_copy": lambda lib, i: lib.ones(4, 3).index_copy(0, i, lib.ones(2, 3)),
    "index_fill": lambda lib, i: lib.ones(4, 3).index_fill(0, i, 2.0),
    "index_put": lambda lib, i: lib.ones(4, 3).index_put((i,), lib.ones(2, 3)),
    "x[index]": lambda lib, i: lib.ones(4, 3)[i],
    "take": lambda lib, i: lib.take(lib.ones(2, 2), i),
    "take_along_dim": lambda lib, i: lib.take_along_dim(lib.arange(4.0).reshape(4, 1), i.reshape(2, 1), 0),
    "one_hot": lambda lib, i: lib.nn.functional.one_hot(i, 4),
    "nll_loss": lambda lib, i: lib.nn.functional.nll_loss(lib.zeros(2, 4), i),
    "cross_entropy": lambda lib, i: lib.nn.functional.cross_entropy(lib.zeros(2, 4), i, label_smoothing=0.1),
    "multi_margin_loss": lambda lib, i: lib.nn.functional.multi_margin_loss(lib.zeros(2, 4), i),
}


def outcome(lib: Any, use: Callable[[Any, Any], Any], index: list[int]) -> Any:
    """Return the numbers, or None where the library refuses."""
    try:
        return np.asarray(use(lib, lib.tensor(index)))
    except (IndexError, RuntimeError):
        return None


@pytest.mark.parametrize("index", [[0, -1], [0, 4], [3, 0]], ids=["negative", "behind the end", "in range"])
@pytest.mark.parametrize("name", USES)
def test_refuses_what_torch_refuses(name: str, index: list[int]) -> None:
    mine, theirs = (outcome(lib, USES[name], index) for lib in LIBS.values())
    if name == "take_along_dim" and index == [0, 4]:
        assert mine is None  # PyTorch takes 4 modulo the size, NumPy refuses it
        return
    assert (mine is None) == (theirs is None)
    if theirs is not None:
        np.testing.assert_allclose(mine, theirs, rtol=1e-6)


# These look at their indices, which can be no arguments of a step then.
NEEDS_NUMBERS = {"embedding of limited norm", "embedding scaled", "embedding_bag"}


@pytest.mark.parametrize("name", sorted(USES.keys() - NEEDS_NUMBERS))
@pytest.mark.parametrize("backend", ["llvm", "numpy"])
def test_a_compiled_step_refuses_the_same(name: str, backend: str) -> None:
    step = gg.compile(lambda index: USES[name](gg, index), backend=backend)
    good = np.asarray(step(gg.tensor([3, 0])))
    np.testing.assert_allclose(good, USES[name](gg, gg.tensor([3, 0])).numpy(), rtol=1e-6)
    if outcome(torch, USES[name], [0, -1]) is not None:
        np.testing.assert_allclose(np.asarray(step(gg.tensor([0, -1]))), USES[name](gg, gg.tensor([0, -1])).numpy())
        return
    with pytest.raises(IndexError, match=r"-1 (at position \(\) )?is out of range"):
        step(gg.tensor([0, -1]))


def test_the_messages_say_what_is_allowed_and_where() -> None:
    for name, words in {
        "embedding": ("index -1 at position (1,)", "between 0 and 3", "padding_idx"),
        "gather": ("index -1 at position (1, 0)", "expected 0 to 3", "do not count from the end"),
        "index_add": ("index -1 at position (1,)", "expected 0 to 3"),
        "one_hot": ("label -1", "between 0 and 3"),
        "index_select columns": ("for dim 1 of size 4", "expected 0 to 3"),
        "scatter in rows": ("index -1 at position (0, 1)", "for dim 1 of size 4"),
        "scatter into one number": ("index -1 at position", "for dim 0 of size 1"),
    }.items():
        with pytest.raises(errors.IndexRangeError) as caught:
            USES[name](gg, gg.tensor([0, -1]))
        text = str(caught.value)
        assert all(word in text for word in words), text
        assert re.search(r"test_places\.py:\d+", text), text


def test_the_first_number_behind_the_end_is_refused_too() -> None:
    """One more than the last is another row in memory, where large arrays are added up."""
    with pytest.raises(errors.IndexRangeError, match="label 4 is out of range for 4 classes"):
        gg.nn.functional.one_hot(gg.tensor([0, 4]), 4)
    with pytest.raises(errors.IndexRangeError, match="dim 1 of size 3"):
        gg.ones((2, 3, 2)).index_add(1, gg.tensor([-1]), gg.ones((2, 1, 2)))
    x, rows = gg.zeros((300, 300)), gg.tensor([0, 300])
    with pytest.raises(errors.IndexRangeError, match="300 is out of range for a dimension of size 300"):
        x.index_add(0, rows.repeat(150), gg.ones((300, 300)))
    with pytest.raises(errors.IndexRangeError, match="300 is out of range for a dimension of size 300"):
        x.index_put((rows, gg.tensor([1, 1])), gg.ones(2), accumulate=True)
    with pytest.raises(errors.IndexRangeError, match="9223372036854775808 is out of range"):
        gg.ones(3)[gg.tensor(np.array([1 << 63], np.uint64))]


SHAPES = [  # of x and of the index, and the axis
    ((4, 3), (2, 3), 0), ((4, 3), (4, 2), 1), ((4, 3), (2, 1), 0), ((4, 1), (2, 3), 0), ((1, 3), (4, 2), 1),
    ((2, 3, 4), (2, 1, 1), 1), ((2, 3, 1), (1, 2, 4), -2), ((5, 2, 3), (1, 2, 3), 0), ((2, 2, 3), (1, 1, 5), 2),
    ((3,), (0,), 0), ((2, 3), (2, 0), 1), ((6,), (4,), 0),
]  # fmt: skip  # a table


@pytest.mark.parametrize(("shape", "at", "axis"), SHAPES)
def test_along_an_axis_the_others_broadcast(shape: tuple[int, ...], at: tuple[int, ...], axis: int) -> None:
    rng = np.random.default_rng([len(shape), axis + 3])
    x, index = rng.normal(size=shape), rng.integers(-shape[axis], shape[axis], at)
    t = gg.tensor(x, requires_grad=True)
    y = gg.take_along_axis(t, gg.tensor(index), axis)
    rest = [max(n, m) if min(n, m) else 0 for n, m in zip(shape, at, strict=True)]
    sizes = [[n if k != axis % len(shape) else own[k] for k, n in enumerate(rest)] for own in (shape, at)]
    wide, places = np.broadcast_to(x, sizes[0]), np.broadcast_to(index, sizes[1])
    np.testing.assert_array_equal(y.detach().numpy(), np.take_along_axis(wide, places, axis))
    g = rng.normal(size=y.shape)
    (y * gg.tensor(g)).sum().backward()
    expected = np.zeros(shape)
    number = np.take_along_axis(np.broadcast_to(np.arange(x.size).reshape(shape), sizes[0]), places, axis)
    np.add.at(expected.reshape(-1), number, g)
    assert t.grad is not None
    np.testing.assert_allclose(t.grad.numpy(), expected, rtol=1e-13)


def test_along_an_axis_of_one_number_or_of_all() -> None:
    x = gg.tensor(3.0, requires_grad=True)
    y = gg.take_along_axis(x, gg.tensor(-1), 0)
    assert (y.item(), y.shape) == (3.0, ())
    (y * 2).backward()
    assert x.grad is not None
    assert x.grad.item() == 2.0
    a, index = np.arange(12.0).reshape(3, 4), np.array([[0, 5], [11, -2]])
    assert gg.take_along_axis(gg.tensor(a), gg.tensor(index)).tolist() == [0, 5, 11, 10]
    assert gg.take(gg.tensor(a), [0, 11]).tolist() == [0, 11]
    for bad in ([0, 1], [[[0]]]):
        with pytest.raises(errors.ArgumentError, match="2 dimensions, as many as x has"):
            gg.take_along_axis(gg.tensor(a), gg.tensor(bad), 1)


@pytest.mark.parametrize("way", ["amax", "amin"])
def test_elements_that_share_an_extreme_share_its_gradient(way: str) -> None:
    x, source = np.array([[1.0, 2.0, 3.0], [2.0, 2.0, 0.0]]), np.array([[2.0, 2.0, 3.0, 1.0], [2.0, 2.0, 2.0, 0.0]])
    index = np.array([[1, 1, 2, 0], [1, 1, 0, 2]])

    def reduced(lib: Any, a: Any, b: Any) -> Any:
        return a.scatter_reduce(1, lib.tensor(index), b, way) ** 2

    agree_in_two_orders(reduced, x, source)
    t = np.linspace(0.5, 1.5, 6).reshape(2, 3), np.linspace(-1.0, 1.0, 8).reshape(2, 4)
    arrays = tuple(map(gg.tensor, (x, source)))
    moved = gg.func.jvp(lambda *args: reduced(gg, *args).sum(), arrays, tuple(map(gg.tensor, t)))[1]
    gradients = gg.func.grad(lambda *args: reduced(gg, *args).sum(), (0, 1))(*arrays)
    assert moved.item() == pytest.approx(sum(float((g.numpy() * d).sum()) for g, d in zip(gradients, t, strict=True)))


def test_negative_places_and_zeros_in_the_gradient_of_several_indices() -> None:
    x = gg.tensor(np.arange(12.0).reshape(3, 4), requires_grad=True)
    (x[gg.tensor([-1, 0, 0, -3]), gg.tensor([0, -4, 3, -1])] * gg.tensor([1.0, 2.0, 3.0, 4.0])).sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [[2, 0, 0, 7], [0, 0, 0, 0], [1, 0, 0, 0]]
    empty = gg.tensor(np.zeros((0,), np.int64))
    y = gg.ones((3, 4), requires_grad=True)
    y[empty, empty].sum().backward()
    assert y.grad is not None
    assert not y.grad.numpy().any()


def test_the_second_derivative_of_an_embedding() -> None:
    table, index = gg.tensor(np.arange(6.0).reshape(3, 2), requires_grad=True), gg.tensor([2, 0, 2])
    y = gg.nn.functional.embedding(index, table)
    (g,) = gg.autograd.grad((y**3).sum(), table, create_graph=True)
    (g * gg.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])).sum().backward()
    counts = np.array([[1.0], [0.0], [2.0]])
    assert table.grad is not None
    expected = 6 * np.arange(6.0).reshape(3, 2) * counts * [[1, 2], [3, 4], [5, 6]]
    np.testing.assert_allclose(table.grad.numpy(), expected)


def test_a_refused_embedding_leaves_its_table_alone() -> None:
    table = gg.full((4, 3), 2.0)
    with pytest.raises(IndexError):
        gg.nn.functional.embedding(gg.tensor([0, -1]), table, max_norm=1.0)
    assert table.tolist() == [[2.0] * 3] * 4


def test_numpys_names_count_from_the_end() -> None:
    x, index = np.arange(12.0).reshape(4, 3), np.array([[0, -1, 2]])
    t = gg.tensor(x, requires_grad=True)
    picked = gg.take_along_axis(t, gg.tensor(index), 0)
    np.testing.assert_array_equal(picked.detach().numpy(), np.take_along_axis(x, index, 0))
    picked.sum().backward()
    assert t.grad is not None
    assert [row.tolist() for row in t.grad.numpy()] == [[1, 0, 0], [0, 0, 0], [0, 0, 1], [0, 1, 0]]
    np.testing.assert_array_equal(gg.take(t, gg.tensor([-1, 0]), 1).detach().numpy(), x.take([-1, 0], 1))


def test_what_lies_behind_the_end_of_a_ctc_target_does_not_count() -> None:
    logp = gg.nn.functional.log_softmax(gg.tensor(np.random.default_rng(0).normal(size=(5, 1, 4))), dim=2)
    plain, padded = ([[1, 2]], [[1, 2, -1]])
    a, b = (gg.nn.functional.ctc_loss(logp, gg.tensor(y), gg.tensor([5]), gg.tensor([2])) for y in (plain, padded))
    assert a.item() == b.item()
    with pytest.raises(IndexError, match="ctc_loss: label 7 is out of range for 4 classes"):
        gg.nn.functional.ctc_loss(logp, gg.tensor([[1, 7]]), gg.tensor([5]), gg.tensor([2]))


# --- what is left out of a call ----------------------------------------------------------------------

CALLS = {
    "index_add": lambda lib, x: lib.index_add(x, 0, lib.tensor([2, 0, 2]), x),
    "index_add of one number": lambda lib, x: lib.index_add(x[0, 0], 0, lib.tensor([0]), x[1, 1]),
    "scatter of a tensor of one number": lambda lib, x: x.scatter(1, lib.tensor([[0], [3], [1]]), 2.5),
    "scatter that adds": lambda lib, x: x.detach().scatter(
        1, lib.tensor([[0, 0], [3, 1], [1, 1]]), x[:, :2].detach(), reduce="add"
    ),
    "scatter that multiplies": lambda lib, x: x.detach().scatter(0, lib.tensor([[0, 0, 2, 1]]), 3.0, reduce="multiply"),
    "scatter from behind": lambda lib, x: x.scatter(-1, lib.tensor([[0], [3], [1]]), x[:, :1] * 2),
    "masked_scatter": lambda lib, x: x.masked_scatter(x > 1.0, x * 2),
    "scatter_reduce of nothing": lambda lib, x: x.scatter_reduce(0, lib.zeros((0, 4), dtype=lib.int64), x[:0], "prod"),
}


@pytest.mark.filterwarnings("ignore:The reduce argument of torch.scatter")
@pytest.mark.parametrize("name", CALLS)
def test_options_that_are_left_out_are_pytorchs(name: str) -> None:
    numbers = np.arange(12.0).reshape(3, 4) / 5 + 0.3
    found = []
    for lib in (gg, torch):
        x = lib.tensor(numbers, requires_grad=True)
        y = CALLS[name](lib, x)
        if y.requires_grad:  # PyTorch has no derivative of `reduce`
            (y * y).sum().backward()
        found.append((y.detach().numpy(), None if x.grad is None else x.grad.numpy()))
    assert (found[0][1] is None) == (found[1][1] is None)
    for mine, wanted in zip(*found, strict=True):
        if wanted is None:
            continue
        np.testing.assert_allclose(mine, wanted, rtol=1e-13)


def test_places_that_do_not_fit_are_refused() -> None:
    x = gg.ones((3, 4))
    with pytest.raises(ValueError, match="at least 12 elements"):
        gg.masked_scatter(x, x > 0, gg.ones(5))
    with pytest.raises((TypeError, ValueError), match="mask"):
        gg.masked_fill(x, gg.ones((3, 4)), 1.0)
    with pytest.raises((TypeError, ValueError), match="mask"):
        gg.masked_select(x, gg.ones((3, 4), dtype=gg.int64))
    with pytest.raises(ValueError, match="index_add"):
        gg.index_add(x, 0, gg.tensor([0, 1]), gg.ones((3, 4)))
    with pytest.raises(ValueError, match="index_copy"):
        gg.index_copy(x, 0, gg.tensor([0, 1]), gg.ones((3, 4)))
    for call in (gg.scatter, gg.scatter_add):
        with pytest.raises((TypeError, ValueError), match=r"dtype|float32"):
            call(x, 0, gg.tensor([[0]]), gg.ones((1, 1), dtype=gg.float64))
    with pytest.raises((TypeError, ValueError), match=r"dtype|float32"):
        gg.index_copy(x, 0, gg.tensor([0]), gg.ones((1, 4), dtype=gg.float64))


@pytest.mark.parametrize("dtype", [np.float32, np.complex128, np.float16])
@pytest.mark.parametrize("odd", [np.inf, -np.inf, np.nan, 2.0])
def test_a_number_that_is_not_finite_reaches_its_own_row_alone(dtype: Any, odd: float) -> None:
    index, g = np.array([3, 0, 3]), np.ones((3, 2), dtype)
    g[1, 1] = odd
    x = gg.tensor(np.ones((5, 2), dtype), requires_grad=True)
    x[gg.tensor(index)].backward(gg.tensor(g))
    expected = np.zeros((5, 2), dtype)
    np.add.at(expected, index, g)
    np.testing.assert_array_equal(x.grad.numpy(), expected)


def test_a_cotangent_for_every_index_of_a_batch() -> None:
    x, g, index = gg.tensor(np.arange(5.0)), gg.tensor([1.0, 2.0], dtype=gg.float64), np.array([[3, 0], [3, 3], [1, 4]])
    found = gg.func.vmap(lambda i: gg.func.vjp(lambda x: x[i], x)[1](g)[0])(gg.tensor(index))
    expected = np.zeros((3, 5))
    np.add.at(expected, (np.arange(3)[:, None], index), g.numpy())
    np.testing.assert_array_equal(found.numpy(), expected)
