"""`biject_to` and `transform_to`: PyTorch's values and volumes, and user-defined constraints."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import glassgrad as gg
from glassgrad import distributions, errors
from glassgrad.distributions import biject_to, constraints, transform_to

torch = pytest.importorskip("torch", reason="PyTorch is the oracle")

CONSTRAINTS: dict[str, Callable[[Any], Any]] = {
    "real": lambda c: c.real,
    "positive": lambda c: c.positive,
    "nonnegative": lambda c: c.nonnegative,
    "above": lambda c: c.greater_than(1.5),
    "from": lambda c: c.greater_than_eq(-2.0),
    "unit interval": lambda c: c.unit_interval,
    "interval": lambda c: c.interval(-1.0, 3.0),
    "half open": lambda c: c.half_open_interval(0.0, 2.0),
    "simplex": lambda c: c.simplex,
    "real vector": lambda c: c.real_vector,
    "lower Cholesky": lambda c: c.lower_cholesky,
    "independent": lambda c: c.independent(c.positive, 1),
}


@pytest.mark.parametrize("which", ["biject_to", "transform_to"])
@pytest.mark.parametrize("name", CONSTRAINTS)
def test_values_are_those_of_pytorch(name: str, which: str) -> None:
    constraint, other = CONSTRAINTS[name](constraints), CONSTRAINTS[name](torch.distributions.constraints)
    if (name, which) == ("lower Cholesky", "biject_to"):
        with pytest.raises(NotImplementedError):
            biject_to(constraint)
        return
    mine, theirs = getattr(distributions, which)(constraint), getattr(torch.distributions, which)(other)
    x = np.random.default_rng(0).normal(size=(3, 3))
    a, b = gg.tensor(x), torch.tensor(x)
    y, expected = mine(a), theirs(b)
    np.testing.assert_allclose(y.numpy(), expected.numpy(), rtol=1e-12)
    assert constraint.check(y).all()
    if which == "biject_to":
        assert mine.bijective
        np.testing.assert_allclose(mine.inv(y).numpy(), theirs.inv(expected).numpy(), atol=1e-12)
    if theirs.bijective and name != "lower Cholesky":
        volume, wanted = mine.log_abs_det_jacobian(a, y), theirs.log_abs_det_jacobian(b, expected)
        np.testing.assert_allclose(np.asarray(volume), np.asarray(wanted), rtol=1e-12, atol=1e-12)


def test_parameters_of_distributions_have_transforms() -> None:
    made = distributions.Gamma(gg.tensor([2.0]), gg.tensor([3.0]))
    for constraint in made.arg_constraints.values():
        assert (transform_to(constraint)(gg.tensor([-5.0, 5.0])) > 0).all()
    assert biject_to(distributions.Uniform(gg.tensor(1.0), gg.tensor(4.0)).support)(gg.tensor(0.0)) == 2.5


def test_constraints_of_ones_own() -> None:
    even = constraints.Constraint("even", lambda x: x % 2 == 0)
    with pytest.raises(errors.NoFormulaError, match=r"to even .*test_constraint_registry.py:\d+"):
        biject_to(even)
    with pytest.raises(NotImplementedError):
        transform_to(constraints.positive_definite)

    class Above(constraints.Constraint):
        pass

    registry = distributions.constraint_registry.ConstraintRegistry()
    registry.register(even, lambda constraint: distributions.AffineTransform(0.0, 2.0))

    @registry.register(Above)
    def _above(constraint: Any) -> Any:
        return distributions.ExpTransform()

    registry.register(constraints.interval, lambda constraint: distributions.AffineTransform(*constraint.given))
    assert registry(even)(gg.tensor(3.0)) == 6
    assert registry(Above("above", lambda x: x > 0))(gg.tensor(0.0)) == 1
    assert registry(constraints.interval(1.0, 3.0))(gg.tensor(1.0)) == 4
