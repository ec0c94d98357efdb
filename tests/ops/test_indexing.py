"""Reading and writing by position: NumPy is the oracle of values, PyTorch and `np.add.at` of gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import glassgrad as gg
from glassgrad import errors
from glassgrad.ops import places
from tests.ops.against_torch import compare, torch

A = np.random.default_rng(0).normal(size=(4, 5, 3))
LONG = np.array([[0, 3], [2, 2]])
MASK = np.random.default_rng(1).random((4, 5, 3)) > 0.6

KEYS: list[Any] = [
    0,
    -1,
    slice(1, 3),
    slice(None, None, -1),
    slice(3, 0, -2),
    (),
    ...,
    None,
    (None, 1),
    (..., 1),
    (1, ..., slice(0, 2)),
    (slice(None), 2),
    (slice(1, None), slice(None, None, 2), -1),
    [0, 2],
    np.array([3, 3, -1]),
    LONG,
    (LONG, 1),
    (slice(None), LONG),
    (slice(None), slice(None), np.array([2, 0, 2])),
    (LONG, slice(0, 2), np.array([1, 2])),
    (np.array([0, 1]), np.array([1, 1]), np.array([2, 0])),
    (np.array([[0], [3]]), np.array([1, 4])),
    MASK,
    MASK[:, 0, 0],
    (slice(None), MASK[0]),
    (MASK[:, :, 0], 1),
    (0, np.array([1, 4])),
    True,
    False,
    np.array(True),
    (None, np.array([1, 1])),
    np.zeros(0, int),
    (slice(0, 0),),
    (np.array([1, 0], dtype=np.int32), np.array([0, 1], dtype=np.uint8)),
]


@pytest.mark.parametrize("key", KEYS, ids=lambda key: repr(key).replace("\n", "")[:40])
def test_reading_as_numpy_with_the_gradient_of_add_at(key: Any) -> None:
    x = gg.tensor(A, requires_grad=True)
    y = x[key]
    expected = A[key]
    assert y.shape == expected.shape
    np.testing.assert_array_equal(y.detach().numpy(), expected)
    cotangent = np.random.default_rng(2).normal(size=expected.shape)
    y.backward(gg.tensor(cotangent))
    gradient = np.zeros_like(A)
    np.add.at(gradient, key, cotangent)
    np.testing.assert_allclose(x.grad.numpy(), gradient, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("key", KEYS, ids=lambda key: repr(key).replace("\n", "")[:40])
def test_writing_as_numpy(key: Any) -> None:
    value = np.random.default_rng(3).normal(size=A[key].shape)
    expected = A.copy()
    expected[key] = value
    plain = gg.tensor(A)
    plain[key] = value
    np.testing.assert_array_equal(plain.numpy(), expected)
    x, v = gg.tensor(A, requires_grad=True), gg.tensor(value, requires_grad=True)
    tracked = x * 1
    tracked[key] = v
    np.testing.assert_array_equal(tracked.detach().numpy(), expected)
    copied = gg.at_set(x, key, v)
    np.testing.assert_array_equal(copied.detach().numpy(), expected)
    weights = np.random.default_rng(4).normal(size=A.shape)
    for y in (tracked, copied):
        to_x, to_v = gg.autograd.grad((y * gg.tensor(weights)).sum(), [x, v])
        untouched = weights.copy()
        untouched[key] = 0
        np.testing.assert_array_equal(to_x.numpy(), untouched)
        # Where a place is written twice, the gradient belongs to the write that stays; the sum is fixed either way.
        np.testing.assert_allclose(to_v.numpy().sum(), (weights - untouched).sum(), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("key", KEYS, ids=lambda key: repr(key).replace("\n", "")[:40])
def test_adding_as_add_at(key: Any) -> None:
    value = np.random.default_rng(3).normal(size=A[key].shape)
    expected = A.copy()
    np.add.at(expected, key, value)
    x, v = gg.tensor(A, requires_grad=True), gg.tensor(value, requires_grad=True)
    y = gg.at_add(x, key, v)
    np.testing.assert_allclose(y.detach().numpy(), expected, rtol=1e-12)
    weights = np.random.default_rng(4).normal(size=A.shape)
    to_x, to_v = gg.autograd.grad((y * gg.tensor(weights)).sum(), [x, v])
    np.testing.assert_array_equal(to_x.numpy(), weights)
    np.testing.assert_array_equal(to_v.numpy(), weights[key])


def test_tensors_as_indices() -> None:
    x = gg.tensor(A, requires_grad=True)
    index, mask = gg.tensor(LONG), gg.tensor(MASK)
    np.testing.assert_array_equal(x[index].detach().numpy(), A[LONG])
    np.testing.assert_array_equal(x[mask].detach().numpy(), A[MASK])
    np.testing.assert_array_equal(x[x > 0].detach().numpy(), A[A > 0])
    np.testing.assert_array_equal(x[gg.tensor(2), [gg.tensor(1), gg.tensor(0)]].detach().numpy(), A[2, [1, 0]])
    assert [1.0, 2.0, 3.0][gg.tensor(1)] == 2.0
    np.testing.assert_array_equal(A[gg.tensor([1, 2])], A[[1, 2]])


# Where NumPy counts an integer among arrays that stand apart from it, and puts their dimension in front.
APART: list[Any] = [
    (0, slice(None), np.array([2, 0, 2])),
    (np.array([3, 1]), slice(None), 1),
    (-1, slice(1, 4), np.array([[2, 0], [1, 1]])),
    (None, 1, ..., np.array([1, 1])),
    (2, slice(None), np.array([True, False, True])),
    (np.array(1), slice(0, 2), np.array([2, 0])),
    (0, None, np.array([1, 3])),
]


@pytest.mark.parametrize("key", APART, ids=str)
def test_integers_apart_from_arrays_are_taken_first_as_in_pytorch(key: Any) -> None:
    theirs = tuple(torch.tensor(part) if isinstance(part, np.ndarray) else part for part in key)
    compare(lambda x: x[key] * 2, lambda x: x[theirs] * 2, A)
    value = np.random.default_rng(3).normal(size=gg.tensor(A)[key].shape)

    def written(x: Any, v: Any, place: Any) -> Any:
        y = x * 1
        y[place] = v
        return y

    def added(x: Any, v: Any, place: Any) -> Any:
        y = x * 1
        y[place] = y[place] + v
        return y

    if not any(isinstance(part, np.ndarray) and part.dtype != bool and len({*part.flat}) < part.size for part in key):
        compare(lambda x, v: written(x, v, key), lambda x, v: written(x, v, theirs), A, value)
        compare(lambda x, v: gg.at_set(x, key, v), lambda x, v: written(x, v, theirs), A, value)
        compare(lambda x, v: gg.at_add(x, key, v), lambda x, v: added(x, v, theirs), A, value)
    expected = torch.tensor(A)
    expected[theirs] = torch.tensor(value)
    plain = gg.tensor(A)
    plain[key] = value
    np.testing.assert_array_equal(plain.numpy(), expected.numpy())
    batch = gg.func.vmap(lambda x: x[key])(gg.tensor(A)[None])
    np.testing.assert_array_equal(batch[0].numpy(), gg.tensor(A)[key].numpy())


def test_integers_apart_from_arrays_in_a_compiled_step() -> None:
    x, rows = gg.tensor(A, requires_grad=True), gg.tensor([2, 0])

    def step(x: Any) -> Any:
        y = x * 2
        y[1, :, rows] = 3.0
        return (y * y)[0, :, rows]

    np.testing.assert_allclose(gg.compile(step, backend="numpy")(x).detach().numpy(), step(x).detach().numpy())
    assert step(x).shape == (5, 2)


def test_indices_that_cannot_be() -> None:
    x = gg.zeros(3, 2)
    with pytest.raises(IndexError, match="out of bounds"):
        x[5]
    with pytest.raises(IndexError, match="indices must be integers or booleans"):
        x[gg.tensor([0.5])]
    with pytest.raises(IndexError):
        x[0, 0, 0]
    with pytest.raises(IndexError, match=r"x has shape \(3, 2\), the value is float 1.0"):
        x[:, [0, 5]] = 1.0
    with pytest.raises(IndexError):
        gg.take_along_axis(x, gg.tensor([[7, 0], [0, 0]]), 0)


# --- adding many at once ------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, np.float16])
@pytest.mark.parametrize(
    ("rows", "width", "count"), [(0, 3, 4), (5, 1, 3), (7, 4, 300), (96, 10, 27), (2000, 64, 5000)]
)
def test_every_way_of_adding_rows_is_add_at(rows: int, width: int, count: int, dtype: Any) -> None:
    rng = np.random.default_rng(0)
    g = (rng.normal(size=(rows, width)) * 8).round().astype(dtype)
    index = rng.integers(0, count, rows)
    expected = np.zeros((count, width), dtype)
    np.add.at(expected, index, g)
    np.testing.assert_array_equal(places.add_rows(g, index, count), expected)
    spread = places.add_at(np, g, (places.ARRAY,), [index - count], (count, width))
    np.testing.assert_array_equal(spread, expected)


def test_the_large_way_is_really_taken() -> None:
    assert 2000 * 64 >= places.SPARSE_FROM > 96 * 10


# --- families of functions, as PyTorch has them ---------------------------------------------------------

INDEX = np.array([[0, 2, 1], [3, 0, 0]])
SOURCE = np.random.default_rng(5).normal(size=(2, 3))


def long(array: Any) -> dict[Any, Any]:
    return {gg: gg.tensor(array), torch: torch.tensor(array)}


def pair(program: Any) -> tuple[Any, Any]:
    """Return a program of (lib, *tensors) for each library."""
    return (lambda *x: program(gg, *x)), (lambda *x: program(torch, *x))


I, J, M = long(INDEX), long(np.array([2, 0, 2])), long(MASK[:, :, 0])
FAMILIES: dict[str, Any] = {
    "gather": lambda lib, x: lib.gather(x, 0, I[lib]) + x.gather(1, I[lib].T[:2]).sum(),
    "scatter": lambda lib, x, s: x.scatter(0, long(np.array([[0, 2, 1], [3, 0, 0]]))[lib], s),
    "scatter value": lambda lib, x: x.scatter(1, I[lib], 2.5),
    "scatter_add": lambda lib, x, s: lib.scatter_add(x, 0, I[lib], s),
    "scatter_add smaller index": lambda lib, x, s: x.scatter_add(0, I[lib][:1, :2], s[:1, :2]),
    "scatter_add of rows": lambda lib, x, s: x[:, :3].scatter_add(0, J[lib][:2].unsqueeze(1).expand(-1, 3), s),
    "scatter_add of parts of rows": lambda lib, x, s: x.scatter_add(0, J[lib][:2].unsqueeze(1).expand(-1, 3), s),
    "gather of rows": lambda lib, x: lib.gather(x, 0, J[lib].unsqueeze(1).expand(-1, 5)),
    **{
        f"scatter_reduce {how} {own}": lambda lib, x, s, how=how, own=own: x.scatter_reduce(
            0, I[lib], s, reduce=how, include_self=own
        )
        for how in ("sum", "mean", "prod", "amax", "amin")
        for own in (True, False)
    },
    "index_select": lambda lib, x: lib.index_select(x, 1, J[lib]),
    "index_add": lambda lib, x: x.index_add(1, J[lib], x[:, :3] * 2, alpha=0.5),
    "index_copy": lambda lib, x: x.index_copy(1, J[lib][:2], x[:, :2] * 2),
    "index_fill": lambda lib, x: x.index_fill(1, J[lib], 7.0),
    "index_put": lambda lib, x: x.index_put((J[lib], J[lib]), x[0, :3], accumulate=True),
    "take": lambda lib, x: lib.take(x, I[lib] * 3),
    "take_along_dim": lambda lib, x: lib.take_along_dim(x, I[lib][:, :1], 0),
    "masked_fill": lambda lib, x: x.masked_fill(M[lib], -1.0),
    "masked_select": lambda lib, x: lib.masked_select(x, M[lib]),
    "masked_scatter": lambda lib, x: x.masked_scatter(M[lib], x * 3),
    "select_scatter": lambda lib, x: lib.select_scatter(x, x[:, 0] * 2, 1, 3),
    "slice_scatter": lambda lib, x: lib.slice_scatter(x, x[:2] * 2, 0, 1, 4, 2),
    "narrow select": lambda lib, x: x.narrow(1, 1, 3).select(0, 2) * x.select(1, -1)[0],
}


@pytest.mark.parametrize("name", FAMILIES)
def test_families_agree_with_pytorch(name: str) -> None:
    program = FAMILIES[name]
    ours, theirs = pair(program)
    x = np.random.default_rng(6).normal(size=(4, 5))
    inputs = (
        (x, SOURCE)
        if program.__code__.co_argcount > 2 + (2 if program.__defaults__ else 0)
        or (program.__defaults__ is not None)
        or "s" in program.__code__.co_varnames
        else (x,)
    )
    compare(ours, theirs, *inputs)


def test_products_that_are_scattered_have_exact_gradients_at_zeros() -> None:
    x, s = np.array([2.0, 0.0, 3.0]), np.array([0.0, 5.0, 0.0, 4.0])
    index = long(np.array([0, 0, 1, 2]))
    compare(
        lambda a, b: a.scatter_reduce(0, index[gg], b, "prod"),
        lambda a, b: a.scatter_reduce(0, index[torch], b, "prod"),
        x,
        s,
    )


def test_segment_sum() -> None:
    data, ids = np.random.default_rng(0).normal(size=(6, 2)), np.array([0, 2, 0, 1, 2, 2])
    t = gg.tensor(data, requires_grad=True)
    y = gg.segment_sum(t, gg.tensor(ids), 4)
    expected = np.stack([data[ids == k].sum(0) for k in range(4)])
    np.testing.assert_allclose(y.detach().numpy(), expected)
    assert gg.segment_sum(t, gg.tensor(ids)).shape == (3, 2)
    (y * gg.tensor(np.arange(8.0).reshape(4, 2))).sum().backward()
    np.testing.assert_array_equal(t.grad.numpy(), np.arange(8.0).reshape(4, 2)[ids])


def test_put_along_axis_and_one_hot() -> None:
    x = np.zeros((2, 3))
    expected = x.copy()
    np.put_along_axis(expected, np.array([[1], [2]]), 5.0, axis=1)
    np.testing.assert_array_equal(gg.tensor(x).put_along_axis(gg.tensor([[1], [2]]), 5.0, 1).numpy(), expected)
    np.testing.assert_array_equal(gg.one_hot(gg.tensor([2, 0])).numpy(), [[0, 0, 1], [1, 0, 0]])
    np.testing.assert_array_equal(gg.one_hot(gg.tensor([1]), 4).numpy(), [[0, 1, 0, 0]])


def test_positions() -> None:
    x = np.array([[0.0, 2.0], [3.0, 0.0]])
    np.testing.assert_array_equal(gg.nonzero(gg.tensor(x)).numpy(), torch.nonzero(torch.tensor(x)).numpy())
    for ours, theirs in zip(gg.tensor(x).nonzero(as_tuple=True), np.nonzero(x), strict=True):
        np.testing.assert_array_equal(ours.numpy(), theirs)
    for ours, theirs in zip(gg.where(gg.tensor(x)), np.where(x), strict=True):
        np.testing.assert_array_equal(ours.numpy(), theirs)


def test_data_dependent_ops_say_so_inside_vmap() -> None:
    for op in (lambda x: x.nonzero(), lambda x: x.unique(), gg.bincount):
        with pytest.raises(errors.GlassgradError, match=r"concrete values|no single value"):
            gg.func.vmap(op)(gg.tensor([[1, 0], [2, 2]]))


def test_unique_carries_gradients_to_the_first_of_each() -> None:
    x = gg.tensor([3.0, 1.0, 3.0, 2.0], requires_grad=True)
    values, inverse, counts = x.unique(return_inverse=True, return_counts=True)
    assert values.tolist() == [1.0, 2.0, 3.0]
    assert inverse.tolist() == [2, 0, 2, 1]
    assert counts.tolist() == [1, 1, 2]
    (values * gg.tensor([1.0, 10.0, 100.0])).sum().backward()
    assert x.grad.tolist() == [100.0, 1.0, 0.0, 10.0]
    assert gg.unique_consecutive(gg.tensor([1, 1, 2, 1])).tolist() == [1, 2, 1]


def test_bincount_with_weights_is_differentiable() -> None:
    w = gg.tensor([1.0, 2.0, 3.0], requires_grad=True)
    y = gg.bincount(gg.tensor([2, 0, 2]), w, minlength=4)
    assert y.tolist() == [2.0, 0.0, 4.0, 0.0]
    (y * gg.tensor([1.0, 2.0, 3.0, 4.0])).sum().backward()
    assert w.grad.tolist() == [3.0, 1.0, 3.0]


def test_an_infinite_cotangent_stays_in_its_row_of_the_embedding() -> None:
    weight = gg.zeros(5, 2, requires_grad=True)
    looked_up = gg.nn.functional.embedding(gg.tensor([1, 3, 1]), weight)
    looked_up.backward(gg.tensor([[1.0, 2.0], [float("inf"), float("nan")], [1.0, 1.0]]))
    assert weight.grad[[0, 1, 2, 4]].tolist() == [[0, 0], [2, 3], [0, 0], [0, 0]]
    assert weight.grad[3, 0].item() == float("inf")


@pytest.mark.parametrize("index", [(), ..., None, (None, ...), (..., None)])
def test_indices_of_a_single_number_have_gradients(index: Any) -> None:
    x = gg.tensor(3.0, requires_grad=True)
    y = x[index]
    (y * y).sum().backward()
    assert x.grad.item() == 6
    z = gg.ones(2, requires_grad=True)
    (z.sum()[()] * np.float64(2.0)).backward()
    assert z.grad.tolist() == [2, 2]


HUGE: dict[str, Any] = {
    "getitem": lambda x, i: x[i],
    "second": lambda x, i: x[:, i],
    "pair": lambda x, i: x[i, i],
    "one number": lambda x, i: x[i[-1]],
    "take": gg.take,
    "take_along_dim": lambda x, i: gg.take_along_dim(x, i[:, None], 0),
    "index_put": lambda x, i: gg.index_put(x, (i,), gg.tensor(1.0).double()),
    "setitem": lambda x, i: x.clone().index_put_((i,), gg.tensor(1.0).double()) * 2,
    "at_set": lambda x, i: gg.at_set(x, i, 1.0),
    "embedding": lambda x, i: gg.nn.functional.embedding(i, x),
    "computed": lambda x, i: x[i // 1],
    "gather": lambda x, i: gg.gather(x, 0, i[:, None]),
}


@pytest.mark.parametrize(
    ("call", "backend"),
    [
        *((call, "eager") for call in HUGE),
        *(
            (call, backend)
            for call in ("getitem", "take_along_dim", "computed", "setitem")
            for backend in ("llvm", "numpy")
        ),
    ],
)
@pytest.mark.parametrize("number", [2**64 - 1, 2**63])
def test_unsigned_numbers_do_not_count_from_the_end(call: str, backend: str, number: int) -> None:
    x = gg.tensor(np.arange(12.0).reshape(4, 3))
    run = HUGE[call] if backend == "eager" else gg.compile(HUGE[call], backend=backend)
    huge, small = (gg.tensor(np.array([0, one], np.uint64)) for one in (number, 1))
    with pytest.raises((IndexError, errors.ArgumentError), match=r"out of range|out of bounds|array of uint64"):
        run(x, huge)
    if call != "gather":
        signed = gg.tensor(np.array([0, 1]))
        np.testing.assert_array_equal(np.asarray(run(x, small)), np.asarray(HUGE[call](x, signed)))


def test_assigning_at_a_huge_place_is_refused() -> None:
    for key in (np.array([2**64 - 1], np.uint64), (0, np.array([2**64 - 1], np.uint64))):
        for form in (key, gg.tensor(key) if isinstance(key, np.ndarray) else (0, gg.tensor(key[1]))):
            x = gg.zeros(3, 3)
            with pytest.raises(errors.IndexRangeError, match="18446744073709551615 is out of range"):
                x[form] = 1.0
            assert not x.any()
