"""Zeros, infinities, NaN and huge numbers: PyTorch's values and gradients are the reference; exceptions are listed."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import glassgrad as gg
from glassgrad.ops.core import REGISTRY, Elementwise
from tests.ops.against_torch import compare, torch

INF, NAN = math.inf, math.nan
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # NumPy says what is asked for here: 0/0 and its like

UNARY = [
    prim
    for prim in REGISTRY.values()
    if isinstance(prim, Elementwise)
    and prim.arity == 1
    and prim.edge
    and prim.differentiable
    and not prim.sample_params
]
BINARY = [
    prim
    for prim in REGISTRY.values()
    if isinstance(prim, Elementwise)
    and prim.arity == 2
    and prim.edge
    and prim.differentiable
    and not prim.sample_params
]
THEIRS: dict[str, str] = {
    "log_sigmoid": "nn.functional.logsigmoid",
    "gelu": "nn.functional.gelu",
    "silu": "nn.functional.silu",
    "mish": "nn.functional.mish",
    "hardswish": "nn.functional.hardswish",
    "softplus": "nn.functional.softplus",
    "gammaln": "lgamma",
    "root": "sqrt",
    "ndtr": "special.ndtr",
    "log_ndtr": "special.log_ndtr",
    "entr": "special.entr",
    "ndtri": "special.ndtri",
    "i0e": "special.i0e",
    "i1": "special.i1",
    "i1e": "special.i1e",
    "erfcx": "special.erfcx",
    "xlog1py": "special.xlog1py",
    "power": "pow",
}

# What differs from PyTorch at an edge, and why: (op, "value" or "gradient") -> (the inputs, the reason).
DIFFERENT: dict[tuple[str, str], tuple[Callable[[Any], Any], str]] = {
    ("abs", "gradient"): (np.isnan, "the gradient at NaN is NaN, so that it is seen; PyTorch's is 0"),
    ("sign", "value"): (np.isnan, "sign(NaN) is NaN, as in NumPy"),
    ("root", "gradient"): (lambda x: x == 0, "0 at 0: what norms are made of"),
    ("hardswish", "gradient"): (np.isnan, "NaN, PyTorch's is 1"),
    ("acosh", "gradient"): (lambda x: x < 1, "outside the domain"),
    ("atanh", "gradient"): (lambda x: np.abs(x) > 1, "outside the domain"),
    ("asin", "gradient"): (lambda x: np.abs(x) > 1, "outside the domain"),
    ("gelu", "value"): (lambda x: x == -INF, "-0 or NaN by the formula of erfc"),
    ("digamma", "gradient"): (lambda x: (x <= 0) & (x == np.floor(x)), "a pole"),
    ("i1", "gradient"): (np.isnan, "NaN, PyTorch's is 1/2"),
    ("i1e", "gradient"): (np.isnan, "NaN, PyTorch's is 1/2"),
}


def theirs_of(name: str) -> Callable[..., Any] | None:
    holder: Any = torch
    for part in THEIRS.get(name, name).split("."):
        holder = getattr(holder, part, None)
        if holder is None:
            return None
    return holder


def run(lib: Any, function: Callable[..., Any], arrays: list[Any]) -> tuple[Any, list[Any]]:
    xs = [lib.tensor(array, requires_grad=True) for array in arrays]
    y = function(*xs)
    y.sum().backward()
    return y.detach().numpy(), [x.grad.numpy() if x.grad is not None else np.zeros(x.shape) for x in xs]


def differing(a: Any, b: Any) -> Any:
    return ~np.isclose(a, b, rtol=1e-9, atol=1e-12, equal_nan=True)


@pytest.mark.parametrize("prim", UNARY, ids=lambda prim: prim.name)
def test_unary_edges(prim: Elementwise) -> None:
    theirs = theirs_of(prim.name)
    if theirs is None:
        pytest.skip("PyTorch has no such function")
    x = np.array(prim.edge)
    (y, (g,)), (y_expected, (g_expected,)) = run(gg, prim, [x]), run(torch, theirs, [x])
    for kind, a, b in (("value", y, y_expected), ("gradient", g, g_expected)):
        wrong = differing(a, b)
        allowed = DIFFERENT.get((prim.name, kind))
        if allowed is not None:
            wrong &= ~allowed[0](x)
        assert not wrong.any(), (kind, [(x[i], a[i], b[i]) for i in np.flatnonzero(wrong)])


BINARY_DIFFERENT: dict[str, tuple[Callable[[Any, Any], Any], str]] = {
    "hypot": (
        lambda a, b: (a == 0) & (b == 0) | np.isinf(a) | np.isinf(b),
        "gradient 0 at the origin; PyTorch's is NaN",
    ),
    "atan2": (
        lambda a, b: np.isinf(a) | np.isinf(b) | (np.hypot(a, b) < 1e-20),
        "at tiny numbers PyTorch's squares underflow",
    ),
    "remainder": (lambda a, b: np.isinf(a) | np.isinf(b) | (b == 0), "NumPy's remainder"),
    "fmod": (lambda a, b: (b == 0) | np.isinf(a), "the quotient overflows another way"),
    "copysign": (lambda a, b: ~np.isfinite(a) | np.isnan(b), "inf / inf in PyTorch, the sign of NaN"),
    "heaviside": (lambda a, b: np.ones(a.shape, bool), "PyTorch has no derivative of it"),
    "logaddexp2": (lambda a, b: np.isinf(a) | np.isinf(b), "PyTorch writes 2**a / (2**a + 2**b)"),
    "divide": (lambda a, b: np.isinf(a / b) | np.isnan(a / b) | (b * b == 0), "0 * inf in another order"),
    "power": (
        lambda a, b: (a < 0) | np.isinf(a) | np.isnan(a) | np.isinf(b) | np.isnan(b),
        "negative bases have no exponent",
    ),
}


@pytest.mark.parametrize("prim", BINARY, ids=lambda prim: prim.name)
def test_binary_edges(prim: Elementwise) -> None:
    theirs = theirs_of(prim.name)
    if theirs is None or prim.name == "heaviside":
        pytest.skip("PyTorch has no such function, or no derivative of it")
    points = np.array(prim.edge)
    a, b = (part.reshape(-1) for part in np.meshgrid(points, points))
    (y, g), (y_expected, g_expected) = run(gg, prim, [a, b]), run(torch, theirs, [a, b])
    wrong = differing(y, y_expected) | differing(g[0], g_expected[0]) | differing(g[1], g_expected[1])
    allowed = BINARY_DIFFERENT.get(prim.name)
    if allowed is not None:
        wrong &= ~allowed[0](a, b)
    found = [
        (a[i], b[i], y[i], y_expected[i], g[0][i], g_expected[0][i], g[1][i], g_expected[1][i])
        for i in np.flatnonzero(wrong)
    ]
    assert not found, found[:5]


# --- stable forms -----------------------------------------------------------------------------------------


def gradient_of(function: Callable[[Any], Any], *numbers: float) -> tuple[list[float], list[float]]:
    x = gg.tensor(np.array(numbers), requires_grad=True)
    y = function(x)
    y.sum().backward()
    return y.detach().numpy().tolist(), x.grad.tolist()


def test_huge_inputs() -> None:
    assert gradient_of(gg.softplus, -1e4, 1e4) == ([0.0, 1e4], [0.0, 1.0])
    assert gradient_of(gg.log_sigmoid, -1e4, 1e4) == ([-1e4, 0.0], [1.0, 0.0])
    assert gradient_of(gg.sigmoid, -1e4, 1e4) == ([0.0, 1.0], [0.0, 0.0])
    assert gradient_of(lambda x: x.softmax(0), -1e4, 1e4) == ([0.0, 1.0], [0.0, 0.0])
    y, _ = gradient_of(gg.log_sigmoid, -745.0)
    assert y == [-745.0]
    np.testing.assert_allclose(gradient_of(gg.sigmoid, -700.0)[0], [math.exp(-700)], rtol=1e-12)


def test_small_differences_survive() -> None:
    x = 1e-12
    np.testing.assert_allclose(gradient_of(gg.expm1, x)[0], [x], rtol=1e-12)
    np.testing.assert_allclose(gradient_of(gg.log1p, x)[0], [x], rtol=1e-12)
    np.testing.assert_allclose(gradient_of(gg.softplus, -40.0)[0], [math.exp(-40)], rtol=1e-12)


def test_logsumexp_of_nothing() -> None:
    y, g = gradient_of(lambda x: gg.logsumexp(x, 0), -INF, -INF)
    assert y == -INF
    assert g == [0.0, 0.0]
    y, g = gradient_of(lambda x: gg.logsumexp(x, 0), -INF, 3.0)
    assert (y, g) == (3.0, [0.0, 1.0])
    assert gradient_of(lambda x: gg.logcumsumexp(x, 0), -INF, -INF, 0.0) == ([-INF, -INF, 0.0], [0.0, 0.0, 1.0])


@pytest.mark.parametrize("order", [0, 1, 1.5, 2, 3, INF, -INF])
def test_norms_at_zero(order: float) -> None:
    if order:
        compare(lambda x: gg.vector_norm(x, order), lambda x: torch.linalg.vector_norm(x, order), np.zeros(3))
    x = gg.zeros(3, requires_grad=True)
    gg.vector_norm(x, order).backward()
    assert np.isfinite(x.grad.numpy()).all()
    if order in {1.5, 2, 3}:
        assert x.grad.tolist() == [0.0, 0.0, 0.0]


def test_standard_deviation_of_equal_numbers() -> None:
    compare(lambda x: x.std(0), lambda x: x.std(0), np.ones((3, 2)))


def test_powers_at_zero() -> None:
    for exponent in (0, 1, 2, 0.5, 3.0):
        compare(lambda x, p=exponent: x**p, lambda x, p=exponent: x**p, np.array([0.0, 1.0, 4.0]))
    compare(lambda x, p: x**p, lambda x, p: x**p, np.array([0.0, 0.0, 2.0]), np.array([0.0, 2.0, -1.0]))
    y, g = gradient_of(lambda x: x**0, 0.0)
    assert (y, g) == ([1.0], [0.0])


def test_where_hides_a_value_and_not_a_gradient() -> None:
    y, g = gradient_of(lambda x: gg.where(x > 0, x.log(), 0.0), 0.0, 2.0)
    assert y == [0.0, math.log(2)]
    assert math.isnan(g[0])
    y, g = gradient_of(lambda x: gg.safe_where(x > 0, gg.log, x), 0.0, 2.0)
    assert (y, g) == ([0.0, math.log(2)], [0.0, 0.5])


def test_safe_where_with_several_arguments_and_twice() -> None:
    a, b = gg.tensor([1.0, 6.0], requires_grad=True), gg.tensor([0.0, 3.0], requires_grad=True)
    y = gg.safe_where(b != 0, lambda p, q: p / q, a, b, otherwise=-1.0)
    assert y.tolist() == [-1.0, 2.0]
    ga, gb = gg.autograd.grad(y.sum(), [a, b], create_graph=True)
    assert ga.tolist() == [0.0, pytest.approx(1 / 3)]
    assert gb.tolist() == [0.0, pytest.approx(-2 / 3)]
    (second,) = gg.autograd.grad(gb.sum(), b)
    assert second.tolist() == [0.0, pytest.approx(2 * 6 / 27)]
    x = gg.tensor([-1.0, 4.0], requires_grad=True)
    gg.safe_where(x >= 0, gg.sqrt, x, otherwise=x * 2, fill=1.0).sum().backward()
    assert x.grad.tolist() == [2.0, 0.25]


# --- ties, NaN and zeros among many -------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["amax", "amin", "max", "min"])
def test_ties_share(name: str) -> None:
    compare(lambda x: getattr(x, name)(), lambda x: getattr(x, name)(), np.array([[2.0, 1.0], [2.0, 1.0]]))
    compare(
        lambda x: getattr(gg, name)(x, 0)[0] if name in {"max", "min"} else getattr(gg, name)(x, 0),
        lambda x: getattr(torch, name)(x, 0)[0] if name in {"max", "min"} else getattr(torch, name)(x, 0),
        np.array([[2.0, 1.0], [0.0, 3.0]]),
    )


@pytest.mark.parametrize("name", ["maximum", "minimum", "fmax", "fmin"])
def test_larger_of_two_with_ties_and_nan(name: str) -> None:
    compare(getattr(gg, name), getattr(torch, name), np.array([1.0, 2.0, NAN, 3.0]), np.array([1.0, 3.0, 0.0, NAN]))


@pytest.mark.parametrize("zeros", [[], [1], [0, 2], [0, 1, 2, 3]])
@pytest.mark.parametrize("name", ["prod", "cumprod"])
def test_products_with_zeros_to_second_order(name: str, zeros: list[int]) -> None:
    start = np.array([1.5, -2.0, 0.5, 3.0])
    start[zeros] = 0
    found = []
    for lib in (gg, torch):
        x = lib.tensor(start, requires_grad=True)
        y = x.prod() if name == "prod" else x.cumprod(0)
        weights = lib.tensor(np.arange(1.0, 5.0)) if name == "cumprod" else 1.0
        (g,) = lib.autograd.grad((y * weights).sum(), x, create_graph=True)
        (h,) = lib.autograd.grad((g * lib.tensor(np.array([1.0, -1.0, 2.0, 0.5]))).sum(), x)
        found.append((g.detach().numpy(), h.numpy()))
    np.testing.assert_allclose(found[0][0], found[1][0], rtol=1e-12)
    np.testing.assert_allclose(found[0][1], found[1][1], rtol=1e-12, atol=1e-13)


def test_products_that_underflow() -> None:
    y, g = gradient_of(lambda x: x.prod(), 1e-200, 1e-200)
    assert y == 0.0
    assert g == [1e-200, 1e-200]


@pytest.mark.parametrize("name", ["sort", "argsort", "median", "cummax", "cummin", "topk", "nanmedian"])
def test_order_with_nan(name: str) -> None:
    x = np.array([[2.0, NAN, 1.0, 3.0, 1.5], [0.0, 4.0, -1.0, 2.0, NAN]])
    arguments: tuple[Any, ...] = (3,) if name == "topk" else () if name in {"sort", "argsort"} else (1,)
    ours, theirs = getattr(gg, name)(gg.tensor(x), *arguments), getattr(torch, name)(torch.tensor(x), *arguments)
    ours, theirs = (part if isinstance(part, tuple) else (part,) for part in (ours, theirs))
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(a.numpy(), b.numpy())


def test_steps_have_a_gradient_of_zero_and_not_none() -> None:
    for name in ("floor", "ceil", "round", "trunc", "sign", "floor_divide"):
        x = gg.tensor([0.4, 1.6], requires_grad=True)
        y = getattr(x, name)(*((2.0,) if name == "floor_divide" else ()))
        y.sum().backward()
        assert x.grad.tolist() == [0.0, 0.0]
    assert not gg.tensor([1.0], requires_grad=True).gt(0).requires_grad


def test_long_recurrences_by_blocks_are_the_loop() -> None:
    rng = np.random.default_rng(0)
    from glassgrad.ops.scan import recurrence_p

    for shape, axis in (((1000,), 0), ((3, 500), 1), ((130, 2), 0)):
        for reverse in (False, True):
            a, b = rng.normal(size=shape) * 0.9, rng.normal(size=shape)
            a[rng.random(shape) < 0.05] = 0
            expected = b.copy()
            moved_a, moved = np.moveaxis(a, axis, 0), np.moveaxis(expected, axis, 0)
            order = range(len(moved))[::-1] if reverse else range(len(moved))
            before = 0.0
            for i in order:
                moved[i] += moved_a[i] * before
                before = moved[i]
            np.testing.assert_allclose(recurrence_p(a, b, axis=axis, reverse=reverse), expected, rtol=1e-9, atol=1e-12)


# --- several numbers at once, against PyTorch --------------------------------------------------------------

ROWS = np.array([[-INF, 0.0, 1.0], [INF, 0.0, 1.0], [INF, -INF, 0.0], [1e30, 1e30, -1e30], [NAN, 0.0, 1.0]])
BOUND = np.array([-2.0, -1.0, 0.0, 1.0, 2.0])
TOGETHER: dict[str, tuple[Callable[[Any, Any], Any], np.ndarray[Any, Any]]] = {
    "logsumexp": (lambda lib, x: lib.logsumexp(x, 1), ROWS),
    "softmax": (lambda lib, x: lib.softmax(x, 1), np.vstack([ROWS, [[-INF] * 3]])),
    "log_softmax": (lambda lib, x: lib.log_softmax(x, 1), np.vstack([ROWS, [[-INF] * 3]])),
    "clamp by tensors": (lambda lib, x: lib.clamp(x, lib.tensor(-np.ones(5)), lib.tensor(np.ones(5))), BOUND),
    "clamp by crossed tensors": (lambda lib, x: lib.clamp(x, lib.tensor(np.ones(5)), lib.tensor(-np.ones(5))), BOUND),
    "logit": (lambda lib, x: lib.logit(x), np.array([-1.0, 0.0, 0.25, 1.0, 2.0])),
    "power 0": (lambda lib, x: x**0, np.array([-INF, -1.0, 0.0, 3.0, INF])),
    "power 1, twice": (lambda lib, x: x**1 * x, np.array([-1.0, 0.0, 3.0])),
    "prod": (lambda lib, x: x.prod(1), np.array([[2.0, 0.0, 3.0], [0.0, 0.0, 3.0], [1.0, 2.0, 3.0]])),
    "cumprod": (lambda lib, x: x.cumprod(1), np.array([[2.0, 0.0, 3.0], [0.0, 0.0, 3.0], [1.0, 2.0, 3.0]])),
    "probabilities": (
        lambda lib, x: lib.nn.functional.binary_cross_entropy(x, lib.tensor([0.0, 1, 1, 0, 1], dtype=x.dtype)),
        np.array([0.0, 1.0, 0.0, 1.0, 0.5]),
    ),
    "ignored": (
        lambda lib, x: lib.nn.functional.cross_entropy(x, lib.tensor([-100] * 5), reduction="sum"),
        ROWS,
    ),
}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", TOGETHER)
def test_edges_of_several_numbers(name: str, dtype: Any) -> None:
    function, numbers = TOGETHER[name]
    x = numbers.astype(dtype)
    found, expected = (run(lib, lambda t, lib=lib: function(lib, t), [x]) for lib in (gg, torch))
    np.testing.assert_allclose(found[0], expected[0], rtol=1e-5)
    np.testing.assert_allclose(found[1][0], expected[1][0], rtol=1e-5)
    assert found[1][0].dtype == dtype


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_cross_entropy_of_certain_probabilities_has_finite_slopes_by_every_route(dtype: Any) -> None:
    x, target = (np.array(numbers, dtype) for numbers in ([0, 1, 0, 1, 0.5], [0, 1, 1, 0, 1]))

    def loss(p: Any) -> Any:
        return gg.nn.functional.binary_cross_entropy(p, gg.tensor(target), reduction="sum")

    # Of a certain and right probability the slope is 1 by the formula; the rule of the fused loss says 0, as PyTorch.
    expected = [1, -1, -1e12, 1e12, -2]
    leaf = gg.tensor(x, requires_grad=True)
    (recorded,) = gg.autograd.grad(loss(leaf), [leaf], create_graph=True)
    np.testing.assert_allclose(recorded.detach().numpy(), expected, rtol=1e-4)
    np.testing.assert_allclose(gg.compile(gg.func.grad(loss))(gg.tensor(x)).numpy(), expected, rtol=1e-4)
    eager = gg.func.grad(loss)(gg.tensor(x)).numpy()
    np.testing.assert_allclose(eager[2:], expected[2:], rtol=1e-4)
    assert np.abs(eager[:2]).max() <= 1
