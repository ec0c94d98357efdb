"""Distributions over classes: one of k, as an index or a one-hot vector, and counts of classes."""

from __future__ import annotations

import math
from functools import cached_property, lru_cache
from typing import ClassVar

import numpy as np

from glassgrad.distributions import constraints
from glassgrad.distributions.discrete import Binomial, inside_unit
from glassgrad.distributions.distribution import Constraints, Distribution, Sizes, as_sizes, given_one, spread
from glassgrad.engine import random
from glassgrad.engine.mode import no_grad
from glassgrad.engine.tensor import make
from glassgrad.engine.tensors import creation
from glassgrad.ops.axes import concrete
from glassgrad.ops.core import Array
from glassgrad.ops.narrow import finfo


class OfClasses(Distribution):
    """Base of distributions over classes, given by probabilities or by their logarithms up to a constant."""

    arg_constraints: ClassVar[Constraints] = {"probs": constraints.simplex, "logits": constraints.real_vector}

    def __init__(
        self, probs: Array | None = None, logits: Array | None = None, validate_args: bool | None = None
    ) -> None:
        shape = self._take(probs, logits)
        super().__init__(shape[:-1], shape[-1:], validate_args)

    def _take(self, probs: Array, logits: Array) -> tuple[int, ...]:
        given_one(type(self).__name__, probs=probs, logits=logits)
        (given,) = spread(logits if probs is None else probs)
        if probs is None:
            self.logits = given - given.logsumexp(-1, True)
        else:
            self.probs = given / given.sum(-1, True)
        return tuple(given.shape)

    @cached_property
    def probs(self) -> Array:
        return self.logits.softmax(-1)

    @cached_property
    def logits(self) -> Array:
        return inside_unit(self.probs).log()

    @property
    def _given(self) -> Array:
        return self.__dict__["probs" if "probs" in self.__dict__ else "logits"]

    @property
    def param_shape(self) -> Array:
        return self._given.shape

    def entropy(self) -> Array:
        lowest = float(finfo(self.logits.dtype).min)
        return -(self.logits.clamp(min=lowest) * self.probs).sum(-1)

    def _classes(self, sample_shape: tuple[int, ...]) -> Array:
        """Draw class numbers, of shape sample_shape + batch_shape."""
        with no_grad():
            count = int(np.prod(sample_shape))
            rows = self.probs.reshape(-1, self.probs.shape[-1])
            if not rows.shape[0] or not count:
                return creation.zeros(sample_shape + self._batch_shape, dtype=np.int64)
            drawn = random.multinomial(rows, count, True)
            shape = sample_shape + self._batch_shape
            if type(drawn.array) is np.ndarray:
                return make(drawn.array.T.reshape(shape), None, False)
            return drawn.T.reshape(shape)


@lru_cache(256)
def _numbers_below(count: int) -> constraints.Constraint:
    """Return the constraint of the numbers of `count` classes; policies ask for it at each step."""
    return constraints.integer_interval(0, count - 1)


class Categorical(OfClasses):
    """One of k classes, numbered from 0.

    Args:
        probs: (..., k), not negative; divided by their sum.
        logits: (..., k), logarithms of probabilities up to a constant, instead of `probs`.

    Example:
        >>> import glassgrad as gg
        >>> policy = gg.distributions.Categorical(logits=gg.zeros(2, 4))
        >>> policy.log_prob(gg.tensor([0, 3]))
        tensor([-1.3863, -1.3863])
    """

    has_enumerate_support = True

    def __init__(
        self, probs: Array | None = None, logits: Array | None = None, validate_args: bool | None = None
    ) -> None:
        shape = self._take(probs, logits)
        self._num_events = shape[-1]
        Distribution.__init__(self, shape[:-1], validate_args=validate_args)  # a number has no event dimension

    @property
    def support(self) -> constraints.Constraint:
        return _numbers_below(self._num_events)

    @property
    def mean(self) -> Array:
        return self._given.detach().sum(-1) * float("nan")

    variance = mean

    @property
    def mode(self) -> Array:
        return self.probs.argmax(-1)

    def sample(self, sample_shape: Sizes = ()) -> Array:
        return self._classes(as_sizes(sample_shape))

    def log_prob(self, value: Array) -> Array:
        self._check_value(value)
        classes = value.long().unsqueeze(-1)
        if classes.shape[:-1] == self.logits.shape[:-1]:
            return self.logits.gather(-1, classes).squeeze(-1)
        lead = np.broadcast_shapes(classes.shape[:-1], self.logits.shape[:-1])
        logits = self.logits.expand((*lead, self._num_events))
        return logits.gather(-1, classes.expand((*lead, 1))).squeeze(-1)

    def _values(self) -> Array:
        return creation.arange(self._num_events)


class OneHotCategorical(OfClasses):
    """One of k classes as a one-hot vector.

    Example:
        >>> import glassgrad as gg
        >>> gg.distributions.OneHotCategorical(probs=gg.tensor([0.0, 1.0])).sample()
        tensor([0., 1.])
    """

    has_enumerate_support = True
    support = constraints.one_hot

    @property
    def mean(self) -> Array:
        return self.probs

    @property
    def mode(self) -> Array:
        return self._row(self.probs.argmax(-1))

    @property
    def variance(self) -> Array:
        return self.probs * (1 - self.probs)

    def _row(self, classes: Array) -> Array:
        return (classes.unsqueeze(-1) == creation.arange(self._event_shape[0])).to(self._given.dtype)

    def sample(self, sample_shape: Sizes = ()) -> Array:
        return self._row(self._classes(as_sizes(sample_shape)))

    def log_prob(self, value: Array) -> Array:
        self._check_value(value)
        return (value * self.logits).sum(-1)

    def _values(self) -> Array:
        return creation.eye(self._event_shape[0], dtype=self._given.dtype)


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """`OneHotCategorical` with straight-through gradients from samples to probabilities (Bengio et al. 2013).

    Example:
        >>> import glassgrad as gg
        >>> gg.distributions.OneHotCategoricalStraightThrough(logits=gg.zeros(3)).rsample().sum()
        tensor(1.)
    """

    has_rsample = True

    def sample(self, sample_shape: Sizes = ()) -> Array:
        return OneHotCategorical.sample(self, sample_shape)

    def rsample(self, sample_shape: Sizes = ()) -> Array:
        return self.sample(sample_shape) + (self.probs - self.probs.detach())


class Multinomial(OfClasses):
    """Counts of the classes among `total_count` draws.

    Example:
        >>> import glassgrad as gg
        >>> gg.distributions.Multinomial(4, probs=gg.tensor([0.5, 0.5])).log_prob(gg.tensor([2.0, 2.0])).exp()
        tensor(0.375)
    """

    def __init__(
        self,
        total_count: int = 1,
        probs: Array | None = None,
        logits: Array | None = None,
        validate_args: bool | None = None,
    ) -> None:
        self.total_count = int(total_count)
        super().__init__(probs, logits, validate_args)

    @property
    def support(self) -> constraints.Constraint:
        return constraints.multinomial(self.total_count)

    @property
    def mean(self) -> Array:
        return self.probs * self.total_count

    @property
    def variance(self) -> Array:
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape: Sizes = ()) -> Array:
        with no_grad():
            lead = self._extended_shape(sample_shape)[:-1]
            rows = concrete(self.probs.detach(), "a sample (multinomial)").astype(np.float64)
            rows = np.broadcast_to(rows / rows.sum(-1, keepdims=True), (*lead, rows.shape[-1]))
            counts = random._rng(None).multinomial(self.total_count, rows)
            return make(np.asarray(counts, self._given.dtype), None, False)

    def entropy(self) -> Array:
        # The expectation of sum log x! - log n! - sum x log p, in which each count x is binomial.
        n, p = self.total_count, self.probs
        counts = creation.arange(n + 1, dtype=p.dtype).reshape(-1, *(1,) * len(p.shape))
        share = Binomial(n, probs=p, validate_args=False).log_prob(counts).exp()
        spread_out = n * (super().entropy() if n else p.sum(-1) * 0)
        return spread_out - math.lgamma(n + 1) + (share * (counts + 1).lgamma()).sum((0, -1))

    def log_prob(self, value: Array) -> Array:
        self._check_value(value)
        logits = self.logits.masked_fill((value == 0) & (self.logits == -float("inf")), 0.0)
        return (value.sum(-1) + 1).lgamma() - (value + 1).lgamma().sum(-1) + (logits * value).sum(-1)


__all__ = ["Categorical", "Multinomial", "OneHotCategorical", "OneHotCategoricalStraightThrough"]
