"""Printed elementwise ops, derived from their forwards: text and forward give the same numbers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from glassgrad.compile.numpy.text import PRODUCT, SUM, Text
from glassgrad.compile.numpy.text_space import TextSpace, formula, term, why_no_formula
from glassgrad.compile.source.functions import applied, definition, definitions, is_defined
from glassgrad.ops.core import REGISTRY, Elementwise
from tests.ops.cases import cases, params_of

FORMULAS = {name: prim for name, prim in REGISTRY.items() if isinstance(prim, Elementwise)}
CASES = [case for case in cases(differentiable=False) if case.prim.name in FORMULAS and case.number == 0]
# Ops that programs have no text for: SciPy's functions.
WITHOUT_TEXT = {
    "erfcx", "erfinv", "ndtr", "log_ndtr", "ndtri", "digamma", "polygamma", "xlogy", "xlog1py", "entr", "i0", "i0e",
    "i1", "i1e", "gammainc", "gammaincc", "betainc", "bessel_j0", "bessel_j1", "bessel_y0", "bessel_y1",
    "modified_bessel_k0", "modified_bessel_k1", "scaled_modified_bessel_k0", "scaled_modified_bessel_k1", "airy_ai",
    "airy_slope", "zeta",
}  # fmt: skip  # a table


def evaluated(prim: Any, args: list[Any], params: dict[str, Any]) -> Any:
    """The text of an op, run, with operands that want brackets; None where it has none."""
    numbers = [x.dtype != bool and x.dtype.kind == "f" for x in args]
    operands = [
        Text(f"x{at} * 1", level=PRODUCT)
        if at and number
        else Text(f"x{at} - 0", level=SUM)
        if number
        else Text(f"x{at}")
        for at, number in enumerate(numbers)
    ]
    found = applied(prim.name, operands, params)
    if found is None:
        return None
    space = {"np": np, "math": math, **{f"x{at}": value for at, value in enumerate(args)}}
    called = found.code.partition("(")[0]
    exec(definitions([called] if is_defined(called) else []), space)  # noqa: S102 - text of our own
    return np.asarray(eval(found.code, space))  # noqa: S307 - text of our own


def test_what_has_no_text_is_known() -> None:
    without = {
        name for name, prim in FORMULAS.items() if applied(name, [Text("x")] * prim.arity, params_of(prim)) is None
    }
    assert without == WITHOUT_TEXT


@pytest.mark.parametrize(
    "case", [case for case in CASES if case.prim.name not in WITHOUT_TEXT], ids=lambda case: case.id
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_samples_agree(case: Any, dtype: Any) -> None:
    args, params = case.draw(dtype=dtype)
    with np.errstate(all="ignore"):
        found = evaluated(case.prim, args, params)
        want = np.asarray(case.prim.compute(tuple(args), params))
    assert found.dtype == want.dtype
    np.testing.assert_allclose(found, want, rtol=2e-6 if dtype == np.float32 else 1e-12)


@pytest.mark.parametrize("name", sorted(name for name in FORMULAS if REGISTRY[name].edge and name not in WITHOUT_TEXT))
def test_edges_agree(name: str) -> None:
    prim: Any = REGISTRY[name]
    grid = [one.reshape(-1) for one in np.meshgrid(*[np.array(prim.edge)] * prim.arity)]
    args = [grid[0] > 0, *grid[1:]] if name == "where" else grid
    with np.errstate(all="ignore"):
        found = evaluated(prim, args, params_of(prim))
        np.testing.assert_allclose(found, prim.compute(tuple(args), params_of(prim)), rtol=1e-12)


def test_a_part_that_is_used_twice_has_a_line() -> None:
    lines = (definition("lerp") or "").splitlines()
    assert lines[0] == "def lerp(a, b, weight):"
    assert lines[2:] == [
        "    u = b - a", "    return np.where(np.abs(weight) < 0.5, a + weight * u, b - (1 - weight) * u)",
    ]  # fmt: skip  # the lines


def test_a_formula_that_depends_on_an_option_is_written_with_its_value() -> None:
    prim: Any = REGISTRY["clip"]
    assert applied("clip", [Text("x")], {"low": None, "high": 2.0}).code == "np.clip(x, None, 2.0)"
    assert definition("clip") is None
    assert evaluated(prim, [np.array([1.0, 3.0])], {"low": None, "high": 2.0}).tolist() == [1, 2]


@pytest.mark.parametrize(
    ("forward", "reason"),
    [
        (lambda xp, x: x * 2 if x.dtype == np.float64 else x, "reads the attribute 'dtype' of an array"),
        (lambda xp, x: x if x > 0 else -x, "asks for the truth value of an array"),
        (lambda xp, x: xp.digamma(x), "calls digamma, which is no elementwise function of NumPy"),
        (lambda xp, x: 3.0, "returns a float"),
    ],
)
def test_a_forward_without_a_text_says_why(forward: Any, reason: str) -> None:
    prim = Elementwise("unlisted", forward, (None,), register=False)
    given = prim, [term(Text("x"))], {}, TextSpace()
    assert formula(*given) is None
    assert reason in why_no_formula(*given)
