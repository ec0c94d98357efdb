"""The base class: shapes, validation, and methods that follow from `log_prob` and `rsample`."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from glassgrad import errors
from glassgrad.base import provenance
from glassgrad.distributions.constraints import Constraint, real
from glassgrad.engine.mode import no_grad
from glassgrad.engine.tensor import Size, Tensor
from glassgrad.engine.tensors import creation
from glassgrad.ops.core import Array
from glassgrad.ops.names import PUBLIC

Shape = tuple[int, ...]
Sizes = int | Iterable[int]
Constraints = Mapping[str, Constraint]


def spread(*values: Array) -> tuple[Tensor, ...]:
    """Broadcast numbers and tensors to tensors of one shape; numbers take the tensors' dtype."""
    kinds = [value.dtype for value in values if isinstance(value, Tensor) and value.dtype.kind in "fV"]
    dtype = kinds[0] if kinds else creation.DEFAULT
    tensors = [value if isinstance(value, Tensor) else creation.tensor(value, dtype=dtype) for value in values]
    result: tuple[Tensor, ...] = tuple(PUBLIC["broadcast_tensors"](*tensors))
    return result


def as_sizes(sample_shape: Sizes) -> Shape:
    """Return a sample shape as a tuple of integers."""
    return (sample_shape,) if isinstance(sample_shape, int) else tuple(int(n) for n in sample_shape)


def given_one(owner: str, **choices: object) -> None:
    """Raise unless exactly one of the parameters is given."""
    if sum(value is not None for value in choices.values()) != 1:
        raise errors.DISTRIBUTION_ONE_OF(owner=owner, names=" and ".join(choices), where=provenance.here())


class Distribution:
    """A probability distribution, or a batch of them.

    A subclass names its parameters and their constraints in `arg_constraints`. A sample has the shape
    `sample_shape + batch_shape + event_shape`, a log-probability the same without the event.

    Attributes:
        batch_shape: shape of the batch of distributions.
        event_shape: shape of one draw from one of them.
        support: the constraint of its samples.
        has_rsample: whether gradients flow from samples to parameters.

    Example:
        >>> import glassgrad as gg
        >>> normal = gg.distributions.Normal(gg.zeros(3), gg.ones(3))
        >>> isinstance(normal, gg.distributions.Distribution), normal.batch_shape, normal.sample((2,)).shape
        (True, (3,), (2, 3))
    """

    has_rsample: bool = False
    has_enumerate_support: bool = False
    arg_constraints: ClassVar[Constraints] = {}
    _validate_args: bool = True

    def __init__(
        self, batch_shape: Iterable[int] = (), event_shape: Iterable[int] = (), validate_args: bool | None = None
    ) -> None:
        self._batch_shape: Shape = tuple(batch_shape)
        self._event_shape: Shape = tuple(event_shape)
        if validate_args is not None:
            self._validate_args = validate_args
        if self._validate_args:
            self._check_parameters()

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Set whether parameters and values are checked where `validate_args` is not given."""
        Distribution._validate_args = bool(value)

    # --- checks -------------------------------------------------------------------------------------

    def _constraints(self) -> Constraints:
        """Return the constraints of the parameters, which may depend on one another."""
        return self.arg_constraints

    def _check_parameters(self) -> None:
        for name, constraint in self._constraints().items():
            value = self.__dict__.get(name)
            if isinstance(value, Tensor) and type(value.array) is np.ndarray:
                valid = np.asarray(constraint.holds(value))
                if not valid.all():
                    raise errors.DISTRIBUTION_PARAMETER(
                        owner=type(self).__name__,
                        name=name,
                        expected=constraint,
                        where=provenance.here(),
                        given=_worst(value, valid),
                    )

    def _check_value(self, value: Array, method: str = "log_prob") -> None:
        """Raise unless a value fits the shapes and lies in the support."""
        if not self._validate_args:
            return
        if not isinstance(value, Tensor):
            raise errors.DISTRIBUTION_VALUE_KIND(
                owner=type(self).__name__, method=method, kind=type(value).__name__, where=provenance.here()
            )
        expected = self._batch_shape + self._event_shape
        own, event = tuple(value.shape), self._event_shape
        fits = own == expected or (
            own[len(own) - len(event) :] == event
            and all(n == m or 1 in (n, m) for n, m in zip(reversed(own), reversed(expected), strict=False))
        )
        if not fits:
            raise errors.DISTRIBUTION_SHAPE(
                owner=type(self).__name__,
                method=method,
                given=own,
                batch=self._batch_shape,
                event=event,
                where=provenance.here(),
            )
        support = self.support
        if support is not None and type(value.array) is np.ndarray:
            result = support.holds(value)
            if type(result) is np.ndarray and not result.all():
                raise errors.DISTRIBUTION_VALUE(
                    owner=type(self).__name__,
                    method=method,
                    expected=support,
                    where=provenance.here(),
                    given=_worst(value, result),
                )

    # --- properties ---------------------------------------------------------------------------------

    @property
    def batch_shape(self) -> Shape:
        return Size(self._batch_shape)

    @property
    def event_shape(self) -> Shape:
        return Size(self._event_shape)

    @property
    def support(self) -> Constraint | None:
        return real

    def _missing(self, what: str) -> Exception:
        return errors.NO_FORMULA(owner=type(self).__name__, what=what, where=provenance.here(1))

    @property
    def mean(self) -> Array:
        raise self._missing("mean")

    @property
    def mode(self) -> Array:
        raise self._missing("mode")

    @property
    def variance(self) -> Array:
        raise self._missing("variance")

    @property
    def stddev(self) -> Array:
        return self.variance.sqrt()

    def expand(self, batch_shape: Sizes, _instance: object = None) -> Self:
        """Return the distribution with its batch broadcast to another shape; the parameters share memory."""
        shape = as_sizes(batch_shape)
        twin = copy.copy(self)
        twin._batch_shape = shape
        for name, value in list(self.__dict__.items()):
            if isinstance(value, Tensor):
                lead = len(self._batch_shape)
                if name != "temperature" and tuple(value.shape)[:lead] == self._batch_shape:
                    twin.__dict__[name] = value.expand(shape + tuple(value.shape)[lead:])
            elif isinstance(value, Distribution):
                twin.__dict__[name] = value.expand(shape + tuple(value.batch_shape)[len(self._batch_shape) :])
        return twin

    # --- sampling -----------------------------------------------------------------------------------

    def _extended_shape(self, sample_shape: Sizes = ()) -> Shape:
        return as_sizes(sample_shape) + self._batch_shape + self._event_shape

    def rsample(self, sample_shape: Sizes = ()) -> Array:
        """Return samples through which gradients flow to the parameters."""
        raise errors.NO_PATHWISE(owner=type(self).__name__, where=provenance.here())

    def sample(self, sample_shape: Sizes = ()) -> Array:
        """Return samples without a gradient, of shape `sample_shape + batch_shape + event_shape`."""
        with no_grad():
            return self.rsample(sample_shape)

    def sample_n(self, n: int) -> Array:
        """Return `n` samples; PyTorch's older spelling of `sample((n,))`."""
        return self.sample((n,))

    # --- densities ----------------------------------------------------------------------------------

    def log_prob(self, value: Array) -> Array:
        """Return the logarithm of the density, or of the probability, at a value."""
        raise self._missing("log_prob")

    def cdf(self, value: Array) -> Array:
        """Return the probability of a sample that is at most `value`."""
        raise self._missing("cdf")

    def icdf(self, value: Array) -> Array:
        """Return the quantile: the inverse of `cdf`."""
        raise self._missing("icdf")

    def entropy(self) -> Array:
        """Return the entropy in nats."""
        raise self._missing("entropy")

    def perplexity(self) -> Array:
        """Return exp(entropy)."""
        return self.entropy().exp()

    def enumerate_support(self, expand: bool = True) -> Array:
        """Return all values of a discrete distribution along a new first dimension."""
        values = self._values()
        count, event = len(values), self._event_shape
        listed = values.reshape(count, *(1,) * len(self._batch_shape), *event)
        return listed.expand((count, *self._batch_shape, *event)) if expand else listed

    def _values(self) -> Array:
        raise self._missing("finite list of values")

    def __repr__(self) -> str:
        shown = [
            f"{name}: {value.item() if value.numel() == 1 else tuple(value.shape)}"
            for name, value in self.__dict__.items()
            if name in self.arg_constraints and isinstance(value, Tensor)
        ]
        return f"{type(self).__name__}({', '.join(shown)})"


def _worst(value: Tensor, valid: Array) -> str:
    """Describe the first invalid value."""
    array = value.detach().array
    shape = np.broadcast_shapes(valid.shape, array.shape[: valid.ndim]) if valid.shape else ()
    if not shape:
        return f"{array.tolist()}"
    place = tuple(int(at) for at in np.argwhere(~np.broadcast_to(valid, shape))[0])
    listed = np.broadcast_to(array, shape + array.shape[valid.ndim :])[place]
    return f"at {list(place)} it is {np.asarray(listed).tolist()}"


class OfParameters(Distribution):
    """A distribution of scalars whose parameters broadcast with one another."""

    if TYPE_CHECKING:  # declares the parameters

        def __getattr__(self, name: str) -> Any: ...

    def _hold(self, validate_args: bool | None, **parameters: Array) -> None:
        held = spread(*parameters.values())
        self.__dict__.update(zip(parameters, held, strict=True))
        Distribution.__init__(self, held[0].shape, validate_args=validate_args)


class ExponentialFamily(OfParameters):
    """A distribution of the exponential family.

    Example:
        >>> import glassgrad as gg
        >>> isinstance(gg.distributions.Gamma(2.0, 1.0), gg.distributions.ExponentialFamily)
        True
    """


def summed(x: Array, count: int) -> Array:
    """Return the sum over the last `count` dimensions."""
    return x.sum(tuple(range(-count, 0))) if count else x


__all__ = ["Distribution", "ExponentialFamily"]
