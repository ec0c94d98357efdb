"""Transforms from real numbers to values that satisfy a constraint: `biject_to` bijective, `transform_to` any.

Optimizers and samplers work on unconstrained real numbers; the transform of a constraint maps these to valid values.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from glassgrad import errors
from glassgrad.base import provenance
from glassgrad.distributions import transforms
from glassgrad.distributions.constraints import Constraint

Factory = Callable[[Any], transforms.Transform]
Kind = Constraint | Callable[..., Constraint]  # one, a class of them, or the function that makes them


class ConstraintRegistry:
    """Transforms by constraint: calling it with a constraint returns the transform onto that set.

    Example:
        >>> import glassgrad as gg
        >>> from glassgrad.distributions import biject_to, constraints
        >>> biject_to(constraints.greater_than(2.0))(gg.tensor([0.0]))
        tensor([3.])
    """

    def __init__(self) -> None:
        self._factories: dict[Any, Factory] = {}

    def register(self, constraint: Kind, factory: Factory | None = None) -> Any:
        """Register the factory of the transform for a constraint, of your own class or of the library's.

        Args:
            constraint: a constraint, a function that makes constraints, or a subclass of `Constraint`.
            factory: takes the constraint and returns a `Transform`. Without it, this is a decorator of one.
        """
        if factory is None:
            return lambda given: self.register(constraint, given)
        self._factories[_key(constraint)] = factory
        return factory

    def __call__(self, constraint: Kind) -> transforms.Transform:
        """Return the transform for a constraint.

        Raises:
            NoFormulaError: there is none.
        """
        factory = self._factories.get(_key(constraint))
        if factory is None:
            raise errors.NO_TRANSFORM_FOR(constraint=constraint, where=provenance.here())
        return factory(constraint)


def _key(constraint: Kind) -> Any:
    if isinstance(constraint, Constraint):
        return constraint.kind or (constraint if type(constraint) is Constraint else type(constraint))
    return constraint if isinstance(constraint, type) else getattr(constraint, "__name__", constraint)


biject_to, transform_to = ConstraintRegistry(), ConstraintRegistry()


def _nothing(constraint: Constraint) -> transforms.Transform:
    return transforms.identity_transform


def _above(constraint: Constraint) -> transforms.Transform:
    return transforms.ComposeTransform([transforms.ExpTransform(), transforms.AffineTransform(constraint.given[0], 1)])


def _between(constraint: Constraint) -> transforms.Transform:
    low, high = constraint.given
    return transforms.ComposeTransform([transforms.SigmoidTransform(), transforms.AffineTransform(low, high - low)])


def _several(registry: ConstraintRegistry) -> Factory:
    def make(constraint: Constraint) -> transforms.Transform:
        base, count = constraint.given
        return transforms.IndependentTransform(registry(base), count)

    return make


_BOTH: dict[str, Factory] = {
    **dict.fromkeys(("real", "real_vector"), _nothing),
    **dict.fromkeys(("greater_than", "greater_than_eq"), _above),
    **dict.fromkeys(("interval", "half_open_interval"), _between),
    "positive": lambda constraint: transforms.ExpTransform(),
    "nonnegative": lambda constraint: transforms.ExpTransform(),
    "unit_interval": lambda constraint: transforms.SigmoidTransform(),
}
for _registry in (biject_to, transform_to):
    for _kind, _factory in _BOTH.items():
        _registry._factories[_kind] = _factory
    _registry._factories["independent"] = _several(_registry)
biject_to._factories["simplex"] = lambda constraint: transforms.StickBreakingTransform()
transform_to._factories["lower_cholesky"] = lambda constraint: transforms.LowerCholeskyTransform()
transform_to._factories["simplex"] = lambda constraint: transforms.SoftmaxTransform()

__all__ = ["biject_to", "transform_to"]
