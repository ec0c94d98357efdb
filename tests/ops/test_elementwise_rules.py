"""Rules of elementwise ops at the border between two formulas: ties, plain numbers, small and complex ones.

PyTorch is the oracle, with gradients of gradients: a second walk sends tensors where the first one sends arrays.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.special

import glassgrad as gg
import glassgrad.engine.public  # fills the table
from glassgrad.ops.core import REGISTRY, Elementwise
from tests.ops.against_torch import agree_in_two_orders, real, torch

INF, NAN = np.inf, np.nan


TIES = np.array([1.0, 2.0, 2.0, -1.0, 0.5]), np.array([2.0, 1.0, 2.0, -1.0, 0.25])
BASES = np.array([0.0, 0.5, 1.0, 2.0, -1.5, -2.0])


# Of (lib, *inputs).
CALLS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    **{
        f"{name} of ties": (lambda lib, a, b, name=name: getattr(lib, name)(a, b), TIES)
        for name in ("maximum", "minimum", "fmax", "fmin")
    },
    "maximum of two dtypes": (lambda lib, a, b: lib.maximum(a, b), (TIES[0].astype(np.float32), TIES[1])),
    "maximum of integers and floats": (lambda lib, a, b: lib.maximum(a, b), (np.array([1, 2, 2, -1, 0]), TIES[1])),
    "minimum of floats and integers": (lambda lib, a, b: lib.minimum(a, b), (TIES[1], np.array([1, 2, 2, -1, 0]))),
    **{f"power {n}": (lambda lib, a, n=n: a**n, (BASES,)) for n in (0, 0.0, 1, 2, 3, -2, 4.0)},
    "power 0.5": (lambda lib, a: a**0.5, (BASES[1:4],)),
    "power of tensors": (lambda lib, a, b: a**b, (BASES[1:4], np.array([0.0, 2.0, -1.5]))),
    "power of negative bases": (lambda lib, a: a ** lib.tensor([2.0, 3.0, 0.0], dtype=lib.float64), (BASES[3:],)),
    "exponents of 2": (lambda lib, b: 2**b, (np.array([0.0, 2.0, -1.5]),)),
    "lerp": (lambda lib, a, b, w: lib.lerp(a, b, w), (real(4), real(4, seed=1), np.array([0.0, 0.5, 0.75, 2.0]))),
    "hypot": (lambda lib, a, b: lib.hypot(a, b), (real(5), real(5, seed=1))),
    "atan2": (lambda lib, a, b: lib.atan2(a, b), (real(5), real(5, seed=1))),
    "logaddexp": (lambda lib, a, b: lib.logaddexp(a, b), (np.array([1.0, 80.0, -3.0]), np.array([1.0, 2.0, 70.0]))),
    "logaddexp2": (lambda lib, a, b: lib.logaddexp2(a, b), (np.array([1.0, 80.0, -3.0]), np.array([1.0, 2.0, 7.0]))),
    "copysign": (lambda lib, a, b: lib.copysign(a, b), (real(5), real(5, seed=1))),
    "fmod": (lambda lib, a, b: lib.fmod(a, b), (5 * real(5), real(5, seed=1))),
    "remainder": (lambda lib, a, b: lib.remainder(a, b), (5 * real(5), real(5, seed=1))),
    "where": (lambda lib, a, b: lib.where(a > 0, a, b) * lib.where(b > 0, 2.0, a), (real(5), real(5, seed=1))),
    "clamp": (lambda lib, a: a.clamp(-1.0, 2.0) * a, (np.array([-2.0, -1.0, 0.0, 2.0, 3.0]),)),
    "clamp from": (lambda lib, a: a.clamp(min=-1.0) * a, (np.array([-2.0, -1.0, 0.0, 2.0, 3.0]),)),
    "clamp to": (lambda lib, a: a.clamp(max=2.0) * a, (np.array([-2.0, -1.0, 0.0, 2.0, 3.0]),)),
    **{
        name: (lambda lib, a, name=name: getattr(lib, name)(a), (np.array([0.3, 0.55, 0.7]),))
        for name in (
            "asin", "acos", "atan", "atanh", "asinh", "tan", "tanh", "sinh", "cosh", "sqrt", "rsqrt", "reciprocal",
            "exp2", "expm1", "log1p", "log2", "log10", "sinc", "square",
        )
    },
    "acosh": (lambda lib, a: lib.acosh(a), (np.array([1.3, 2.55, 7.0]),)),
    **{
        name: (lambda lib, a, name=name: getattr(lib, name)(a) * a, (np.array([0.3, -1.55, 2.7]),))
        for name in ("floor", "ceil", "trunc", "round", "sign")
    },
    # Complex numbers.
    "abs of complex": (lambda lib, a: lib.abs(a), (np.array([1 + 2j, -3j, 0.5]),)),
    "abs of complex 0": (lambda lib, a: lib.abs(a), (np.array([0j, 2j]),)),
    "exp2 of complex": (lambda lib, a: lib.exp2(a), (np.array([1 + 2j, -3j, 0.5]),)),
    "complex powers": (lambda lib, a, b: a**b, (np.array([1 + 2j, -3j, 0.5]), np.array([2 - 1j, 0.5j, 3]))),
    "complex exponent": (lambda lib, b: lib.tensor([-2.0, 3.0]).double() ** b, (np.array([2 - 1j, 0.5j]),)),
    "complex base": (lambda lib, a: a**3 + a**-1.5 + a**0, (np.array([1 + 2j, -3j, 0.5]),)),
}  # fmt: skip  # a table


@pytest.mark.parametrize("name", CALLS)
def test_two_orders(name: str) -> None:
    function, inputs = CALLS[name]
    agree_in_two_orders(function, *inputs)


@pytest.mark.parametrize("name", ["maximum", "minimum"])
def test_extremes_beside_a_number(name: str) -> None:
    """Ties with a number, which has no dtype, are ties as well."""
    x, other = (lib.tensor([1.0, 2.0, 3.0], dtype=lib.float64, requires_grad=True) for lib in (gg, torch))
    getattr(gg, name)(x, 2.0).sum().backward()
    getattr(torch, name)(other, torch.tensor(2.0, dtype=torch.float64)).sum().backward()
    assert x.grad.tolist() == other.grad.tolist()


@pytest.mark.parametrize("name", ["maximum", "minimum", "fmax", "hypot", "logaddexp"])
def test_a_batch_beside_what_is_the_same_for_all_examples(name: str) -> None:
    batch, same = real(4, 3), np.append(real(2), real(4, 3)[0, 2])
    function = getattr(gg, name)
    for call in (lambda x: function(x, gg.tensor(same)), lambda x: function(gg.tensor(same), x)):
        slopes = gg.func.vmap(gg.func.grad(lambda x, call=call: call(x).sum()))(gg.tensor(batch)).numpy()
        for x, slope in zip(batch, slopes, strict=True):
            leaf = gg.tensor(x, requires_grad=True)
            call(leaf).sum().backward()
            np.testing.assert_allclose(slope, leaf.grad.numpy(), rtol=1e-12)


@pytest.mark.parametrize("exponent", [0, 0.0, 1, 2, 0.5, -1, 1.5])
def test_powers_at_zero_and_beside_nan(exponent: float) -> None:
    numbers = np.array([0.0, 1.0, INF, NAN])
    found, expected = (lib.tensor(numbers, requires_grad=True) for lib in (gg, torch))
    with np.errstate(all="ignore"):
        (found**exponent).sum().backward()
    (expected**exponent).sum().backward()
    if exponent == 0:  # PyTorch hides the NaN
        assert np.isnan(found.grad.numpy()[3])
    np.testing.assert_array_equal(found.grad.numpy()[:3], expected.grad.numpy()[:3])


def test_exponents_of_zero() -> None:
    """0**b is 0 for b > 0, and so is its slope."""
    for base, exponents in ((0.0, [0.0, 0.5, 2.0]), (1.0, [0.0, -1.0, 2.0])):
        a, b = np.full(3, base), np.array(exponents)
        results = []
        for lib in (gg, torch):
            given = lib.tensor(b, requires_grad=True)
            (lib.tensor(a) ** given).sum().backward()
            results.append(given.grad.numpy())
        np.testing.assert_array_equal(*results)
    b = gg.tensor([-1.0], requires_grad=True)
    with np.errstate(all="ignore"):
        (gg.tensor([0.0]) ** b).sum().backward()
    assert b.grad.tolist() == [-INF]  # inf * log(0)


def test_the_ends_of_lerp_are_exact() -> None:
    a, b = np.array([1e16, 0.1, -3.3, 1.0]), np.array([1.0, 0.7, 1e-16, 1e16])
    for weight, end in ((0.0, a), (1.0, b)):
        np.testing.assert_array_equal(gg.lerp(gg.tensor(a), gg.tensor(b), weight).numpy(), end)
        np.testing.assert_array_equal(gg.lerp(gg.tensor(a), gg.tensor(b), gg.full((4,), weight)).numpy(), end)
    a, b = np.append(a, 0.1), np.append(b, 1.7)
    weights = np.array([0.25, 0.49, 0.5, 0.75, 0.5])
    assert 0.1 + 0.5 * (1.7 - 0.1) != 1.7 - 0.5 * (1.7 - 0.1), "the two formulas are told apart"
    expected = torch.lerp(*(torch.tensor(x) for x in (a, b, weights))).numpy()
    np.testing.assert_array_equal(gg.lerp(*(gg.tensor(x) for x in (a, b, weights))).numpy(), expected)


def test_the_slope_of_sinc_is_a_spherical_bessel_function() -> None:
    x = np.concatenate([np.geomspace(1e-9, 3.0, 400), [0.0, 0.1, 0.0999999, 1e-30]])
    x = np.concatenate([x, -x])
    truth = -np.pi * scipy.special.spherical_jn(1, np.pi * np.abs(x)) * np.sign(x)
    for dtype, rtol, atol in ((np.float64, 1e-13, 1e-15), (np.float32, 3e-5, 1e-7)):
        given = gg.tensor(x.astype(dtype), requires_grad=True)
        gg.sinc(given).sum().backward()
        kept = np.abs(x) > 1e-6 if dtype is np.float32 else np.full(x.shape, True)
        np.testing.assert_allclose(given.grad.numpy()[kept], truth[kept], rtol=rtol, atol=atol)
        assert given.grad.dtype == dtype
    given = gg.tensor([1e-8, 2e-5], requires_grad=True, dtype=gg.float64)
    gg.sinc(given).sum().backward()
    np.testing.assert_allclose(given.grad.numpy(), -(np.pi**2) / 3 * given.detach().numpy(), rtol=1e-8, atol=0)


@pytest.mark.parametrize("shift", [0.0, 800.0, -800.0])
def test_complex_logaddexp(shift: float) -> None:
    """The shares are those of softmax, also where exp alone would overflow."""
    a, b = np.array([1 + 2j, -1 + 0.5j, 2 - 1j, 0.5j]) + shift, np.array([-1 + 1j, 1 + 0.25j, 2 + 1j, 0.5 + 0j]) + shift
    first, second = gg.tensor(a, requires_grad=True), gg.tensor(b, requires_grad=True)
    gg.logaddexp(first, second).backward(gg.ones(4, dtype=gg.complex128))
    share = 1 / (1 + np.exp(b - a))
    np.testing.assert_allclose(first.grad.numpy(), share.conj(), rtol=1e-12)
    np.testing.assert_allclose(second.grad.numpy(), (1 - share).conj(), rtol=1e-12)


def test_complex_logaddexp_of_equal_real_parts() -> None:
    """The first one counts as the larger then: the result is that of its branch."""
    first, second = np.array([1 + 3j, 1 - 3j, 2 + 2j]), np.array([1 - 3j, 1 + 3j, 2 - 3j])
    expected = torch.logaddexp(torch.tensor(first), torch.tensor(second)).numpy()
    np.testing.assert_allclose(gg.logaddexp(gg.tensor(first), gg.tensor(second)).numpy(), expected, rtol=1e-14)


def test_complex_logaddexp_of_far_numbers() -> None:
    a, b = np.array([900.0 + 1j, -900.0 + 1j]), np.array([-900.0 + 1j, 900.0 - 1j])
    first, second = gg.tensor(a, requires_grad=True), gg.tensor(b, requires_grad=True)
    with np.errstate(all="raise", under="ignore"):
        gg.logaddexp(first, second).backward(gg.ones(2, dtype=gg.complex128))
    assert first.grad.tolist() == [1, 0]
    assert second.grad.tolist() == [0, 1]


def test_a_negative_base_is_on_the_side_of_the_cut_that_its_zero_says() -> None:
    a, b = np.array([complex(-2, -0.0), complex(-2, 0.0), -2 + 1j]), np.array([2 - 1j, 0.5 + 0.5j, 1 + 1j])
    agree_in_two_orders(lambda lib, a, b: a**b, a[::2], b[::2])
    for imaginary in (-0.0, 0.0):
        given = gg.tensor([1 + 1j], requires_grad=True, dtype=gg.complex128)
        base = gg.tensor(np.array([complex(-2, imaginary)]))
        (base**given).backward(gg.ones(1, dtype=gg.complex128))
        log = np.log(complex(-2, imaginary))
        np.testing.assert_allclose(given.grad.numpy()[0].conj(), np.exp((1 + 1j) * log) * log, rtol=1e-12)


def test_whole_powers_of_two_are_exact() -> None:
    assert gg.exp2(gg.arange(-20, 20).double()).tolist() == [2.0**n for n in range(-20, 20)]


def test_choosing_keeps_the_condition_alone() -> None:
    """What is chosen from is not needed on the way back, and its memory not held."""
    condition, leaf = gg.tensor([True, False]), gg.ones(2, requires_grad=True)
    first, second = leaf * 2, leaf * 3
    kept = [weakref.ref(one.array) for one in (first, second)]
    y = gg.where(condition, first, second)
    del first, second
    assert [one() for one in kept] == [None, None]
    y.sum().backward()
    assert leaf.grad.tolist() == [2, 3]


def test_heaviside_of_whole_numbers_is_whole() -> None:
    for dtype in ("int64", "int16", "float32"):
        a, b = np.array([-1, 0, 2], dtype), np.array([5, 6, 7], dtype)
        found, expected = gg.heaviside(gg.tensor(a), gg.tensor(b)), torch.heaviside(torch.tensor(a), torch.tensor(b))
        np.testing.assert_array_equal(found.numpy(), expected.numpy(), strict=True)


def test_the_slopes_of_heaviside() -> None:
    a, b = gg.tensor([-1.0, 0.0, 2.0, 1.0], requires_grad=True), gg.tensor([5.0, 6.0, 7.0, 1.0], requires_grad=True)
    gg.heaviside(a, b).sum().backward()
    assert a.grad.tolist() == [0, 0, 0, 0]
    assert b.grad.tolist() == [0, 1, 0, 0]


@pytest.mark.parametrize("name", ["floor", "ceil", "trunc", "round", "sign"])
def test_steps_have_the_slope_zero_and_reach_their_arguments(name: str) -> None:
    x = gg.tensor([0.3, -1.7], requires_grad=True)
    getattr(gg, name)(x).sum().backward()
    assert x.grad.tolist() == [0, 0]
    a, b = gg.tensor([3.3], requires_grad=True), gg.tensor([-1.7], requires_grad=True)
    gg.floor_divide(a, b).sum().backward()
    gg.copysign(a.detach(), b).sum().backward()
    assert (a.grad.tolist(), b.grad.tolist()) == ([0], [0])


def test_the_sign_of_truth_values() -> None:
    flags = np.array([True, False])
    found = gg.sign(gg.tensor(flags)).numpy()
    np.testing.assert_array_equal(found, torch.sign(torch.tensor(flags)).numpy(), strict=True)
    assert REGISTRY["sign"](-2.5) == -1


def test_entries_take_as_many_arguments_as_numpys_functions() -> None:
    entries = [prim for prim in REGISTRY.values() if isinstance(prim, Elementwise) and isinstance(prim.forward, str)]
    assert len(entries) > 60
    for prim in entries:
        function = getattr(np, prim.forward)
        assert prim.arity == getattr(function, "nin", 1), prim


def test_entries_take_complex_numbers_where_pytorchs_functions_do() -> None:
    z = torch.tensor([1 + 2j, 0.5 - 1j, 2 + 0j], dtype=torch.complex128)
    others = {"negative": "neg", "power": "pow", "equal": "eq", "not_equal": "ne"}
    seen = 0
    for prim in REGISTRY.values():
        name = others.get(prim.name, prim.name)
        function = next((getattr(lib, name) for lib in (torch, torch.nn.functional) if hasattr(lib, name)), None)
        if not isinstance(prim, Elementwise) or function is None:
            continue
        if name in {"nan_to_num", "polygamma"}:  # ours takes the parts of a complex number; an order is an integer
            continue
        seen += 1
        try:
            function(*((z.real > 0, z, z) if name == "where" else [z] * prim.arity))
        except (RuntimeError, NotImplementedError):
            assert not prim.takes_complex, prim
        else:
            assert prim.takes_complex, prim
    assert seen > 70
