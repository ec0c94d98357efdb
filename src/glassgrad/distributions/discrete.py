"""Discrete distributions. Source: Johnson, Kemp and Kotz, Univariate Discrete Distributions (2005)."""

from __future__ import annotations

from functools import cached_property
from typing import ClassVar

import numpy as np

from glassgrad.distributions import constraints
from glassgrad.distributions.distribution import Constraints, ExponentialFamily, Sizes, given_one
from glassgrad.engine import random
from glassgrad.engine.mode import no_grad
from glassgrad.engine.tensor import Tensor, make
from glassgrad.engine.tensors import creation
from glassgrad.ops.axes import concrete
from glassgrad.ops.core import Array
from glassgrad.ops.names import PUBLIC
from glassgrad.ops.narrow import finfo


def inside_unit(probs: Array) -> Array:
    """Clip probabilities to an epsilon away from 0 and 1, so that their logarithms are finite."""
    eps = float(finfo(probs.dtype).eps)
    return probs.clamp(eps, 1 - eps)


def drawn(name: str, dtype: np.dtype, *parameters: Array) -> Tensor:
    """Draw by a method of NumPy's generator, given parameter tensors of the result's shape."""
    arrays = [concrete(parameter.detach(), f"a sample ({name})") for parameter in parameters]
    values = getattr(random._rng(None), name)(*arrays)
    return make(np.asarray(values, dtype), None, False)


class OfTwo(ExponentialFamily):
    """Base of distributions that are given by a probability or by its logit, log(p / (1 - p))."""

    arg_constraints: ClassVar[Constraints] = {"probs": constraints.unit_interval, "logits": constraints.real}

    def _take(self, probs: Array, logits: Array, validate_args: bool | None, **others: Array) -> None:
        given_one(type(self).__name__, probs=probs, logits=logits)
        chosen = {"logits": logits} if probs is None else {"probs": probs}
        self._hold(validate_args, **chosen, **others)

    def __init__(
        self, probs: Array | None = None, logits: Array | None = None, validate_args: bool | None = None
    ) -> None:
        self._take(probs, logits, validate_args)

    @cached_property
    def probs(self) -> Array:
        return self.logits.sigmoid()

    @cached_property
    def logits(self) -> Array:
        kept = inside_unit(self.probs)
        return kept.log() - (-kept).log1p()

    @property
    def _given(self) -> Array:
        return self.__dict__["probs" if "probs" in self.__dict__ else "logits"]

    def _surprise(self, value: Array) -> Array:
        """Return -log of the probability of 0 or 1, interpolated for values in between."""
        return PUBLIC["softplus"](self.logits) - self.logits * value


class Bernoulli(OfTwo):
    """1 with probability `probs`, else 0.

    Args:
        probs: probability of 1, in [0, 1].
        logits: log(probs / (1 - probs)), instead of `probs`.

    Example:
        >>> import glassgrad as gg
        >>> gg.distributions.Bernoulli(probs=gg.tensor([0.5, 0.25])).variance.tolist()
        [0.25, 0.1875]
    """

    has_enumerate_support = True
    support = constraints.boolean

    @property
    def mean(self) -> Array:
        return self.probs

    @property
    def mode(self) -> Array:
        return (self.probs >= 0.5).to(self.probs.dtype).masked_fill(self.probs == 0.5, float("nan"))

    @property
    def variance(self) -> Array:
        return self.probs * (1 - self.probs)

    def sample(self, sample_shape: Sizes = ()) -> Array:
        with no_grad():
            return random.bernoulli(self.probs.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Array) -> Array:
        self._check_value(value)
        return -self._surprise(value)

    def entropy(self) -> Array:
        return self._surprise(self.probs)

    def _values(self) -> Array:
        return creation.arange(2, dtype=self._given.dtype)


class Geometric(OfTwo):
    """Number of failures before the first success, of probability `probs`: 0, 1, 2, ...

    Example:
        >>> import glassgrad as gg
        >>> gg.distributions.Geometric(probs=0.25).mean
        tensor(3.)
    """

    support = constraints.nonnegative_integer

    @property
    def mean(self) -> Array:
        return 1 / self.probs - 1

    @property
    def mode(self) -> Array:
        return self.probs.detach() * 0

    @property
    def variance(self) -> Array:
        return (1 / self.probs - 1) / self.probs

    def sample(self, sample_shape: Sizes = ()) -> Array:
        with no_grad():
            probs = self.probs.expand(self._extended_shape(sample_shape))
            tiny = float(finfo(probs.dtype).tiny)
            uniform = random.rand(probs.shape, dtype=probs.dtype).clamp(min=tiny)
            return (uniform.log() / (-probs).log1p()).floor()

    def log_prob(self, value: Array) -> Array:
        self._check_value(value)
        failure = (-self.probs).masked_fill((self.probs == 1) & (value == 0), 0.0)
        return value * failure.log1p() + self.probs.log()

    def entropy(self) -> Array:
        return self._surprise(self.probs) / self.probs


class Binomial(OfTwo):
    """Number of successes among `total_count` trials.

    Example:
        >>> import glassgrad as gg
        >>> gg.distributions.Binomial(4, probs=0.5).log_prob(gg.tensor(2.0)).exp()
        tensor(0.375)
    """

    arg_constraints: ClassVar[Constraints] = {**OfTwo.arg_constraints, "total_count": constraints.nonnegative_integer}
    has_enumerate_support = True

    def __init__(
        self,
        total_count: Array = 1,
        probs: Array | None = None,
        logits: Array | None = None,
        validate_args: bool | None = None,
    ) -> None:
        self._take(probs, logits, validate_args, total_count=total_count)
        self.__dict__["total_count"] = self.total_count.to(self._given.dtype)

    @property
    def support(self) -> constraints.Constraint:
        return constraints.integer_interval(0, self.total_count)

    @property
    def mean(self) -> Array:
        return self.total_count * self.probs

    @property
    def mode(self) -> Array:
        return ((self.total_count + 1) * self.probs).floor().clamp(max=self.total_count)

    @property
    def variance(self) -> Array:
        return self.mean * (1 - self.probs)

    def sample(self, sample_shape: Sizes = ()) -> Array:
        with no_grad():
            shape = self._extended_shape(sample_shape)
            counts = self.total_count.expand(shape).long()
            return drawn("binomial", self.probs.dtype, counts, self.probs.expand(shape).to(np.float64))

    def log_prob(self, value: Array) -> Array:
        self._check_value(value)
        n = self.total_count
        ways = (n + 1).lgamma() - (value + 1).lgamma() - (n - value + 1).lgamma()
        return ways + value * self.logits - n * PUBLIC["softplus"](self.logits)

    def entropy(self) -> Array:
        log_probs = self.log_prob(self.enumerate_support())
        return -(log_probs.exp() * log_probs).sum(0)

    def _values(self) -> Array:
        total = int(concrete(self.total_count.detach(), "enumerate_support").max())
        if not bool((self.total_count == total).all()):
            raise self._missing("common list of values where total_count differs")
        return creation.arange(1 + total, dtype=self._given.dtype)


class NegativeBinomial(OfTwo):
    """Number of successes of probability `probs` before the failure number `total_count`.

    Example:
        >>> import glassgrad as gg
        >>> gg.distributions.NegativeBinomial(2.0, probs=0.5).mean
        tensor(2.)
    """

    arg_constraints: ClassVar[Constraints] = {**OfTwo.arg_constraints, "total_count": constraints.nonnegative}
    support = constraints.nonnegative_integer

    def __init__(
        self,
        total_count: Array,
        probs: Array | None = None,
        logits: Array | None = None,
        validate_args: bool | None = None,
    ) -> None:
        self._take(probs, logits, validate_args, total_count=total_count)
        self.__dict__["total_count"] = self.total_count.to(self._given.dtype)

    @property
    def mean(self) -> Array:
        return self.total_count * self.logits.exp()

    @property
    def mode(self) -> Array:
        return ((self.total_count - 1) * self.logits.exp()).floor().clamp(min=0)

    @property
    def variance(self) -> Array:
        return self.mean / (-self.logits).sigmoid()

    def sample(self, sample_shape: Sizes = ()) -> Array:
        with no_grad():
            shape = self._extended_shape(sample_shape)
            counts = self.total_count.expand(shape).to(np.float64)
            failure = (-self.logits).sigmoid().expand(shape).to(np.float64)
            return drawn("negative_binomial", self.logits.dtype, counts, failure)

    def log_prob(self, value: Array) -> Array:
        self._check_value(value)
        n = self.total_count
        ways = (n + value).lgamma() - (1 + value).lgamma() - n.lgamma()
        ways = ways.masked_fill(n + value == 0, 0.0)
        return n * PUBLIC["logsigmoid"](-self.logits) + value * PUBLIC["logsigmoid"](self.logits) + ways


class Poisson(ExponentialFamily):
    """Number of events where `rate` are expected: ``exp(-rate) rate**k / k!``.

    Example:
        >>> import glassgrad as gg
        >>> gg.distributions.Poisson(2.0).log_prob(gg.tensor(0.0))
        tensor(-2.)
    """

    arg_constraints: ClassVar[Constraints] = {"rate": constraints.nonnegative}
    support = constraints.nonnegative_integer

    def __init__(self, rate: Array, validate_args: bool | None = None) -> None:
        self._hold(validate_args, rate=rate)

    @property
    def mean(self) -> Array:
        return self.rate

    variance = mean

    @property
    def mode(self) -> Array:
        return self.rate.floor()

    def sample(self, sample_shape: Sizes = ()) -> Array:
        with no_grad():
            return drawn("poisson", self.rate.dtype, self.rate.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Array) -> Array:
        self._check_value(value)
        return value.xlogy(self.rate) - self.rate - (value + 1).lgamma()


__all__ = ["Bernoulli", "Binomial", "Geometric", "NegativeBinomial", "Poisson"]
