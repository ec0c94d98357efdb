"""Every dtype converted to every other: as in NumPy, and without functions that the process may lack."""

from __future__ import annotations

import numpy as np
import pytest

import glassgrad as gg

DTYPES = ("float16", "float32", "float64", "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32")


IN_THE_SUITE = ("float16", "float64", "bool", "int64", "uint8")


@pytest.mark.parametrize(
    "source", [one if one in IN_THE_SUITE else pytest.param(one, marks=pytest.mark.slow) for one in DTYPES]
)
def test_casts(source):
    values = np.arange(40).astype(source)
    if source.startswith(("float", "int")):
        values[::2] *= -1
    signed = [np.dtype(dtype) for dtype in DTYPES if values.min() >= 0 or not dtype.startswith("u")]

    def every(v):
        return [v.to(dtype) for dtype in signed]

    one_number = [values[7:8].reshape(())] if source == "float64" else []
    for form in (values, *one_number):
        for found, dtype in zip(gg.compile(every, strict=True)(gg.tensor(form)), signed, strict=True):
            assert found.dtype == dtype
            np.testing.assert_array_equal(found, form.astype(dtype))


def doubles_around_halves():
    """Every half, the middle of each two neighbours, and what lies a little beside."""
    with np.errstate(invalid="ignore"):  # some processors say so when they widen a signalling NaN
        halves = np.arange(1 << 16, dtype=np.uint16).view(np.float16).astype(np.float64)
    halves = np.sort(halves[np.isfinite(halves)])
    middle = (halves[1:] + halves[:-1]) / 2
    beside = [np.nextafter(middle, np.inf), np.nextafter(middle, -np.inf), middle * (1 + 1e-9), middle * (1 - 1e-9)]
    far = [np.inf, -np.inf, np.nan, 65519.99999, 65520.0, 1e39, -1e300, 1e-320, -1e-50, 0.0, -0.0]
    return np.concatenate([halves, middle, *beside, far])


@pytest.mark.filterwarnings("ignore:overflow encountered")
def test_halves_of_doubles_are_rounded_once():
    x = doubles_around_halves()
    found = np.asarray(gg.compile(lambda v: v.half(), strict=True)(gg.tensor(x)))
    with np.errstate(all="ignore"):
        wanted = x.astype(np.float16)
    same = found.view(np.uint16) == wanted.view(np.uint16)
    assert np.all(same | (np.isnan(found) & np.isnan(wanted)))


@pytest.mark.parametrize(("narrow", "wide"), [("float16", "float32"), ("bfloat16", "float32"), ("float32", "float64")])
def test_half_of_an_array_is_not_overwritten_by_wider_numbers(narrow, wide):
    """They take as many bytes, in the same order, and each lies where another is still to be read."""
    narrow, wide = getattr(gg, narrow), getattr(gg, wide)
    x = gg.tensor(np.random.default_rng(0).uniform(0.5, 1, (16, 33)), dtype=narrow)

    def step(x):
        whole = x @ x.mT  # in memory that the step is free to use
        return whole[:8].to(wide).log().flip(0).cumsum(0)

    found = gg.compile(step, strict=True, threads=1)(x).numpy()
    one = x.double().numpy()
    exact = np.log(one @ one.T)[7::-1].cumsum(0)
    np.testing.assert_allclose(found, exact, rtol=2 * float(gg.finfo(narrow).eps))
