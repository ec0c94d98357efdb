"""Programs of elementwise ops without a template: text and forward give the same numbers, or there is no text."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from glassgrad.compile.numpy.text import PRODUCT, SUM, Text
from glassgrad.compile.source.from_forward import from_forward
from glassgrad.ops.core import REGISTRY, Elementwise
from tests.ops.cases import cases, params_of

FORMULAS = {
    name
    for name, prim in REGISTRY.items()
    if isinstance(prim, Elementwise) and callable(getattr(prim, "forward", None))
}
CASES = [case for case in cases(differentiable=False) if case.prim.name in FORMULAS]
KNOWN = {"reciprocal", "power", "lerp", "where", "rsqrt", "softplus", "mish", "elu", "gelu_tanh", "relu", "leaky_relu"}


def evaluated(prim: Any, args: list[Any], params: dict[str, Any]) -> Any:
    """The text of an op, run; None where it has none."""
    operands = [Text(f"x{at} * 1", PRODUCT) if at else Text("x0 - 0", SUM) for at in range(len(args))]
    found = from_forward(prim.name, operands, params)
    names = {f"x{at}": value for at, value in enumerate(args)}
    return None if found is None else eval(found.code, {"np": np, **names})  # noqa: S307 - text of our own


def test_these_have_text() -> None:
    written = {case.prim.name for case in CASES if evaluated(case.prim, *case.draw()) is not None}
    assert written >= KNOWN


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_samples_agree(case: Any, dtype: Any) -> None:
    args, params = case.draw(dtype=dtype)
    found = evaluated(case.prim, args, params)
    if found is not None:
        np.testing.assert_allclose(found, case.prim.compute(tuple(args), params), rtol=1e-5)


@pytest.mark.parametrize("name", sorted(name for name in FORMULAS if REGISTRY[name].edge))
def test_edges_agree(name: str) -> None:
    prim: Any = REGISTRY[name]
    grid = [one.reshape(-1) for one in np.meshgrid(*[np.array(prim.edge)] * prim.arity)]
    args = [grid[0] > 0, *grid[1:]] if name == "where" else grid
    with np.errstate(all="ignore"):
        found = evaluated(prim, args, params_of(prim))
        if found is not None:
            np.testing.assert_allclose(found, prim.compute(tuple(args), params_of(prim)), rtol=1e-12)
