"""Printed output under the name torch: exactly PyTorch's text of tensors."""

from __future__ import annotations

import contextlib
import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import glassgrad as gg
from glassgrad import compat

torch = pytest.importorskip("torch", reason="PyTorch's text is what ours is held against")

FLOATS = ("float32", "float64", "float16")
DTYPES = (*FLOATS, "int64", "int32", "int16", "int8", "uint8", "bool", "complex64", "complex128")


def both(make: Callable[[Any], Any], **options: Any) -> tuple[Any, Any]:
    """What a function of the library returns: of glassgrad under the name torch, and of PyTorch."""
    found = []
    for library in (gg, torch):
        with compat.as_torch() if library is gg else contextlib.nullcontext():
            library.set_printoptions(profile="default")
            library.set_printoptions(**options)
            try:
                found.append(make(library))
            finally:
                library.set_printoptions(profile="default")
    return found[0], found[1]


def _numbers(dtype: str) -> st.SearchStrategy[Any]:
    """Numbers of one magnitude or of several, whole or not, with zeros and what is not finite among them."""
    if dtype == "bool":
        return st.booleans()
    if dtype.startswith("complex"):
        return st.builds(complex, _numbers("float32"), _numbers("float32"))
    if not dtype.startswith("float"):
        info = np.iinfo(dtype)
        low = 0 if info.min == 0 else -120
        return st.one_of(st.integers(low, 120), st.integers(int(info.min), int(info.max)))
    powers = st.sampled_from([-9, -5, -4, -3, -1, 0, 1, 2, 3, 4] + ([] if dtype == "float16" else [7, 8, 9, 30]))
    parts = st.one_of(st.integers(-999, 999), st.floats(-10, 10))
    sized = st.builds(lambda part, power: float(part) * 10.0**power, parts, powers)
    return st.one_of(
        sized, st.integers(-99, 99).map(float), st.sampled_from([0.0, -0.0, math.inf, -math.inf, math.nan])
    )


@st.composite
def arrays(draw: Any) -> np.ndarray:
    """Arrays of any dtype and shape; some larger than what is printed whole."""
    dtype = draw(st.sampled_from(DTYPES))
    shape = draw(
        st.one_of(
            hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=9),
            st.sampled_from([(1001,), (40, 40), (7, 200), (2, 3, 200), (11, 10, 10), (1, 1001), (1001, 1), (5, 0)]),
        )
    )
    few = draw(st.lists(_numbers(dtype), min_size=1, max_size=12))
    with np.errstate(over="ignore"):
        return np.resize(np.array(few, dtype), shape)


@settings(max_examples=120)
@given(arrays())
def test_numbers(array: np.ndarray) -> None:
    ours, theirs = both(lambda library: repr(library.tensor(array)))
    assert ours == theirs


@settings(max_examples=60)
@given(
    arrays(),
    st.fixed_dictionaries(
        {},
        optional={
            "precision": st.integers(0, 8),
            "threshold": st.sampled_from([0, 5, 50, 1000, math.inf]),
            "edgeitems": st.integers(1, 4),
            "linewidth": st.sampled_from([10, 40, 80, 120]),
            "profile": st.sampled_from(["default", "short", "full"]),
            "sci_mode": st.sampled_from([None, True, False]),
        },
    ),
)
def test_options(array: np.ndarray, options: dict[str, Any]) -> None:
    ours, theirs = both(lambda library: repr(library.tensor(array)), **options)
    assert ours == theirs


@settings(max_examples=50)
@given(arrays().filter(lambda array: array.dtype.kind == "f"), st.booleans())
def test_what_follows_the_numbers(array: np.ndarray, computed: bool) -> None:
    def text(library: Any) -> str:
        x = library.tensor(array, requires_grad=True)
        return repr(-x if computed else x)

    ours, theirs = both(text)
    assert ours == theirs


def test_bfloat16_and_the_default_dtype() -> None:
    values = [[0.1, 2.0, 3e-5], [1.0, 1.0, 1.0]]

    def texts(library: Any) -> list[str]:
        library.set_default_dtype(library.float64)
        try:
            return [repr(library.tensor(values)), repr(library.ones(2, dtype=library.float32))]
        finally:
            library.set_default_dtype(library.float32)

    ours, theirs = both(texts)
    assert ours == theirs
    ours, theirs = both(lambda library: repr(library.tensor(values, dtype=library.bfloat16)))
    assert ours == theirs


WAYS: tuple[Callable[[Any], str], ...] = (
    lambda t: f"{t}",
    "{}".format,
    lambda t: f"{t:.3f}",
    lambda t: f"{t:8.2e}",
    lambda t: f"{t:>12}",
    lambda t: "%.2f" % t,  # noqa: UP031 - a form that scripts have
    lambda t: "%s" % t,  # noqa: UP031 - as above
    str,
    repr,
)


@pytest.mark.parametrize("way", range(len(WAYS)))
@pytest.mark.parametrize("value", [26.5, -1e-7, 3, math.nan, 1e20])
@pytest.mark.parametrize("grad", [False, True])
def test_one_number_in_a_text(way: int, value: float, grad: bool) -> None:
    if isinstance(value, int) and grad:
        pytest.skip("integers have no gradient")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # PyTorch warns of a number taken out of a tensor with a gradient
        ours, theirs = both(lambda library: WAYS[way](library.tensor(value, requires_grad=grad)))
    assert ours == theirs


def test_one_number_in_a_text_outside_of_the_name_torch() -> None:
    import subprocess
    import sys

    program = "import glassgrad as gg; t = gg.tensor(26.5); print(f'{t} {t:.2f} {gg.ones(1):.1f}', f'{gg.ones(2)}', t)"
    out = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert out == "26.5 26.50 1.0 tensor([1., 1.]) tensor(26.5)\n"


def test_parameters_modules_shapes_and_classes_of_ones_own() -> None:
    for make in (
        lambda t: t.nn.Parameter(t.ones(2, 2)),
        lambda t: t.nn.Parameter(t.ones(2), requires_grad=False),
        lambda t: list(t.nn.Linear(2, 1).requires_grad_(False).bias.fill_(0.25).shape),
        lambda t: t.ones(2, 3).shape,
        lambda t: t.ones(2, 3, 4).shape[1:],
        lambda t: t.tensor(1).size(),
        lambda t: f"{t.ones(2, 3).shape} {t.Size([1])}",
        lambda t: [t.ones(1), {"a": t.zeros(2, dtype=t.int64)}],
    ):
        ours, theirs = both(lambda library, make=make: repr(make(library)))
        assert ours == theirs


def test_a_text_in_a_traced_function_and_in_vmap_is_ours() -> None:
    seen = []
    with compat.as_torch():
        gg.func.vmap(lambda row: seen.append(repr(row)) or row * 2)(gg.ones(2, 3))
    assert seen
    assert "one for each of 2 examples" in seen[0]


def test_options_end_with_the_name_and_profiles_have_names() -> None:
    with compat.as_torch():
        gg.set_printoptions(precision=1)
        assert repr(gg.tensor([0.25])) == "tensor([0.2])"
        with pytest.raises(ValueError, match="default, short, full"):
            gg.set_printoptions(profile="wide")
    assert repr(gg.tensor([0.125])) == "tensor([0.125])"
    with compat.as_torch():
        assert repr(gg.tensor([0.125])) == "tensor([0.1250])"
