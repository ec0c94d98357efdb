"""Every primitive with other dtypes, and every elementwise one with every broadcast: the registry says what to call.

Oracles: NumPy's own promotion, and the same call on arguments that were broadcast beforehand.
"""

from __future__ import annotations

import itertools
import warnings
from typing import Any

import numpy as np
import pytest

import glassgrad as gg
from glassgrad.ops.core import REGISTRY, Elementwise
from tests.ops.cases import Case, cases, is_float, params_of

ELEMENTWISE = [prim for prim in REGISTRY.values() if isinstance(prim, Elementwise) and prim.differentiable]
SEVERAL = [prim for prim in ELEMENTWISE if prim.arity > 1]
UFUNCS = [
    prim
    for prim in REGISTRY.values()
    if isinstance(prim, Elementwise) and isinstance(getattr(np, str(prim.forward), None), np.ufunc)
]


def quiet(function: Any, *args: Any, **params: Any) -> Any:
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return function(*args, **params)


def drawn(prim: Elementwise, shapes: Any, dtype: Any = np.float64) -> list[Any]:
    rng = np.random.default_rng(4)
    return [domain.draw(rng, shape, dtype) for domain, shape in zip(prim.samples, shapes, strict=True)]


# --- dtypes ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("prim", UFUNCS, ids=lambda prim: prim.name)
@pytest.mark.parametrize("dtype", [bool, np.uint8, np.int32, np.int64, np.float16, np.float32, np.float64])
def test_promotion_is_numpys(prim: Any, dtype: Any) -> None:
    args = [np.array([1, 0, 1]).astype(dtype), np.array([1, 1, 0]).astype(dtype)][: prim.arity]
    try:
        expected = quiet(getattr(np, prim.forward), *args)
    except TypeError:
        if prim.name == "sign":  # of truth values, which NumPy refuses and PyTorch returns as they are
            np.testing.assert_array_equal(quiet(prim, gg.tensor(args[0])).numpy(), args[0])
            return
        with pytest.raises(TypeError):
            quiet(prim, *map(gg.tensor, args))
        return
    found = quiet(prim, *map(gg.tensor, args))
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found.numpy(), expected)


@pytest.mark.parametrize("prim", ELEMENTWISE, ids=lambda prim: prim.name)
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_floats_keep_their_width(prim: Elementwise, dtype: Any) -> None:
    args = [x if x.dtype == bool else x.astype(dtype) for x in drawn(prim, [(3,)] * prim.arity)]
    found = quiet(prim, *args, **params_of(prim))
    assert np.asarray(found).dtype == prim.abstract(*args, **params_of(prim)).dtype
    if not any(x.dtype == bool for x in args) and np.asarray(found).dtype.kind == "f":
        assert np.asarray(found).dtype == dtype


@pytest.mark.parametrize("prim", ELEMENTWISE, ids=lambda prim: prim.name)
def test_integers_are_refused_or_give_what_floats_give(prim: Elementwise) -> None:
    args = [np.array([1, 2, 1]) if not domain.boolean else np.array([True, False, True]) for domain in prim.samples]
    try:
        found = quiet(prim, *map(gg.tensor, args), **params_of(prim))
    except (TypeError, ValueError):
        return
    floats = [x.astype(np.float64) if x.dtype.kind == "i" else x for x in args]
    expected = quiet(prim, *floats, **params_of(prim))
    assert not found.requires_grad
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-12)
    assert found.dtype.kind != "i" or np.array_equal(expected, np.round(expected))


@pytest.mark.parametrize("case", list(cases()), ids=lambda case: case.id)
def test_integers_never_require_a_gradient(case: Case) -> None:
    args, params = case.draw()
    rounded = [np.asarray(np.ceil(x), np.int64) if is_float(x) else x for x in args]
    try:
        y = quiet(case.prim, *[gg.tensor(x) if isinstance(x, np.ndarray) else x for x in rounded], **params)
    except (TypeError, ValueError, ArithmeticError, np.linalg.LinAlgError):
        return
    assert not any(part.requires_grad for part in (y if isinstance(y, tuple) else (y,)))


@pytest.mark.parametrize("prim", SEVERAL, ids=lambda prim: prim.name)
def test_mixed_precision_promotes_and_each_gradient_has_the_dtype_of_its_argument(prim: Elementwise) -> None:
    for dtypes in itertools.product((np.float32, np.float64), repeat=prim.arity):
        args = drawn(prim, ((3,),) * prim.arity)
        tensors = [
            gg.tensor(x.astype(dtype) if is_float(x) else x, requires_grad=is_float(x))
            for x, dtype in zip(args, dtypes, strict=True)
        ]
        y = prim(*tensors, **params_of(prim))
        assert y.dtype == np.result_type(*(t.array for t in tensors if t.requires_grad))
        y.backward(gg.ones(3, dtype=y.dtype))
        assert all(t.grad is None or t.grad.dtype == t.dtype for t in tensors)


@pytest.mark.parametrize("prim", SEVERAL, ids=lambda prim: prim.name)
def test_python_numbers_do_not_widen(prim: Elementwise) -> None:
    for at, domain in enumerate(prim.samples):
        if domain.boolean:
            continue
        args: list[Any] = drawn(prim, ((3,),) * prim.arity, np.float32)
        number = float(args[at][0])
        args[at] = number
        y = prim(*(gg.tensor(x, requires_grad=is_float(x)) if isinstance(x, np.ndarray) else x for x in args))
        assert y.dtype == np.float32
        args[at] = np.float32(number)
        np.testing.assert_allclose(y.detach().numpy(), prim(*args), rtol=1e-5)


@pytest.mark.parametrize("prim", ELEMENTWISE, ids=lambda prim: prim.name)
def test_gradients_of_0d_leaves_are_0d_arrays(prim: Elementwise) -> None:
    # NumPy turns 0-d arrays into scalars at every opportunity; they print differently and cannot be written to.
    tensors = [gg.tensor(x, requires_grad=is_float(x)) for x in map(np.asarray, drawn(prim, ((),) * prim.arity))]
    y = prim(*tensors, **params_of(prim))
    assert type(y.array) is np.ndarray
    y.backward()
    assert all(t.grad is None or type(t.grad.array) is np.ndarray for t in tensors)


# --- shapes ---------------------------------------------------------------------------------------


def gradients(prim: Elementwise, args: list[Any], g: Any) -> tuple[Any, list[Any]]:
    tensors = [gg.tensor(x, requires_grad=is_float(x)) for x in args]
    y = prim(*tensors, **params_of(prim))
    y.backward(gg.tensor(g))
    return y.detach().numpy(), [None if t.grad is None else t.grad.numpy() for t in tensors]


def undone(g: Any, shape: tuple[int, ...]) -> Any:
    """Sum over what broadcasting has repeated."""
    g = g.sum(axis=tuple(range(g.ndim - len(shape))))
    return g.sum(axis=tuple(axis for axis, n in enumerate(shape) if n == 1), keepdims=True)


@pytest.mark.parametrize("prim", SEVERAL, ids=lambda prim: prim.name)
def test_size_1_broadcasts_in_every_position(prim: Elementwise) -> None:
    # () (1,) (3,) and the four of (1|2, 1|3), for each argument.
    possible: list[tuple[int, ...]] = [(), (1,), (3,), (1, 1), (1, 3), (2, 1), (2, 3)]
    for shapes in itertools.product(possible, repeat=prim.arity):
        args = drawn(prim, shapes)
        full = np.broadcast_shapes(*shapes)
        g = np.random.default_rng(1).normal(size=full)
        y, found = gradients(prim, args, g)
        y_expected, wide = gradients(prim, [np.broadcast_to(x, full).copy() for x in args], g)
        np.testing.assert_allclose(y, y_expected, rtol=1e-13)
        for x, a, b in zip(args, found, wide, strict=True):
            assert (a is None) == (b is None)
            if a is not None:
                assert a.shape == x.shape
                np.testing.assert_allclose(a, undone(b, x.shape), rtol=1e-10, atol=1e-12, err_msg=str(shapes))


@pytest.mark.parametrize("prim", SEVERAL, ids=lambda prim: prim.name)
def test_shapes_that_do_not_broadcast_are_refused_with_both_shapes(prim: Elementwise) -> None:
    args = drawn(prim, ((2, 3), (4,), (4,))[: prim.arity])
    with pytest.raises(gg.errors.ShapeError, match=r"\(2, 3\).*\(4,\)"):
        prim(*map(gg.tensor, args), **params_of(prim))


@pytest.mark.parametrize("prim", ELEMENTWISE, ids=lambda prim: prim.name)
def test_repeated_and_strided_memory(prim: Elementwise) -> None:
    base = drawn(prim, ((4, 6),) * prim.arity)
    layouts = {
        "every second": lambda x: x[::2, ::3],
        "repeated": lambda x: np.broadcast_to(x[:1, :1], (2, 2)),
        "transposed": lambda x: x[:2, :2].T,
    }
    g = np.random.default_rng(1).normal(size=(2, 2))
    for layout in layouts.values():
        views = [layout(x) for x in base]
        y, found = gradients(prim, views, g)
        y_expected, expected = gradients(prim, [x.copy() for x in views], g)
        np.testing.assert_allclose(y, y_expected, rtol=1e-13)
        for a, b in zip(found, expected, strict=True):
            assert (a is None) == (b is None)
            if a is not None:
                np.testing.assert_allclose(a, b, rtol=1e-12)
