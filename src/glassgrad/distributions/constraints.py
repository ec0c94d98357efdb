"""Constraints: the sets of valid values of parameters and samples.

A constraint is checked elementwise, or over the last `event_dim` dimensions together.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from glassgrad.ops.core import Array

Test = Callable[[Array], Array]


class Constraint:
    """A set of values: `check(value)` tells which entries lie in it.

    Attributes:
        is_discrete: whether it is a set of whole numbers.
        event_dim: the number of last dimensions that form one value.
        kind: its key in the registries of transforms: its name, or that of the function that made it.
        given: the arguments of that function.
        of_arrays: whether the test works on NumPy arrays as well, which costs a fraction of the time.

    Example:
        >>> import glassgrad as gg
        >>> gg.distributions.constraints.positive.check(gg.tensor([1.0, -1.0]))
        tensor([ True, False])
    """

    def __init__(
        self,
        name: str,
        test: Test,
        *,
        is_discrete: bool = False,
        event_dim: int = 0,
        kind: str = "",
        given: tuple[Any, ...] = (),
        of_arrays: bool = False,
    ) -> None:
        self.of_arrays = of_arrays
        self._name = name
        self._test = test
        self.is_discrete = is_discrete
        self.event_dim = event_dim
        self.kind = kind
        self.given = given

    def check(self, value: Array) -> Array:
        """Return booleans: which values, of `event_dim` dimensions each, satisfy the constraint."""
        return self._test(value)

    def holds(self, value: Array) -> Array:
        """Return the same for a tensor whose numbers are known, as an array; for any other tensor as what it holds."""
        if self.of_arrays and type(value.array) is np.ndarray:
            return np.asarray(self._test(value.array))
        return self._test(value.detach()).array

    def __repr__(self) -> str:
        return self._name


def _is_number(x: Array) -> Array:
    return abs(x) <= np.inf


def _whole(x: Array) -> Array:
    return (x == np.floor(x)) & (abs(x) != np.inf) if x.dtype.kind in "fV" else _is_number(x)


def _lower(x: Array) -> Array:
    return (x.tril() == x).flatten(-2).all(-1)


def _close(x: Array, y: Array) -> Array:
    return abs(x - y) < 1e-6


def _positive_definite(x: Array) -> Array:
    symmetric = _close(x, x.mT).flatten(-2).all(-1)
    values = np.linalg.eigvalsh(x.detach().numpy())
    return symmetric & type(x)(np.asarray(values[..., 0] > 0))


boolean = Constraint("Boolean()", lambda x: (x == 0) | (x == 1), is_discrete=True, of_arrays=True)
nonnegative_integer = Constraint(
    "a whole number >= 0", lambda x: _whole(x) & (x >= 0), is_discrete=True, of_arrays=True
)
positive_integer = Constraint("a whole number >= 1", lambda x: _whole(x) & (x >= 1), is_discrete=True, of_arrays=True)
real = Constraint("Real()", _is_number, of_arrays=True)
positive = Constraint("x > 0", lambda x: x > 0, of_arrays=True)
nonnegative = Constraint("x >= 0", lambda x: x >= 0, of_arrays=True)
unit_interval = Constraint("0 <= x <= 1", lambda x: (x >= 0) & (x <= 1), of_arrays=True)
simplex = Constraint(
    "Simplex(): x >= 0, and a sum of 1",
    lambda x: (x >= 0).all(-1) & _close(x.sum(-1), 1.0),
    event_dim=1,
    of_arrays=True,
)
one_hot = Constraint(
    "OneHot()",
    lambda x: ((x == 0) | (x == 1)).all(-1) & (x.sum(-1) == 1),
    is_discrete=True,
    event_dim=1,
    of_arrays=True,
)
real_vector = Constraint("a vector of real numbers", lambda x: _is_number(x).all(-1), event_dim=1, of_arrays=True)
lower_triangular = Constraint("LowerTriangular()", _lower, event_dim=2)
lower_cholesky = Constraint(
    "LowerCholesky(): lower triangular, with a positive diagonal",
    lambda x: _lower(x) & (x.diagonal(0, -2, -1) > 0).all(-1),
    event_dim=2,
)
positive_definite = Constraint("PositiveDefinite()", _positive_definite, event_dim=2)


def interval(lower_bound: Array, upper_bound: Array) -> Constraint:
    """Real numbers between two bounds, both included.

    Example:
        >>> import glassgrad as gg
        >>> gg.distributions.constraints.half_open_interval(0, 1).check(gg.tensor([0.0, 1.0]))
        tensor([ True,  True])
    """
    name, bounds = f"{_shown(lower_bound)} <= x <= {_shown(upper_bound)}", (lower_bound, upper_bound)
    return Constraint(
        name,
        lambda x: (x >= lower_bound) & (x <= upper_bound),
        kind="interval",
        given=bounds,
        of_arrays=_plain(*bounds),
    )


def integer_interval(lower_bound: Array, upper_bound: Array) -> Constraint:
    """Whole numbers between two bounds, both included.

    Example:
        >>> import glassgrad as gg
        >>> gg.distributions.constraints.integer_interval(0, 3).check(gg.tensor([2.0, 2.5]))
        tensor([ True, False])
    """
    inside = interval(lower_bound, upper_bound)
    return Constraint(
        f"whole, {inside}", lambda x: _whole(x) & inside.check(x), is_discrete=True, of_arrays=inside.of_arrays
    )


def greater_than(lower_bound: Array) -> Constraint:
    """Real numbers greater than a bound.

    Example:
        >>> import glassgrad as gg
        >>> gg.distributions.constraints.greater_than(0).check(gg.tensor([-1.0, 2.0]))
        tensor([False,  True])
    """
    name = f"x > {_shown(lower_bound)}"
    return Constraint(
        name, lambda x: x > lower_bound, kind="greater_than", given=(lower_bound,), of_arrays=_plain(lower_bound)
    )


def greater_than_eq(lower_bound: Array) -> Constraint:
    """Real numbers greater than or equal to a bound.

    Example:
        >>> import glassgrad as gg
        >>> gg.distributions.constraints.greater_than_eq(0).check(gg.tensor([-1.0, 0.0]))
        tensor([False,  True])
    """
    name = f"x >= {_shown(lower_bound)}"
    return Constraint(
        name, lambda x: x >= lower_bound, kind="greater_than_eq", given=(lower_bound,), of_arrays=_plain(lower_bound)
    )


def multinomial(total: int) -> Constraint:
    """Non-negative counts that add up to `total`.

    Example:
        >>> import glassgrad as gg
        >>> gg.distributions.constraints.multinomial(3).check(gg.tensor([[1.0, 2.0], [1.0, 1.0]]))
        tensor([ True, False])
    """
    return Constraint(
        f"counts with a sum of {total}",
        lambda x: (_whole(x) & (x >= 0)).all(-1) & (x.sum(-1) == total),
        is_discrete=True,
        event_dim=1,
    )


def independent(base_constraint: Constraint, reinterpreted_batch_ndims: int) -> Constraint:
    """Another constraint whose last dimensions count as one value.

    Example:
        >>> import glassgrad as gg
        >>> constraints = gg.distributions.constraints
        >>> constraints.independent(constraints.positive, 1).check(gg.tensor([[1.0, -1.0], [1.0, 2.0]]))
        tensor([False,  True])
    """

    def test(x: Array) -> Array:
        inside = base_constraint.check(x)
        return inside.flatten(-reinterpreted_batch_ndims).all(-1) if reinterpreted_batch_ndims else inside

    return Constraint(
        repr(base_constraint),
        test,
        is_discrete=base_constraint.is_discrete,
        event_dim=base_constraint.event_dim + reinterpreted_batch_ndims,
        kind="independent",
        given=(base_constraint, reinterpreted_batch_ndims),
    )


def _plain(*bounds: Array) -> bool:
    """Tell whether bounds are Python's numbers, which compare with arrays and tensors alike."""
    return all(isinstance(bound, int | float) for bound in bounds)


def _shown(bound: Array) -> str:
    return "the bound" if getattr(bound, "shape", ()) else f"{float(bound):g}"


half_open_interval = interval

_OF_NUMBERS = ("real", "positive", "nonnegative", "unit_interval")
_OF_ARRAYS = ("simplex", "real_vector", "lower_triangular", "lower_cholesky", "positive_definite")
for _name in (*_OF_NUMBERS, *_OF_ARRAYS):
    globals()[_name].kind = _name

__all__ = ["Constraint", "boolean", "greater_than", "greater_than_eq", "half_open_interval", "independent"]
__all__ += ["integer_interval", "interval", "lower_cholesky", "lower_triangular", "multinomial", "nonnegative"]
__all__ += ["nonnegative_integer", "one_hot", "positive", "positive_definite", "positive_integer", "real"]
__all__ += ["real_vector", "simplex", "unit_interval"]
