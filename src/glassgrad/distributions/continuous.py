"""Continuous distributions of real numbers. Sources: Johnson, Kotz and Balakrishnan, Continuous Univariate
Distributions, volumes 1 and 2 (1994, 1995).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from glassgrad.distributions import constraints
from glassgrad.distributions.distribution import Constraints, OfParameters, Sizes
from glassgrad.engine.random import rand, randn
from glassgrad.ops.core import Array
from glassgrad.ops.names import PUBLIC
from glassgrad.ops.narrow import finfo

_HALF_LOG_TAU = 0.5 * math.log(2 * math.pi)


def open_uniform(shape: Sequence[int], dtype: np.dtype) -> Array:
    """Return uniform numbers in (0, 1), neither bound included."""
    info = finfo(dtype)
    return rand(shape, dtype=dtype).clamp(float(info.tiny), 1 - float(info.epsneg))


class LocationScale(OfParameters):
    """Base of distributions of ``loc + scale * noise``, with noise of a fixed distribution."""

    has_rsample = True
    arg_constraints: ClassVar[Constraints] = {"loc": constraints.real, "scale": constraints.positive}

    def __init__(self, loc: Array, scale: Array, validate_args: bool | None = None) -> None:
        self._hold(validate_args, loc=loc, scale=scale)

    @property
    def mean(self) -> Array:
        return self.loc

    mode = mean

    def _noise(self, shape: Sequence[int], dtype: np.dtype) -> Array:
        raise NotImplementedError  # each family draws its own noise

    def rsample(self, sample_shape: Sizes = ()) -> Array:
        return self.loc + self.scale * self._noise(self._extended_shape(sample_shape), self.loc.dtype)

    def _standard(self, value: Array, method: str) -> Array:
        self._check_value(value, method)
        return (value - self.loc) / self.scale


class Normal(LocationScale):
    """Normal distribution: ``log_prob(x) = -(x - loc)**2 / (2 scale**2) - log(scale sqrt(2 pi))``.

    Args:
        loc: mean, number or tensor.
        scale: standard deviation, above 0; broadcasts with `loc`.

    Example:
        >>> import glassgrad as gg
        >>> normal = gg.distributions.Normal(gg.zeros(2), 1.0)
        >>> normal.log_prob(gg.tensor([0.0, 1.0]))
        tensor([-0.9189, -1.4189])
    """

    def _noise(self, shape: Sequence[int], dtype: np.dtype) -> Array:
        return randn(shape, dtype=dtype)

    @property
    def stddev(self) -> Array:
        return self.scale

    @property
    def variance(self) -> Array:
        return self.scale.square()

    def log_prob(self, value: Array) -> Array:
        return -0.5 * self._standard(value, "log_prob").square() - self.scale.log() - _HALF_LOG_TAU

    def cdf(self, value: Array) -> Array:
        return PUBLIC["ndtr"](self._standard(value, "cdf"))

    def icdf(self, value: Array) -> Array:
        return self.loc + self.scale * math.sqrt(2) * (2 * value - 1).erfinv()

    def entropy(self) -> Array:
        return 0.5 + _HALF_LOG_TAU + self.scale.log()


class Laplace(LocationScale):
    """Laplace distribution: density ``exp(-|x - loc| / scale) / (2 scale)``.

    Example:
        >>> import glassgrad as gg
        >>> gg.distributions.Laplace(0.0, 1.0).cdf(gg.tensor(0.0))
        tensor(0.5)
    """

    def _noise(self, shape: Sequence[int], dtype: np.dtype) -> Array:
        signed = 1 - 2 * open_uniform(shape, dtype)
        return -signed.sign() * (-signed.abs().clamp(max=1 - float(finfo(dtype).eps))).log1p()

    @property
    def stddev(self) -> Array:
        return math.sqrt(2) * self.scale

    @property
    def variance(self) -> Array:
        return 2 * self.scale.square()

    def log_prob(self, value: Array) -> Array:
        return -self._standard(value, "log_prob").abs() - (2 * self.scale).log()

    def cdf(self, value: Array) -> Array:
        z = self._standard(value, "cdf")
        return 0.5 - 0.5 * z.sign() * (-z.abs()).expm1()

    def icdf(self, value: Array) -> Array:
        centred = value - 0.5
        return self.loc - self.scale * centred.sign() * (-2 * centred.abs()).log1p()

    def entropy(self) -> Array:
        return 1 + (2 * self.scale).log()


class Cauchy(LocationScale):
    """Cauchy distribution: density ``1 / (pi scale (1 + z**2))`` with ``z = (x - loc) / scale``. It has no mean.

    Example:
        >>> import glassgrad as gg
        >>> gg.distributions.Cauchy(0.0, 1.0).cdf(gg.tensor(1.0))
        tensor(0.75)
    """

    def _noise(self, shape: Sequence[int], dtype: np.dtype) -> Array:
        return (math.pi * (open_uniform(shape, dtype) - 0.5)).tan()

    @property
    def mean(self) -> Array:
        return self.loc.detach() * math.nan

    @property
    def variance(self) -> Array:
        return self.scale.detach() * math.inf

    def log_prob(self, value: Array) -> Array:
        return -math.log(math.pi) - self.scale.log() - self._standard(value, "log_prob").square().log1p()

    def cdf(self, value: Array) -> Array:
        return self._standard(value, "cdf").atan() / math.pi + 0.5

    def icdf(self, value: Array) -> Array:
        return self.loc + self.scale * (math.pi * (value - 0.5)).tan()

    def entropy(self) -> Array:
        return math.log(4 * math.pi) + self.scale.log()


class Gumbel(LocationScale):
    """Gumbel distribution, that of the largest of many numbers: density ``exp(-z - exp(-z)) / scale``.

    Example:
        >>> import glassgrad as gg
        >>> gg.distributions.Gumbel(1.0, 2.0).log_prob(gg.tensor(1.0))
        tensor(-1.6931)
    """

    def _noise(self, shape: Sequence[int], dtype: np.dtype) -> Array:
        return -(-open_uniform(shape, dtype).log()).log()

    @property
    def mean(self) -> Array:
        return self.loc + np.euler_gamma * self.scale

    @property
    def stddev(self) -> Array:
        return math.pi / math.sqrt(6) * self.scale

    @property
    def variance(self) -> Array:
        return self.stddev.square()

    def log_prob(self, value: Array) -> Array:
        z = self._standard(value, "log_prob")
        return -z - (-z).exp() - self.scale.log()

    def cdf(self, value: Array) -> Array:
        return (-(-self._standard(value, "cdf")).exp()).exp()

    def icdf(self, value: Array) -> Array:
        return self.loc - self.scale * (-value.log()).log()

    def entropy(self) -> Array:
        return self.scale.log() + (1 + np.euler_gamma)


class Uniform(OfParameters):
    """Uniform distribution over [low, high).

    Example:
        >>> import glassgrad as gg
        >>> gg.distributions.Uniform(0.0, 4.0).entropy()
        tensor(1.3863)
    """

    has_rsample = True
    arg_constraints: ClassVar[Constraints] = {"low": constraints.real, "high": constraints.real}

    def __init__(self, low: Array, high: Array, validate_args: bool | None = None) -> None:
        self._hold(validate_args, low=low, high=high)

    def _constraints(self) -> Constraints:
        return {"low": constraints.real, "high": constraints.greater_than(self.low.detach())}

    @property
    def support(self) -> constraints.Constraint:
        return constraints.interval(self.low.detach(), self.high.detach())

    @property
    def mean(self) -> Array:
        return (self.low + self.high) / 2

    @property
    def mode(self) -> Array:
        return self.low.detach() * math.nan

    @property
    def stddev(self) -> Array:
        return (self.high - self.low) / math.sqrt(12)

    @property
    def variance(self) -> Array:
        return (self.high - self.low).square() / 12

    def rsample(self, sample_shape: Sizes = ()) -> Array:
        drawn = rand(self._extended_shape(sample_shape), dtype=self.low.dtype)
        return self.low + drawn * (self.high - self.low)

    def log_prob(self, value: Array) -> Array:
        self._check_value(value)
        inside = ((value >= self.low) & (value < self.high)).to(self.low.dtype)
        return inside.log() - (self.high - self.low).log()

    def cdf(self, value: Array) -> Array:
        self._check_value(value, "cdf")
        return ((value - self.low) / (self.high - self.low)).clamp(0, 1)

    def icdf(self, value: Array) -> Array:
        return self.low + value * (self.high - self.low)

    def entropy(self) -> Array:
        return (self.high - self.low).log()


__all__ = ["Cauchy", "Gumbel", "Laplace", "Normal", "Uniform"]
