"""Every form of call of the reductions and of softmax, against PyTorch: values, dtypes, derivatives of two orders."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.special

import glassgrad as gg
from glassgrad import errors
from glassgrad.ops import reduce
from glassgrad.ops.core import REGISTRY
from tests.ops.against_torch import as_tuple, real, torch

DIMS: tuple[Any, ...] = (None, 0, 1, -1, (0,), (0, 2), (-1, 1), (0, 1, 2))
INF, NAN = np.inf, np.nan


def twice(function: Callable[..., Any], library: Any, x: Any, weights: Any) -> list[Any]:
    """Values, gradient, and the gradient of a product with the gradient: the rules on arrays and on tensors."""
    given = library.tensor(x, requires_grad=True)
    results = [y for y in as_tuple(function(given)) if y.dtype in {library.float64, library.float32}]
    draw = np.random.default_rng(3)
    loss: Any = sum((y * library.tensor(draw.normal(size=tuple(y.shape)))).sum() for y in results)
    (g,) = library.autograd.grad(loss, [given], create_graph=True)
    second = library.autograd.grad((g * library.tensor(weights)).sum(), [given]) if g.requires_grad else ()
    return [one.detach().numpy() for one in (*results, g, *second)]


def agree(function: Callable[..., Any], x: Any, *, tangents: bool = True) -> None:
    """Compare a function of (library, x) with PyTorch's, in every way that we differentiate it."""
    weights = real(*x.shape, seed=9)
    ours, theirs = (twice(lambda given, lib=lib: function(lib, given), lib, x, weights) for lib in (gg, torch))
    if len(ours) < len(theirs):  # a gradient that does not depend on x is 0
        assert not np.any(theirs.pop())
    elif len(theirs) < len(ours):
        assert not np.any(ours.pop())
    for found, expected in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12, strict=True)
    if tangents:
        y, t = gg.func.jvp(lambda given: as_tuple(function(gg, given))[0], (gg.tensor(x),), (gg.tensor(weights),))
        draw = gg.tensor(np.random.default_rng(3).normal(size=y.shape))
        (g,) = gg.autograd.grad((as_tuple(function(gg, z := gg.tensor(x, requires_grad=True)))[0] * draw).sum(), [z])
        assert float((t * draw).sum()) == pytest.approx(float((g * gg.tensor(weights)).sum()), rel=1e-9, abs=1e-12)


# Of (lib, x, dim, keepdim).
OVER_SEVERAL: dict[str, Callable[..., Any]] = {
    name: (lambda lib, x, dim, keep, name=name: getattr(lib, name)(x, dim=dim, keepdim=keep))
    for name in ("sum", "mean", "var", "std", "amax", "amin", "nansum", "nanmean", "var_mean", "std_mean")
}
OVER_SEVERAL["var by 0"] = lambda lib, x, dim, keep: lib.var(x, dim, correction=0, keepdim=keep)
OVER_SEVERAL["std by 1.5"] = lambda lib, x, dim, keep: x.std(dim, correction=1.5, keepdim=keep)
OVER_SEVERAL["var by 0.5"] = lambda lib, x, dim, keep: x.var(dim, correction=0.5, keepdim=keep)
OVER_SEVERAL["logsumexp"] = lambda lib, x, dim, keep: lib.logsumexp(x, tuple(range(3)) if dim is None else dim, keep)


@pytest.mark.parametrize("name", OVER_SEVERAL)
def test_over_one_and_several_dimensions(name: str) -> None:
    x = real(2, 3, 4)
    for number, dim in enumerate(DIMS):
        if dim is None and name in {"amax", "amin"}:
            dim = ()  # how PyTorch says all of them here
        agree(
            lambda lib, x, dim=dim, keep=bool(number % 2): OVER_SEVERAL[name](lib, x, dim, keep), x, tangents=number < 4
        )


# Calls without the argument that has a default, and PyTorch's older ones; x is (3, 4).
FORMS: dict[str, Callable[[Any, Any], Any]] = {
    "sum": lambda lib, x: (lib.sum(x), x.sum(1), x.sum(0, True), x.sum((0, 1), keepdim=True), x.sum(())),
    "mean": lambda lib, x: (lib.mean(x), x.mean(1), x.mean(0, True)),
    "var": lambda lib, x: (lib.var(x), x.var(1), x.var(False), x.var(True), x.var(0, False), x.var(1, unbiased=True)),
    "std": lambda lib, x: (
        lib.std(x),
        x.std(1),
        x.std(False),
        x.std(0, unbiased=False),
        x.std(1, correction=0, keepdim=True),
    ),
    "correction None": lambda lib, x: (x.var(0, correction=None), lib.std(x, 1, correction=None)),
    "var_mean": lambda lib, x: (*lib.var_mean(x), *lib.var_mean(x, 1), *lib.var_mean(x, 0, unbiased=False)),
    "var_mean of False": lambda lib, x: (*lib.var_mean(x, False), *lib.var_mean(x, 1, correction=0, keepdim=True)),
    "std_mean": lambda lib, x: (*lib.std_mean(x), *lib.std_mean(x, 1), *lib.std_mean(x, 0, unbiased=False)),
    "std_mean of False": lambda lib, x: (*lib.std_mean(x, False), *lib.std_mean(x, 1, correction=0, keepdim=True)),
    "nansum": lambda lib, x: (lib.nansum(x), lib.nanmean(x), lib.nansum(x, 1), lib.nanmean(x, 0)),
    "amax": lambda lib, x: (x.amax(), x.amin(), lib.amax(x, 1), lib.amin(x, 1), x.amax(-1, True), x.amin((0, 1), True)),
    "aminmax": lambda lib, x: (*lib.aminmax(x), *lib.aminmax(x, dim=1), *x.aminmax(dim=0, keepdim=True)),
    "max": lambda lib, x: (
        x.max(),
        x.max(1).values,
        x.max(-2, True)[0],
        lib.max(x, lib.flip(x, [0])),
        lib.max(x, other=-x),
    ),
    "min": lambda lib, x: (
        x.min(),
        x.min(1).values,
        x.min(-2, True)[0],
        lib.min(x, lib.flip(x, [0])),
        lib.min(x, other=-x),
    ),
    "max of a number": lambda lib, x: (
        x[0, 0].max(),
        x[0, 1].max(0).values,
        x[0, 2].min(-1, True).values,
        x[0, 3].min(),
    ),
    "logsumexp": lambda lib, x: (lib.logsumexp(x, 1), x.logsumexp((0, 1)), x.logsumexp(0, True), x[0, 0].logsumexp(0)),
    "softmax": lambda lib, x: (
        lib.softmax(x, 1),
        x.softmax(0),
        x.softmax(-1),
        lib.nn.functional.softmin(x, 0),
        x[0, 0].softmax(0),
    ),
    "log_softmax": lambda lib, x: (lib.log_softmax(x, 1), x.log_softmax(0), x.log_softmax(-1), x[0, 0].log_softmax(-1)),
}


@pytest.mark.parametrize("name", FORMS)
def test_forms_of_calls(name: str) -> None:
    agree(FORMS[name], real(3, 4))


def test_the_last_dimension_is_that_of_softmax() -> None:
    x = real(2, 3, 4)
    for name in ("softmax", "log_softmax", "softmin"):
        found, expected = getattr(reduce, name)(gg.tensor(x)), getattr(torch.nn.functional, name)(torch.tensor(x), -1)
        np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-12)


def test_totals_in_another_dtype() -> None:
    x, z = real(3, 4).astype(np.float32), gg.tensor(real(3, 4).astype(np.float32), requires_grad=True)
    for y, expected in (
        (z.sum(dtype=gg.float64), x.astype(np.float64).sum()),
        (z.mean(1, dtype=gg.float64), x.astype(np.float64).mean(1)),
        (gg.nansum(z, 0, dtype=gg.float64), x.astype(np.float64).sum(0)),
        (gg.nanmean(z, 0, dtype=gg.float64), x.astype(np.float64).mean(0)),
    ):
        assert y.dtype == gg.float64
        np.testing.assert_allclose(y.detach().numpy(), expected, rtol=1e-15)
    z.sum(dtype=gg.float64).backward()
    assert z.grad.dtype == gg.float32
    assert z.grad.tolist() == np.ones((3, 4)).tolist()


# Arrays on which a formula could overflow, divide by 0, or take the wrong branch.
EDGES: dict[str, Any] = {
    "huge": np.array([[800.0, 799.0, 1.0], [-900.0, -901.0, -1e9]]),
    "-inf": np.array([[-INF, -INF, -INF], [-INF, 1.0, 2.0]]),
    "inf": np.array([[INF, 1.0, 2.0], [1.0, 2.0, 3.0]]),
    "ties": np.array([[2.0, 2.0, 1.0], [-3.0, -3.0, -3.0]]),
    "nan": np.array([[NAN, 2.0, 1.0], [NAN, NAN, NAN]]),
    "one": np.array([[1.5], [2.5]]),
    "nothing": np.zeros((2, 0)),
}


@pytest.mark.filterwarnings("ignore:(std|var)")  # PyTorch's
@pytest.mark.parametrize("name", ["var", "std", "var_mean", "std_mean"])
@pytest.mark.parametrize("correction", [3, 4, 5, 2.5])
@pytest.mark.parametrize("values", [[1.0, 2.0, 4.0], [[5.0], [6.0]], [[3.0, 3.0, 3.0], [1.0, 2.0, 3.0]], []])
def test_as_many_corrections_as_numbers(name: str, correction: float, values: Any) -> None:
    """The divisor is 0: inf, or NaN of equal numbers. No warning of NumPy's comes, here or compiled."""
    x = np.array(values)
    found = getattr(gg, name)(gg.tensor(x), -1, correction=correction)
    expected = getattr(torch, name)(torch.tensor(x), -1, correction=correction)
    compiled = gg.compile(lambda x: getattr(gg, name)(x, -1, correction=correction))(gg.tensor(x))
    for a, b, c in zip(*([y] if hasattr(y, "numpy") else y for y in (found, expected, compiled)), strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-14)
        np.testing.assert_allclose(c.numpy(), b.numpy(), rtol=1e-14)


@pytest.mark.filterwarnings("ignore")  # both say that a variance of one number has no degree of freedom
@pytest.mark.parametrize("edge", EDGES)
@pytest.mark.parametrize(
    "name", ["sum", "mean", "var", "nansum", "nanmean", "logsumexp", "amax", "amin", "softmax", "log_softmax"]
)
def test_edges(name: str, edge: str) -> None:
    if edge == "nothing" and name in {"amax", "amin"}:
        pytest.skip("there is none")
    x = EDGES[edge]
    for options in ({}, {"keepdim": True}) if "softmax" not in name else ({},):
        results = []
        for lib in (gg, torch):
            given = lib.tensor(x, requires_grad=True)
            y = getattr(lib, name)(given, 1, **options)
            (g,) = lib.autograd.grad(y, [given], lib.ones_like(y))
            results.append((y.detach().numpy(), g.numpy()))
        (found, slope), (expected, slope_expected) = results
        np.testing.assert_allclose(found, expected, rtol=1e-12, strict=True)
        if edge == "inf" or (edge, name) in {("nan", "amax"), ("nan", "amin")}:
            continue  # no limit of a derivative
        if (edge, name) in {("nan", "nanmean"), ("-inf", "logsumexp")}:  # 0 where nothing can change the result
            slope_expected = np.nan_to_num(slope_expected)
        np.testing.assert_allclose(slope, slope_expected, rtol=1e-12, atol=1e-16, strict=True)


WHOLE = {
    "uint8": np.array([[250, 10, 3], [7, 255, 0]], np.uint8),
    "int16": np.array([[5, -5, 7], [-8, 3, 0]], np.int16),
    "bool": np.array([[True, False, True], [False] * 3]),
}


@pytest.mark.parametrize("given", WHOLE)
def test_whole_numbers(given: str) -> None:
    x, other = gg.tensor(WHOLE[given]), torch.tensor(WHOLE[given])
    calls: dict[str, Callable[[Any, Any], Any]] = {
        "sum": lambda lib, x: (x.sum(), x.sum(1), x.sum(0, dtype=lib.uint8), x.sum(dtype=lib.float64)),
        "mean": lambda lib, x: (x.mean(dtype=lib.float64), x.mean(1, dtype=lib.float32)),
        "all": lambda lib, x: (
            x.all(),
            x.all(1),
            x.all(0, True),
            lib.all(x, dim=(0, 1)),
            x.any(),
            x.any(1),
            lib.any(x, 0, True),
        ),
        "softmax": lambda lib, x: (x.softmax(1, dtype=lib.float64), x.log_softmax(0, dtype=lib.float32)),
        "logsumexp": lambda lib, x: x.logsumexp(1),
        "max": lambda lib, x: (*x.max(1), *x.min(0), x.max(), x.amin(1), x.argmax(), x.argmin(1, keepdim=True)),
    }
    for name, call in calls.items():
        if given == "bool" and name == "max":
            continue
        for found, expected in zip(as_tuple(call(gg, x)), as_tuple(call(torch, other)), strict=True):
            assert name == "all" or str(found.dtype) == str(expected.dtype).removeprefix("torch.")
            np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-6)
            assert found.shape == tuple(expected.shape)


def test_all_and_any_over_no_dimension_are_truth_values() -> None:
    x = gg.tensor([[0.0, 1.0], [2.0, 0.0]])
    for lib_dim in ((), []):
        assert x.all(dim=lib_dim).tolist() == x.any(dim=lib_dim).tolist() == [[False, True], [True, False]]
    assert gg.tensor([1 + 0j, 0j]).all(dim=()).tolist() == [True, False]
    assert bool(gg.tensor([1j]).all())
    assert bool(gg.tensor([0j, 1j]).any())


def test_positions_of_extremes() -> None:
    x, other = gg.tensor(real(3, 4)), torch.tensor(real(3, 4))
    for name in ("argmax", "argmin"):
        for options in ({}, {"dim": 0}, {"dim": -1, "keepdim": True}, {"keepdim": True}, {"dim": 1}):
            found, expected = getattr(gg, name)(x, **options), getattr(torch, name)(other, **options)
            np.testing.assert_array_equal(found.numpy(), expected.numpy(), strict=True)
    for name in ("max", "min"):
        found, expected = getattr(gg, name)(x, np.int64(1)), getattr(other, name)(1)
        np.testing.assert_array_equal(found.indices.numpy(), expected.indices.numpy(), strict=True)
        kept = getattr(x, name)(0, keepdim=True)
        np.testing.assert_array_equal(kept.indices.numpy(), getattr(other, name)(0, True).indices.numpy(), strict=True)
    assert REGISTRY["argmax"].formula == "index of the maximum"
    assert REGISTRY["argmin"].formula == "index of the minimum"


def test_complex_numbers() -> None:
    z = real(2, 3) + 1j * real(2, 3, seed=1)
    big = np.array([[800 + 1j, 799 + 2j], [-INF, -INF], [-900 + 1j, -901 - 1j]])
    for numbers in (z, big, np.zeros((2, 0), np.complex128)):
        for options in ({}, {"keepdim": True}):
            found = gg.logsumexp(gg.tensor(numbers), 1, **options).numpy()
            expected = torch.logsumexp(torch.tensor(numbers), 1, **options).numpy()
            np.testing.assert_allclose(found, expected, rtol=1e-12, strict=True)
    for name in ("var", "std", "mean", "sum"):
        found, expected = getattr(gg, name)(gg.tensor(z), 1).numpy(), getattr(torch, name)(torch.tensor(z), 1).numpy()
        np.testing.assert_allclose(found, expected, rtol=1e-12, strict=True)
    np.testing.assert_allclose(
        gg.softmax(gg.tensor(z), 1, dtype=gg.float64).numpy(),
        torch.softmax(torch.tensor(z.real), 1).numpy(),
        rtol=1e-12,
    )
    compiled = gg.compile(lambda z: gg.softmax(z, 1, dtype=gg.float64), backend="numpy", strict=True)
    np.testing.assert_allclose(compiled(gg.tensor(z)).numpy(), scipy.special.softmax(z.real, 1), rtol=1e-12)
    for function in (gg.softmax, gg.log_softmax):
        with pytest.raises(errors.GlassgradError, match="expects real numbers, given dtype complex128"):
            function(gg.tensor(z), 1)
        with pytest.raises(errors.GlassgradError, match="expects real numbers, given dtype complex64"):
            function(gg.tensor(z.real), 1, dtype=gg.complex64)


EACH: dict[str, Callable[[Any], Any]] = {
    "sum": lambda x: x.sum(0),
    "mean": lambda x: x.mean(1, True),
    "var": lambda x: x.var(1),
    "max": lambda x: x.amax(0),
    "min": lambda x: x.min(1).values,
    "logsumexp": lambda x: gg.logsumexp(x, 1),
    "logsumexp of all": lambda x: gg.logsumexp(x, (0, 1), True),
    "softmax": lambda x: gg.softmax(x, 0),
    "log_softmax": lambda x: gg.log_softmax(x, 1),
}


@pytest.mark.parametrize("name", EACH)
def test_rules_of_batches(name: str) -> None:
    """In `vmap` a batch meets what is the same for all examples: in the argument, and in the cotangent."""
    function, batch = EACH[name], real(5, 2, 3)
    batch[:, 1, 2] = batch[:, 0, 2]  # a tie
    slopes = gg.func.vmap(gg.func.grad(lambda x: (function(x) * 3.0).sum()))(gg.tensor(batch)).numpy()
    for x, slope in zip(batch, slopes, strict=True):
        leaf = gg.tensor(x, requires_grad=True)
        (function(leaf) * 3.0).sum().backward()
        np.testing.assert_allclose(slope, leaf.grad.numpy(), rtol=1e-12)
    leaf = gg.tensor(batch[0], requires_grad=True)
    y = function(leaf)
    cotangents = real(5, *y.shape)

    def gradient(cotangent: Any) -> Any:
        return gg.autograd.grad(y, [leaf], cotangent, retain_graph=True)[0]

    for cotangent, slope in zip(cotangents, gg.func.vmap(gradient)(gg.tensor(cotangents)).numpy(), strict=True):
        np.testing.assert_allclose(slope, gradient(gg.tensor(cotangent)).numpy(), rtol=1e-12)


def test_softmax_entries_take_whole_numbers() -> None:
    x = np.array([[1, 2, 5], [0, 0, -3]])
    for name, expected in (("softmax", scipy.special.softmax), ("log_softmax", scipy.special.log_softmax)):
        np.testing.assert_allclose(REGISTRY[name](x, axis=1), expected(x, axis=1), rtol=1e-12, strict=True)
