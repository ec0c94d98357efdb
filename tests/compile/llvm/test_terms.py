"""Native code derived from forwards, and the functions of the C library: exact ends, errors in ulp, edges, halves."""

from __future__ import annotations

import numpy as np
import pytest

import glassgrad as gg
from glassgrad.compile.llvm.loops.composite import FORWARDS, TermSpace
from glassgrad.compile.llvm.loops.scalar import ELEMENTWISE
from glassgrad.compile.llvm.math import MAX_ULP
from glassgrad.compile.llvm.math.library import LIBRARY
from glassgrad.ops.core import REGISTRY
from tests.compile.llvm.test_native_math import EDGES, compiled, ulps
from tests.ops.cases import params_of

DTYPES = pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["f4", "f8"])
RANGES = {
    "asin": (-1, 1), "acos": (-1, 1), "atan": (-50, 50), "asinh": (-1e3, 1e3), "acosh": (1, 1e3), "atanh": (-1, 1),
    "log2": (1e-3, 1e3), "log10": (1e-3, 1e3), "exp2": (-120, 120), "tan": (-20, 20), "sinh": (-80, 80),
    "cosh": (-80, 80),
}  # fmt: skip  # a table


def _check(op, found, exact, dtype):
    with np.errstate(all="ignore"):
        rounded = exact.astype(dtype)
    np.testing.assert_array_equal(np.isnan(found), np.isnan(rounded))
    finite = np.isfinite(rounded)
    np.testing.assert_array_equal(found[~finite], rounded[~finite])
    zero = found == 0
    np.testing.assert_array_equal(np.signbit(found[zero]), np.signbit(rounded[zero]))
    normal = finite & (np.abs(rounded) >= np.finfo(dtype).tiny)
    with np.errstate(over="ignore"):  # the unit of the largest number
        worst = ulps(found[normal], exact[normal], dtype).max()
    assert worst <= MAX_ULP[op][dtype == np.float64]


@DTYPES
@pytest.mark.parametrize("op", RANGES)
def test_functions_of_one_argument_stay_below_the_stated_error(op, dtype):
    rng, (low, high) = np.random.default_rng(0), RANGES[op]
    near = np.clip(rng.uniform(-1, 1, 20_000) * 10.0 ** rng.uniform(-12, 1, 20_000), low, high)
    edges = EDGES if op != "tan" else [value for value in EDGES if not abs(value) > 1e30]
    x = np.concatenate([np.linspace(low, high, 20_000), near, edges]).astype(dtype)
    with np.errstate(all="ignore"):
        exact = getattr(np, str(REGISTRY[op].forward))(x.astype(np.longdouble))
    _check(op, compiled(op, dtype, x.size)(x)[0], exact, dtype)


@DTYPES
@pytest.mark.parametrize("op", ["atan2", "hypot", "fmod", "nextafter"])
def test_functions_of_two_arguments_stay_below_the_stated_error(op, dtype):
    rng = np.random.default_rng(0)
    a, b = (rng.uniform(-1, 1, (2, 20_000)) * 10.0 ** rng.uniform(-8, 8, (2, 20_000))).astype(dtype)
    pairs = [grid.ravel().astype(dtype) for grid in np.meshgrid(EDGES, EDGES)]
    a, b = np.r_[a, pairs[0]], np.r_[b, pairs[1]]
    wide = dtype if op == "nextafter" else np.longdouble  # a neighbour is one of its own type
    with np.errstate(all="ignore"):
        exact = getattr(np, str(REGISTRY[op].forward))(a.astype(wide), b.astype(wide))
    _check(op, compiled(op, dtype, a.size, arity=2)(a, b)[0], exact, dtype)


@DTYPES
def test_gammaln_stays_below_the_stated_error(dtype):
    mpmath = pytest.importorskip("mpmath", reason="the truth to thirty digits")
    x = np.concatenate([np.linspace(-9.9, 30, 400), [1e-5, 1e10, 0.999, 1.0001, 2.0001]]).astype(dtype)
    x = x[x != np.floor(x)]
    with mpmath.workdps(30):
        exact = np.array([np.longdouble(str(mpmath.log(abs(mpmath.gamma(mpmath.mpf(float(v))))))) for v in x])
    found = compiled("gammaln", dtype, x.size)(x)[0]
    assert ulps(found, exact, dtype).max() <= MAX_ULP["gammaln"][dtype == np.float64]
    poles = np.array([0.0, -1.0, np.inf, -np.inf, 1.0, 2.0, np.nan] * 3, dtype)
    np.testing.assert_array_equal(compiled("gammaln", dtype, poles.size)(poles)[0][:7], [np.inf] * 4 + [0, 0, np.nan])


def test_powers_have_whole_logarithms():
    whole = np.arange(-20, 20)
    two, ten = 2.0**whole, 10.0 ** np.arange(0, 20)
    np.testing.assert_array_equal(compiled("log2", np.float64, two.size)(two)[0], whole)
    np.testing.assert_array_equal(compiled("exp2", np.float64, two.size)(whole.astype(float))[0], two)
    np.testing.assert_array_equal(compiled("log10", np.float64, ten.size)(ten)[0], np.arange(20))


def test_neighbours_of_halves_are_halves():
    values = np.array([0.0, -0.0, 1.0, -1.0, 65504, np.inf, -np.inf, np.nan, 6e-8, -6e-8, 0.3], np.float16)
    a, b = (grid.ravel() for grid in np.meshgrid(values, values))
    with np.errstate(all="ignore"):
        want = np.nextafter(a, b)
    np.testing.assert_array_equal(compiled("nextafter", np.float16, a.size, arity=2)(a, b)[0], want)


INTEGERS = pytest.mark.parametrize("dtype", [np.int8, np.int32, np.int64, np.uint8, np.bool_])


@INTEGERS
@pytest.mark.parametrize("op", ["fmod", "remainder", "floor_divide"])
def test_quotients_of_integers_are_numpys(op, dtype):
    values = np.array([0, 1, 2, 3, 7, 100, 127, -1, -3, -128]).astype(dtype)
    a, b = (grid.ravel() for grid in np.meshgrid(values, values))
    with np.errstate(all="ignore"):
        want = getattr(np, op)(a, b)
    found = compiled(op, want.dtype, a.size, arity=2)(a.astype(want.dtype), b.astype(want.dtype))[0]
    np.testing.assert_array_equal(found, want)


@INTEGERS
@pytest.mark.parametrize("op", ["sign", "signbit", "isinf", "isfinite", "isnan"])
def test_tests_of_integers_are_numpys(op, dtype):
    from glassgrad.compile.ir.graph import GraphBuilder
    from tests.compile.graphs import lower

    x = np.array([0, 1, 2, 127, -1, -128]).astype(dtype)
    want = REGISTRY[op].compute((x,), {})
    builder = GraphBuilder()
    out = builder.apply(op, [builder.input(x.shape, x.dtype)], x.shape, want.dtype, {})
    np.testing.assert_array_equal(lower(builder.build([out]), threads=1)(x)[0], want)


@pytest.mark.parametrize("backend", ["llvm", "numpy"])
@pytest.mark.parametrize("op", ["sign", "signbit", "heaviside"])
def test_booleans_and_integers_are_eager_modes(op, backend):
    function, args = getattr(gg, op), [gg.tensor([True, False]), gg.tensor([3, -2])][: REGISTRY[op].arity]
    want = function(*args)
    found = gg.compile(function, backend=backend, strict=True)(*args)
    assert found.dtype == want.dtype
    np.testing.assert_array_equal(found.numpy(), want.numpy())


@DTYPES
def test_lerp_meets_both_ends_in_every_form(dtype):
    a, b = np.array([[0.1, -3.3, 1e7, 1e-7]], dtype).repeat(2, 0), np.array([[0.7, 1e6, -0.3, 3.0]], dtype).repeat(2, 0)
    w = np.array([[0.0], [1.0]], dtype).repeat(4, 1)
    want = np.stack([a[0], b[0]])
    tensors = [gg.tensor(x) for x in (a, b, w)]
    np.testing.assert_array_equal(gg.lerp(*tensors).numpy(), want)
    for backend in ("llvm", "numpy"):
        step = gg.compile(gg.lerp, backend=backend)
        np.testing.assert_array_equal(step(*tensors).numpy(), want)
    np.testing.assert_array_equal(step.source.function()(a, b, w), want)


@pytest.mark.parametrize("op", [op for op in FORWARDS if op not in ELEMENTWISE and REGISTRY[op].samples])
def test_halves_are_rounded_once(op):
    """Each result is the float32 one, rounded: intermediate values neither overflow nor lose digits."""
    prim = REGISTRY[op]
    rng = np.random.default_rng(0)
    args = [domain.draw(rng, (40,), np.float16) for domain in prim.samples]
    got = _compiled_with(prim, args, np.float16)
    wide = _compiled_with(prim, [x.astype(np.float32) if x.dtype == np.float16 else x for x in args], np.float32)
    np.testing.assert_array_equal(got, wide.astype(np.float16))


def _compiled_with(prim, args, dtype):
    from glassgrad.compile.ir.graph import GraphBuilder
    from tests.compile.graphs import lower

    builder = GraphBuilder()
    operands = [builder.input(arg.shape, arg.dtype) for arg in args]
    out = builder.apply(prim.name, operands, args[0].shape, np.dtype(dtype), params_of(prim))
    return lower(builder.build([out]), threads=1)(*args)[0]


def test_a_term_space_has_the_basic_ops_and_nothing_else():
    space = TermSpace(np.dtype(np.float32))
    assert callable(space.arctan)
    assert not hasattr(space, "fft")


def test_every_function_of_the_library_states_its_error():
    assert set(LIBRARY) <= set(MAX_ULP)
