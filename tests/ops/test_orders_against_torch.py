"""Scans, sorts and counts against PyTorch's, for every dimension of many shapes and kinds of numbers.

Values, gradients and gradients of gradients are compared. The tests of the table of primitives compare forward mode
with the gradients.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import glassgrad as gg
from glassgrad import errors
from glassgrad.ops.core import PRIMITIVES
from tests.ops.against_torch import agree_in_two_orders, torch

Array = np.ndarray[Any, Any]
SHAPES = ((), (1,), (5,), (3, 4), (2, 1, 3), (0, 3), (3, 0), (70, 2), (3, 150))

# Functions of a library, a tensor and a dimension.
SCANS: dict[str, Callable[[Any, Any, int], Any]] = {
    "cumsum": lambda lib, x, dim: lib.cumsum(x, dim),
    "cumprod": lambda lib, x, dim: lib.cumprod(x, dim),
    "logcumsumexp": lambda lib, x, dim: lib.logcumsumexp(x, dim),
    "cummax": lambda lib, x, dim: lib.cummax(x, dim)[0],
    "cummin": lambda lib, x, dim: lib.cummin(x, dim)[0],
    "prod": lambda lib, x, dim: lib.prod(x, dim),
    "prod, kept": lambda lib, x, dim: lib.prod(x, dim, keepdim=True),
    "prod of all": lambda lib, x, dim: lib.prod(x) * (dim + 2),
    "diff": lambda lib, x, dim: lib.diff(x, dim=dim),
    "diff of diff": lambda lib, x, dim: lib.diff(x, 2, dim),
    "diff between": lambda lib, x, dim: lib.diff(x, dim=dim, prepend=x * 2, append=x**2),
    "trapezoid": lambda lib, x, dim: lib.trapezoid(x, dx=0.5, dim=dim),
    "trapezoid over places": lambda lib, x, dim: lib.trapezoid(x, x**2, dim=dim),
    "sort": lambda lib, x, dim: lib.sort(x, dim)[0],
    "sort down": lambda lib, x, dim: lib.sort(x, dim, descending=True)[0],
    "kthvalue": lambda lib, x, dim: lib.kthvalue(x, 1, dim)[0],
    "the last kthvalue": lambda lib, x, dim: lib.kthvalue(x, max(x.shape[dim], 1) if x.ndim else 1, dim, True)[0],
    "median": lambda lib, x, dim: lib.median(x, dim)[0],
    "nanmedian": lambda lib, x, dim: lib.nanmedian(x, dim, keepdim=True)[0],
    "topk": lambda lib, x, dim: lib.topk(x, 1, dim)[0],
    "topk, the smallest": lambda lib, x, dim: lib.topk(x, x.shape[dim] if x.ndim else 1, dim, largest=False)[0],
    "quantile": lambda lib, x, dim: lib.quantile(x, 0.3, dim),
    "quantiles": lambda lib, x, dim: lib.quantile(x, lib.tensor([0.0, 0.25, 1.0], dtype=x.dtype), dim, keepdim=True),
}
OF_ORDER = {"cummax", "cummin", "sort", "sort down", "kthvalue", "the last kthvalue", "median", "nanmedian", "topk",
            "topk, the smallest", "quantile", "quantiles"}  # fmt: skip  # a table


def numbers(shape: tuple[int, ...], kind: str) -> Array:
    """Return numbers that are all different, far enough from one another, real ones with some zeros at fixed places."""
    rng = np.random.default_rng([11, *shape])
    x: Array = np.asarray(rng.permutation(int(np.prod(shape))).reshape(shape) / max(np.prod(shape), 1) - 0.4)
    x = x * 3 + 0.01 * rng.normal(size=shape)
    return x + 1j * rng.normal(size=shape) if kind == "c" else x


@pytest.mark.parametrize(
    ("name", "kind"), [(name, kind) for name in SCANS for kind in "fc" if kind == "f" or name not in OF_ORDER]
)
def test_along_every_dimension_the_derivatives_are_pytorchs(name: str, kind: str) -> None:
    for shape in SHAPES:
        x = numbers(shape, kind)
        for dim in range(-max(x.ndim, 1), max(x.ndim, 1)) if x.ndim < 3 else (0, 1, 2):
            try:
                y = SCANS[name](torch, torch.tensor(x, requires_grad=True), dim)
            except (RuntimeError, IndexError):  # what it refuses is asked in test_refusals.py
                continue
            if not y.requires_grad:  # nothing of x is in it
                assert not SCANS[name](gg, gg.tensor(x), dim).numpy().any()
                continue
            agree_in_two_orders(lambda lib, t, dim=dim: SCANS[name](lib, t, dim), x, rtol=1e-8)


# What has no gradient, of a library and a tensor; or only positions.
POSITIONS: dict[str, Callable[[Any, Any], Any]] = {
    "cummax": lambda lib, x: lib.cummax(x, -1),
    "cummin": lambda lib, x: lib.cummin(x, 0),
    "sort": lambda lib, x: lib.sort(x, stable=True),
    "sort down": lambda lib, x: lib.sort(x, dim=0, descending=True, stable=True),
    "argsort": lambda lib, x: lib.argsort(x, dim=0, stable=True),
    "msort": lambda lib, x: lib.msort(x),
    "topk": lambda lib, x: lib.topk(x, 2)[0],
    "topk of none": lambda lib, x: lib.topk(x, 0),
    "topk, the smallest": lambda lib, x: lib.topk(x, 2, 0, largest=False)[0],
    "topk in any order": lambda lib, x: lib.topk(x, 3, sorted=False)[0].sort(-1)[0],
    "mode": lambda lib, x: lib.mode(x, 0)[0],
    "mode, kept": lambda lib, x: lib.mode(x, keepdim=True)[0],
    "unique": lambda lib, x: lib.unique(x, return_inverse=True, return_counts=True),
    "unique rows": lambda lib, x: lib.unique(x, dim=0, return_inverse=True, return_counts=True),
    "unique columns": lambda lib, x: lib.unique(x, dim=1, return_inverse=True, return_counts=True),
    "unique_consecutive": lambda lib, x: lib.unique_consecutive(x, return_inverse=True, return_counts=True),
    "unique_consecutive rows": lambda lib, x: lib.unique_consecutive(x, return_inverse=True, dim=0),
    "unique_consecutive columns": lambda lib, x: lib.unique_consecutive(x, return_counts=True, dim=-1),
    "nonzero": lambda lib, x: lib.nonzero(x),
    "nonzero, a tuple": lambda lib, x: lib.nonzero(x, as_tuple=True),
    "nonzero of a number": lambda lib, x: (lib.nonzero(x[0, 0]), lib.nonzero(x[0, 0] * 0)),
    "argwhere": lambda lib, x: lib.argwhere(x),
    "count_nonzero": lambda lib, x: (lib.count_nonzero(x), lib.count_nonzero(x, 0), lib.count_nonzero(x, (0, 1))),
    "isin": lambda lib, x: (lib.isin(x, x[0]), lib.isin(x, x[0], invert=True)),
    "searchsorted": lambda lib, x: lib.searchsorted(x.sort()[0], x),
    "searchsorted right": lambda lib, x: lib.searchsorted(x.sort()[0], x, right=True, out_int32=True),
    "searchsorted by side": lambda lib, x: lib.searchsorted(x[0].sort()[0], x, side="right"),
    "searchsorted by another order": lambda lib, x: lib.searchsorted(x, x, sorter=lib.argsort(x, dim=-1, stable=True)),
    "bucketize": lambda lib, x: (lib.bucketize(x, x[0].sort()[0]), lib.bucketize(x, x[0].sort()[0], right=True)),
}
KINDS = {
    "float64": lambda x: x / 4,
    "float32": lambda x: x.astype(np.float32),
    "int64": lambda x: x.astype(np.int64),
    "uint8": lambda x: (x + 3).astype(np.uint8),
    "bool": lambda x: x > 0,
    "NaN": lambda x: np.where(x == 2, np.nan, x),
}
# No two NaN are alike, which is asked elsewhere; PyTorch has some of these not of bool, or in another dtype.
WITHOUT = {
    "NaN": ("cummax", "cummin", "mode", "unique", "searchsorted", "bucketize", "isin"),
    "bool": ("cummax", "cummin", "mode", "topk", "searchsorted", "bucketize", "isin"),
}


@pytest.mark.parametrize(
    ("name", "kind"),
    [(name, kind) for name in POSITIONS for kind in KINDS if not name.startswith(WITHOUT.get(kind, ("?",)))],
)
def test_positions_and_counts_are_pytorchs(name: str, kind: str) -> None:
    for shape in ((4, 5), (7, 3), (2, 6)):
        drawn = np.random.default_rng([2, *shape]).integers(-3, 4, shape).astype(np.float64)
        x = KINDS[kind](drawn)
        mine, theirs = (POSITIONS[name](lib, lib.tensor(x)) for lib in (gg, torch))
        pairs = zip(*(y if isinstance(y, tuple) else (y,) for y in (mine, theirs)), strict=True)
        for found, expected in pairs:
            assert str(found.dtype) == str(expected.dtype).removeprefix("torch.")
            np.testing.assert_array_equal(found.numpy(), expected.numpy())


@pytest.mark.parametrize("x", [[2.0, 2.0], [1.0, 2.0, 4.0], [], [0.5, -1.0, 3.0, 3.0]], ids=str)
@pytest.mark.parametrize("options", [{}, {"bins": 4}, {"bins": 3, "min": 1, "max": 3}, {"bins": 5, "min": 2, "max": 2}])
def test_counts_in_bins(x: list[float], options: dict[str, Any]) -> None:
    found, expected = (lib.histc(lib.tensor(x, dtype=lib.float64), **options) for lib in (gg, torch))
    np.testing.assert_array_equal(found.numpy(), expected.numpy())
    bins = options.get("bins", 10)
    if x:
        for other in ({}, {"density": True}, {"weight": [0.5 + n for n in range(len(x))]}):
            ours, theirs = (
                lib.histogram(
                    lib.tensor(x, dtype=lib.float64), bins, range=(-1.0, 4.0),
                    **{k: lib.tensor(v, dtype=lib.float64) if k == "weight" else v for k, v in other.items()},
                )
                for lib in (gg, torch)
            )  # fmt: skip  # one call
            for a, b in zip(ours, theirs, strict=True):
                np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-12)


def test_counts_of_integers() -> None:
    for x in ([0, 1, 1, 5], [], [3]):
        weights = [0.5 + n for n in range(len(x))]
        for least in (0, 4, 9):
            ours, theirs = (
                (
                    lib.bincount(lib.tensor(x, dtype=lib.int64), minlength=least),
                    lib.bincount(lib.tensor(x, dtype=lib.int64), lib.tensor(weights, dtype=lib.float64), least),
                )
                for lib in (gg, torch)
            )
            for a, b in zip(ours, theirs, strict=True):
                assert not x or str(a.dtype) == str(b.dtype).removeprefix("torch.")
                np.testing.assert_array_equal(a.numpy(), b.numpy())
    t = gg.tensor([1.0, 2.0, 4.0], requires_grad=True)
    (gg.bincount(gg.tensor([2, 0, 2]), t) * gg.tensor([1.0, 2.0, 3.0])).sum().backward()
    assert t.grad is not None
    assert t.grad.tolist() == [3.0, 1.0, 3.0]
    for bad in (gg.tensor([-1]), gg.tensor([[1]]), gg.tensor([1.0])):
        with pytest.raises(errors.ArgumentError, match="non-negative integers in one dimension"):
            gg.bincount(bad)
    with pytest.raises(errors.ArgumentError, match="0 or more"):
        gg.bincount(gg.tensor([1]), minlength=-1)


def test_nan_is_the_largest_and_the_median_of_what_has_one() -> None:
    nan, inf = np.nan, np.inf
    for x in ([[nan, 1, 2], [3, nan, 0], [1, 2, 3]], [[nan, nan, 2], [-inf, 1, inf], [nan, nan, nan]]):
        mine, theirs = gg.tensor(x, dtype=gg.float64), torch.tensor(x, dtype=torch.float64)
        for dim in (0, 1):
            for k in (1, 2, 3):
                found, expected = gg.kthvalue(mine, k, dim), torch.kthvalue(theirs, k, dim)
                np.testing.assert_array_equal(found.values.numpy(), expected.values.numpy())
            for keep in (True, False):
                found, expected = gg.median(mine, dim, keep), torch.median(theirs, dim, keep)
                for a, b in zip(found, expected, strict=True):
                    np.testing.assert_array_equal(
                        a.numpy()[~np.isnan(found[0].numpy())], b.numpy()[~torch.isnan(expected[0])]
                    )
                np.testing.assert_array_equal(found[0].numpy(), expected[0].numpy())
                at = found[1].numpy() if keep else np.expand_dims(found[1].numpy(), dim)
                values = found[0].numpy() if keep else np.expand_dims(found[0].numpy(), dim)
                np.testing.assert_array_equal(np.take_along_axis(np.asarray(x, float), at, dim), values)
        np.testing.assert_array_equal(gg.median(mine).numpy(), torch.median(theirs).numpy())


def test_what_begins_with_nothing_has_no_gradient_there() -> None:
    for lead in (0, 1, 3):
        x = gg.tensor([-np.inf] * lead + [1.0, -2.0, -np.inf, 0.5], requires_grad=True)
        y = gg.logcumsumexp(x, 0)
        (y * gg.tensor([2.0 + n for n in range(lead + 4)])).sum().backward()
        assert x.grad is not None
        assert not x.grad.numpy()[:lead].any()
        rest = torch.tensor([1.0, -2.0, -np.inf, 0.5], requires_grad=True)
        weights = torch.tensor([2.0 + n for n in range(lead, lead + 4)])
        (torch.logcumsumexp(rest, 0) * weights).sum().backward()
        assert rest.grad is not None
        np.testing.assert_allclose(x.grad.numpy()[lead:], rest.grad.numpy(), rtol=1e-6)


def test_scans_of_everything_in_order_are_numpys() -> None:
    x = np.arange(1.0, 7.0).reshape(2, 3)
    for name in ("cumsum", "cumprod"):
        np.testing.assert_array_equal(getattr(gg, name)(gg.tensor(x)).numpy(), getattr(np, name)(x))
    assert gg.prod(gg.tensor([1e30, 1e30], dtype=gg.float32), dtype=gg.float64).item() == pytest.approx(1e60, rel=1e-6)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_running_sums_of_many_rows_are_those_of_each_row(dtype: str) -> None:
    """Native code takes many rows at a time, NumPy few or long ones, and other axes."""
    rng = np.random.default_rng(4)
    for shape, axis in (((700, 100), 1), ((100, 700), 0), ((7, 100, 100), 2), ((9, 8192), 1), ((8, 8193), 1)):
        x = rng.normal(size=shape).astype(dtype)
        t = gg.tensor(x, requires_grad=True)
        y = t.cumsum(axis)
        expected = np.cumsum(x.astype(np.float64), axis)
        np.testing.assert_allclose(y.detach().numpy(), expected, rtol=1e-3 if dtype == "float32" else 1e-10, atol=1e-2)
        g = rng.normal(size=shape).astype(dtype)
        (y * gg.tensor(g)).sum().backward()
        back = np.flip(np.cumsum(np.flip(g.astype(np.float64), axis), axis), axis)
        assert t.grad is not None
        np.testing.assert_allclose(t.grad.numpy(), back, rtol=1e-3 if dtype == "float32" else 1e-10, atol=1e-2)


def test_a_recurrence_from_zeros_and_a_product_of_nothing() -> None:
    recurrence, prod = PRIMITIVES["recurrence"], PRIMITIVES["prod"]
    a = gg.tensor([2.0, 3.0, 0.5])
    zeros = gg.zeros(3)
    y, moved = gg.func.jvp(lambda b: recurrence(a, b, axis=0, reverse=False), (zeros,), (gg.ones(3),))
    assert y.tolist() == [0, 0, 0]
    assert moved.tolist() == [1, 4, 3]
    empty = gg.ones((0, 3))
    for function in (prod, prod.decompose):
        assert function is not None
        found = function(empty, axis=(0,), keepdims=False)
        assert (found[0] if isinstance(found, tuple) else found).tolist() == [1, 1, 1]


def test_counts_of_integers_between_edges_are_integers_and_need_numbers() -> None:
    x, edges = gg.tensor([1, 2, 2, 5]), gg.tensor([0.0, 2.0, 6.0])
    counts, found = gg.histogram(x, edges)
    assert (counts.tolist(), counts.dtype, found.tolist()) == ([1, 3], gg.int64, [0.0, 2.0, 6.0])
    for name, call in {"nonzero": lambda a: gg.nonzero(a)[0], "unique": gg.unique}.items():
        with pytest.raises(errors.NoValueError, match=f"{name} needs concrete values"):
            gg.func.vmap(call)(gg.ones((2, 3)))


def test_where_to_insert_by_side_and_numbers_without_a_tensor() -> None:
    edges = gg.tensor([1.0, 2.0, 2.0, 4.0])
    assert gg.searchsorted(edges, 2.0).item() == 1
    assert gg.searchsorted(edges, [0.5, 2.0], side="right").tolist() == [0, 3]
    rows = gg.tensor([[1.0, 2.0], [0.0, 3.0]])
    assert gg.func.vmap(lambda row: gg.searchsorted(row, [0.5, 2.0]))(rows).tolist() == [[0, 1], [1, 1]]
    assert gg.func.vmap(lambda x: gg.searchsorted(edges, x))(rows).tolist() == [[0, 1], [0, 3]]
    for options in ({"side": "up"}, {"side": "left", "right": True}):
        with pytest.raises(errors.ArgumentError, match="'left' or 'right'"):
            gg.searchsorted(edges, 2.0, **options)
