"""Covariances and differences against PyTorch and NumPy, and products and splits under all their names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import glassgrad as gg
from glassgrad import errors
from tests.ops.against_torch import as_tuple, compare, real, torch

COUNTS = np.array([1, 2, 3, 1, 2, 1])
PLACES = np.array([-1.0, -0.4, 0.1, 0.2, 1.5, 2.0])


@pytest.mark.parametrize("shape", [(6,), (1, 6), (3, 6)])
@pytest.mark.parametrize("correction", [0, 1])
@pytest.mark.parametrize("counted", [False, True])
def test_covariance(shape: tuple[int, ...], correction: int, counted: bool) -> None:
    def call(lib: Any, x: Any, weights: Any) -> Any:
        fweights = (gg.tensor if lib is gg else torch.tensor)(COUNTS) if counted else None
        return lib.cov(x, correction=correction, fweights=fweights, aweights=weights * weights)

    compare(lambda *x: call(gg, *x), lambda *x: call(torch, *x), real(*shape), real(6, seed=1))
    compare(lambda x: gg.cov(x, correction=correction), lambda x: torch.cov(x, correction=correction), real(*shape))


def test_correlation() -> None:
    compare(gg.corrcoef, torch.corrcoef, real(3, 6))
    compare(lambda x: gg.corrcoef(x[0]), lambda x: torch.corrcoef(x[0]), real(3, 6) + 2)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"spacing": 0.3},
        {"dim": 1},
        {"dim": (1, 0), "spacing": [0.5, 2.0]},
        {"edge_order": 2},
        {"dim": -1},
    ],
)
def test_differences(options: dict[str, Any]) -> None:
    compare(lambda x: gg.gradient(x, **options), lambda x: torch.gradient(x, **options), real(4, 6))


@pytest.mark.parametrize("order", [1, 2])
def test_differences_between_places(order: int) -> None:
    def call(lib: Any, x: Any, step: Any) -> Any:
        places = (gg.tensor if lib is gg else torch.tensor)(PLACES) * step
        return lib.gradient(x, spacing=[places], dim=1, edge_order=order)

    compare(lambda x, s: call(gg, x, s), lambda x, s: call(torch, x, s), real(4, 6), np.array(1.3))


@pytest.mark.parametrize(
    "function",
    [
        np.gradient,
        lambda x: np.gradient(x, 2.0, axis=1, edge_order=2),
        lambda x: np.gradient(x, 0.5, PLACES),
        lambda x: np.gradient(x[0], PLACES),
        np.cov,
        lambda x: np.cov(x, x[1:] ** 2, bias=True),
        lambda x: np.cov(x, rowvar=False),
        lambda x: np.cov(x, aweights=COUNTS * 0.5, ddof=0),
        np.corrcoef,
        lambda x: np.corrcoef(x, x[:1] ** 2),
        lambda x: np.nextafter(x, 0.0),
        lambda x: np.vdot(x, x + 1),
        lambda x: np.hsplit(x, 3),
        lambda x: np.vsplit(x, [1]),
    ],
)
def test_under_the_names_of_numpy_they_mean_what_numpy_means(function: Callable[[Any], Any]) -> None:
    x = real(3, 6)
    found, expected = as_tuple(function(gg.tensor(x))), as_tuple(function(x))
    assert len(found) == len(expected)
    for y, wanted in zip(found, expected, strict=True):
        assert isinstance(y, gg.Tensor)
        np.testing.assert_allclose(y.numpy(), wanted, rtol=1e-12)


@pytest.mark.parametrize("beta", [1, 0, 0.5])
@pytest.mark.parametrize(
    ("name", "shapes"),
    [
        ("addmm", [(3, 4), (3, 2), (2, 4)]),
        ("addmv", [(3,), (3, 2), (2,)]),
        ("addr", [(3, 2), (3,), (2,)]),
        ("baddbmm", [(4,), (2, 3, 5), (2, 5, 4)]),
        ("addbmm", [(3, 4), (2, 3, 5), (2, 5, 4)]),
    ],
)
def test_products_with_a_sum(name: str, shapes: list[tuple[int, ...]], beta: float) -> None:
    inputs = [real(*shape, seed=at) for at, shape in enumerate(shapes)]
    theirs = getattr(torch, name)
    for ours in (getattr(gg, name), getattr(gg.Tensor, name)):
        compare(lambda *x: ours(*x, beta=beta, alpha=0.7), lambda *x: theirs(*x, beta=beta, alpha=0.7), *inputs)  # noqa: B023 - called here
    inputs[0][...] = np.nan
    found = getattr(gg, name)(*(gg.tensor(x) for x in inputs), beta=beta)
    assert bool(found.isnan().any()) == (beta != 0)


def test_blocks_and_cuts() -> None:
    inputs = real(2, 3), real(2, seed=1), real(seed=2)
    compare(gg.block_diag, torch.block_diag, *inputs)
    for name, given in (("hsplit", [1, 3]), ("hsplit", 2), ("vsplit", 3), ("dsplit", [1]), ("dsplit", 5)):
        compare(lambda x: getattr(gg, name)(x, given), lambda x: getattr(torch, name)(x, given), real(3, 4, 5))  # noqa: B023 - called here
    compare(lambda x: x.hsplit(2), lambda x: x.hsplit(2), real(4))


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda x: gg.hsplit(x, 4), "a divisor of the size 6"),
        (lambda x: x.dsplit(1), "at least 3 dimensions"),
        (lambda x: gg.gradient(x, edge_order=3), "1 or 2"),
        (lambda x: gg.gradient(x[:, :1]), "more than 1 elements"),
        (lambda x: gg.gradient(x, spacing=[1.0]), "2 dimensions"),
        (lambda x: gg.cov(x[None]), "at most two dimensions"),
        (lambda x: gg.cov(x, aweights=gg.ones(2)), "6 weights"),
        (lambda x: gg.block_diag(x[None]), "at most two"),
    ],
)
def test_what_cannot_be_is_named(call: Callable[[Any], Any], said: str) -> None:
    with pytest.raises(errors.ArgumentError, match=said):
        call(gg.tensor(real(3, 6)))


# --- what is left out of a call, on three dimensions -------------------------------------------------

SHUFFLED = np.random.default_rng(0).permutation(60).reshape(3, 4, 5) / 7.0
EDGES = np.sort(SHUFFLED, axis=-1)
ORDERS = {
    "sort": lambda lib, x: lib.sort(x),
    "sort down": lambda lib, x: lib.sort(x, descending=True, stable=True),
    "argsort": lambda lib, x: (lib.argsort(x), lib.argsort(x, stable=True)),
    "topk": lambda lib, x: lib.topk(x, 2),
    "topk of all": lambda lib, x: lib.topk(x, 5),
    "topk of one number": lambda lib, x: lib.topk(x[0, 0, 0], 1),
    "smallest two": lambda lib, x: lib.topk(x, 2, 1, largest=False),
    "kthvalue": lambda lib, x: lib.kthvalue(x, 2),
    "mode": lambda lib, x: lib.mode(lib.round(x / 3)).values,
    "median": lambda lib, x: (lib.median(x), *lib.median(x, 1), *lib.median(x, 0, keepdim=True)),
    "nanmedian": lambda lib, x: (lib.nanmedian(x), *lib.nanmedian(lib.where(x > 2, x, float("nan")), 2)),
    "quantile": lambda lib, x: (lib.quantile(x, 0.3), lib.quantile(x, 0.0), lib.quantile(x, 1.0)),
    "quantile kept": lambda lib, x: (lib.quantile(x, 0.3, keepdim=True), lib.quantile(x, 0.3, 1, keepdim=True)),
    "quantile along the first": lambda lib, x: lib.quantile(x, 0.3, 0),
    **{
        f"quantile {way}": lambda lib, x, way=way: lib.quantile(
            x, lib.tensor([0.0, 0.3, 0.375, 1.0], dtype=lib.float64), 2, interpolation=way
        )
        for way in ("linear", "lower", "higher", "midpoint", "nearest")
    },
    "searchsorted": lambda lib, x: lib.searchsorted(lib.tensor(EDGES), x.detach()),
    "searchsorted right": lambda lib, x: lib.searchsorted(lib.tensor(EDGES), x.detach(), right=True),
    "bucketize": lambda lib, x: lib.bucketize(x.detach(), lib.tensor([1.0, 2.0, 3.0], dtype=lib.float64)),
}


@pytest.mark.parametrize("name", ORDERS)
def test_orders_of_three_dimensions_are_pytorchs(name: str) -> None:
    found = []
    for lib in (gg, torch):
        x = lib.tensor(SHUFFLED, requires_grad=True)
        y = ORDERS[name](lib, x)
        parts = list(y) if isinstance(y, tuple) else [y]
        tracked = [part for part in parts if part.requires_grad]
        if tracked:
            sum((part * part).sum() for part in tracked).backward()
        found.append([part.detach().numpy() for part in parts] + ([x.grad.numpy()] if tracked else []))
    for mine, wanted in zip(*found, strict=True):
        assert mine.shape == wanted.shape
        np.testing.assert_allclose(mine, wanted, rtol=1e-13)


def test_orders_that_do_not_exist_are_refused() -> None:
    x = gg.tensor(SHUFFLED)
    for call in (lambda: gg.kthvalue(x, 6), lambda: gg.kthvalue(x, 0), lambda: gg.topk(x, 6)):
        with pytest.raises((ValueError, IndexError), match="k"):
            call()
    for fraction in (-0.1, 1.5):
        with pytest.raises(ValueError, match="between 0 and 1"):
            gg.quantile(x, fraction)
    with pytest.raises((ValueError, IndexError), match="one dimension"):
        gg.bucketize(x, gg.ones((2, 2)))


@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.int8, bool])
def test_statistics_of_integers_are_double_precision_as_in_numpy(dtype: Any) -> None:
    x = np.array([[1, 0, 1, 1], [0, 0, 1, 0]]).astype(dtype)
    if dtype is np.int64:
        x[0] += 2**24  # where float32 has no odd numbers
    for ours, wanted in (
        (gg.cov(gg.tensor(x)), np.cov(x)),
        (gg.corrcoef(gg.tensor(x)), np.corrcoef(x)),
        *([] if dtype is bool else zip(gg.gradient(gg.tensor(x)), np.gradient(x.astype(np.int64)), strict=True)),
    ):
        assert ours.dtype == wanted.dtype == np.float64
        np.testing.assert_allclose(ours.numpy(), wanted, rtol=1e-14, atol=1e-14)


def test_a_pole_beyond_the_largest_float_is_infinite_without_a_warning() -> None:
    x = np.array([1e-30, 1e-10, 2.0], np.float32)
    found = gg.polygamma(1, gg.tensor(x)).numpy()  # a warning would be an error here
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, [np.inf, 1e20, np.pi**2 / 6 - 1], rtol=1e-6)
