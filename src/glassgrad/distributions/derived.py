"""Distributions of functions of simpler random variables."""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np

from glassgrad.distributions import constraints
from glassgrad.distributions.classes import OneHotCategorical
from glassgrad.distributions.composed import TransformedDistribution
from glassgrad.distributions.continuous import Gumbel, Normal, Uniform, open_uniform
from glassgrad.distributions.discrete import Bernoulli
from glassgrad.distributions.distribution import Constraints, Distribution, OfParameters, Sizes, given_one, spread
from glassgrad.distributions.transforms import (
    AffineTransform,
    ExpTransform,
    PowerTransform,
    SigmoidTransform,
    StickBreakingTransform,
    Transform,
)
from glassgrad.engine import random
from glassgrad.ops.core import Array
from glassgrad.ops.narrow import finfo


class OfNormal(TransformedDistribution):
    """Base of distributions of transformed normal variables."""

    arg_constraints: ClassVar[Constraints] = {"loc": constraints.real, "scale": constraints.positive}
    _transform: ClassVar[type[Transform]]

    def __init__(self, loc: Array, scale: Array, validate_args: bool | None = None) -> None:
        base = Normal(loc, scale, validate_args)
        self.loc, self.scale = base.loc, base.scale
        super().__init__(base, self._transform(), validate_args)


class LogNormal(OfNormal):
    """The distribution of exp(x) with x of Normal(loc, scale).

    Example:
        >>> import glassgrad as gg
        >>> gg.distributions.LogNormal(0.0, 1.0).mean
        tensor(1.6487)
    """

    _transform = ExpTransform

    @property
    def mean(self) -> Array:
        return (self.loc + self.scale.square() / 2).exp()

    @property
    def mode(self) -> Array:
        return (self.loc - self.scale.square()).exp()

    @property
    def variance(self) -> Array:
        grown = self.scale.square()
        return grown.expm1() * (2 * self.loc + grown).exp()

    def entropy(self) -> Array:
        return self.base_dist.entropy() + self.loc


class Half(OfParameters):
    """Base of distributions of |x|, where the distribution of x is symmetric about its mode 0."""

    has_rsample = True
    arg_constraints: ClassVar[Constraints] = {"scale": constraints.positive}
    support = constraints.nonnegative

    def __init__(self, scale: Array, validate_args: bool | None = None) -> None:
        self._hold(validate_args, scale=scale)

    @property
    def mode(self) -> Array:
        return self.scale.detach() * 0


class HalfNormal(Half):
    """The distribution of |x| with x of Normal(0, scale).

    Example:
        >>> import glassgrad as gg
        >>> gg.distributions.HalfNormal(1.0).mean
        tensor(0.7979)
    """

    @property
    def _whole(self) -> Array:
        return Normal(0.0, self.scale, validate_args=False)

    @property
    def mean(self) -> Array:
        return self.scale * math.sqrt(2 / math.pi)

    @property
    def variance(self) -> Array:
        return self.scale.square() * (1 - 2 / math.pi)

    def rsample(self, sample_shape: Sizes = ()) -> Array:
        return self._whole.rsample(sample_shape).abs()

    def log_prob(self, value: Array) -> Array:
        self._check_value(value)
        return (self._whole.log_prob(value) + math.log(2)).masked_fill(value < 0, -math.inf)

    def cdf(self, value: Array) -> Array:
        self._check_value(value, "cdf")
        return 2 * self._whole.cdf(value) - 1

    def icdf(self, value: Array) -> Array:
        return self._whole.icdf((value + 1) / 2)

    def entropy(self) -> Array:
        return self._whole.entropy() - math.log(2)


class Exponential(OfParameters):
    """Exponential distribution: density ``rate exp(-rate x)``.

    Example:
        >>> import glassgrad as gg
        >>> gg.distributions.Exponential(2.0).mean
        tensor(0.5)
    """

    has_rsample = True
    arg_constraints: ClassVar[Constraints] = {"rate": constraints.positive}
    support = constraints.nonnegative

    def __init__(self, rate: Array, validate_args: bool | None = None) -> None:
        self._hold(validate_args, rate=rate)

    @property
    def mean(self) -> Array:
        return 1 / self.rate

    stddev = mean

    @property
    def mode(self) -> Array:
        return self.rate.detach() * 0

    @property
    def variance(self) -> Array:
        return 1 / self.rate.square()

    def rsample(self, sample_shape: Sizes = ()) -> Array:
        return -open_uniform(self._extended_shape(sample_shape), self.rate.dtype).log() / self.rate

    def log_prob(self, value: Array) -> Array:
        self._check_value(value)
        return self.rate.log() - self.rate * value

    def cdf(self, value: Array) -> Array:
        self._check_value(value, "cdf")
        return -(-self.rate * value).expm1()

    def icdf(self, value: Array) -> Array:
        return -(-value).log1p() / self.rate

    def entropy(self) -> Array:
        return 1 - self.rate.log()


class Weibull(TransformedDistribution):
    """The distribution of ``scale x**(1 / concentration)`` with x of Exponential(1).

    Example:
        >>> import glassgrad as gg
        >>> gg.distributions.Weibull(2.0, 1.0).mean
        tensor(2.)
    """

    arg_constraints: ClassVar[Constraints] = {"scale": constraints.positive, "concentration": constraints.positive}
    support = constraints.positive

    def __init__(self, scale: Array, concentration: Array, validate_args: bool | None = None) -> None:
        self.scale, self.concentration = spread(scale, concentration)
        base = Exponential(self.scale * 0 + 1.0)
        powers = [PowerTransform(1 / self.concentration), AffineTransform(0, self.scale)]
        super().__init__(base, powers, validate_args)

    @property
    def mean(self) -> Array:
        return self.scale * (1 + 1 / self.concentration).lgamma().exp()

    @property
    def mode(self) -> Array:
        inverse = 1 / self.concentration
        base = (1 - inverse).clamp(min=0)
        return self.scale * base.masked_fill(base == 0, 1.0) ** inverse * (base > 0).to(base.dtype)

    @property
    def variance(self) -> Array:
        inverse = 1 / self.concentration
        return self.scale.square() * ((1 + 2 * inverse).lgamma().exp() - (2 * (1 + inverse).lgamma()).exp())

    def entropy(self) -> Array:
        return np.euler_gamma * (1 - 1 / self.concentration) + (self.scale / self.concentration).log() + 1


class Pareto(TransformedDistribution):
    """Pareto distribution: density ``alpha scale**alpha / x**(alpha + 1)`` for x >= scale.

    Example:
        >>> import glassgrad as gg
        >>> gg.distributions.Pareto(1.0, 3.0).mean
        tensor(1.5)
    """

    arg_constraints: ClassVar[Constraints] = {"alpha": constraints.positive, "scale": constraints.positive}

    def __init__(self, scale: Array, alpha: Array, validate_args: bool | None = None) -> None:
        self.scale, self.alpha = spread(scale, alpha)
        powers = [ExpTransform(), AffineTransform(0, self.scale)]
        super().__init__(Exponential(self.alpha), powers, validate_args)

    @property
    def support(self) -> constraints.Constraint:
        return constraints.greater_than_eq(self.scale.detach())

    @property
    def mean(self) -> Array:
        a = self.alpha.clamp(min=1)
        infinite = a == 1
        return (a * self.scale / (a - 1).masked_fill(infinite, 1.0)).masked_fill(infinite, math.inf)

    @property
    def mode(self) -> Array:
        return self.scale

    @property
    def variance(self) -> Array:
        a = self.alpha.clamp(min=2)
        infinite = a == 2
        finite = self.scale.square() * a / ((a - 1).square() * (a - 2).masked_fill(infinite, 1.0))
        return finite.masked_fill(infinite, math.inf)

    def entropy(self) -> Array:
        return (self.scale / self.alpha).log() + (1 + 1 / self.alpha)


class LogisticNormal(OfNormal):
    """Vectors with a sum of 1: normal vectors through `StickBreakingTransform`.

    Example:
        >>> import glassgrad as gg
        >>> gg.distributions.LogisticNormal(gg.zeros(3), 1.0).sample().shape
        (4,)
    """

    _transform = StickBreakingTransform


class RelaxedBernoulli(TransformedDistribution):
    """A relaxed Bernoulli variable: the sigmoid of (logits + logistic noise) / temperature.

    Source: Maddison, Mnih and Teh 2017 (the concrete distribution).

    Example:
        >>> import glassgrad as gg
        >>> gg.distributions.RelaxedBernoulli(gg.tensor(0.5), probs=gg.tensor([0.1, 0.9])).rsample().shape
        (2,)
    """

    arg_constraints: ClassVar[Constraints] = {"probs": constraints.unit_interval, "logits": constraints.real}

    def __init__(
        self,
        temperature: Array,
        probs: Array | None = None,
        logits: Array | None = None,
        validate_args: bool | None = None,
    ) -> None:
        given_one("RelaxedBernoulli", probs=probs, logits=logits)
        self.temperature = temperature
        hard = Bernoulli(probs, logits, validate_args=False)
        self.logits, self.probs = hard.logits, hard.probs
        zero = self.logits.detach() * 0
        logistic = [SigmoidTransform().inv, AffineTransform(self.logits / temperature, 1 / temperature)]
        base = TransformedDistribution(Uniform(zero, zero + 1, False), logistic, False)
        super().__init__(base, SigmoidTransform(), validate_args)


class RelaxedOneHotCategorical(Distribution):
    """A relaxed one-hot vector: the softmax of (logits + Gumbel noise) / temperature.

    Sources: Jang, Gu and Poole 2017; Maddison, Mnih and Teh 2017.

    Example:
        >>> import glassgrad as gg
        >>> gg.distributions.RelaxedOneHotCategorical(gg.tensor(0.5), logits=gg.zeros(3)).rsample().shape
        (3,)
    """

    has_rsample = True
    support = constraints.simplex

    def __init__(
        self,
        temperature: Array,
        probs: Array | None = None,
        logits: Array | None = None,
        validate_args: bool | None = None,
    ) -> None:
        hard = OneHotCategorical(probs, logits, validate_args)
        self.temperature = temperature
        self.logits, self.probs = hard.logits, hard.probs
        super().__init__(hard.batch_shape, hard.event_shape, validate_args)

    def rsample(self, sample_shape: Sizes = ()) -> Array:
        zero = self.logits.detach() * 0
        noise = Gumbel(zero, zero + 1, False).rsample(sample_shape)
        return ((self.logits + noise) / self.temperature).softmax(-1)

    def log_prob(self, value: Array) -> Array:
        self._check_value(value)
        k, heat = self._event_shape[0], self.temperature
        heat_log = heat.log() if hasattr(heat, "dtype") else math.log(heat)
        logs = value.log()
        score = self.logits - logs * heat
        score = (score - score.logsumexp(-1, True)).sum(-1)
        return score + (k - 1) * heat_log + math.lgamma(k) - logs.sum(-1)


class HalfCauchy(Half):
    """The distribution of |x| with x of Cauchy(0, scale). It has no mean.

    Example:
        >>> import glassgrad as gg
        >>> gg.distributions.HalfCauchy(1.0).cdf(gg.tensor(1.0))
        tensor(0.5)
    """

    @property
    def mean(self) -> Array:
        return self.scale.detach() * 0 + math.inf

    variance = mean

    def rsample(self, sample_shape: Sizes = ()) -> Array:
        uniform = random.rand(self._extended_shape(sample_shape), dtype=self.scale.dtype)
        return self.scale * (uniform.clamp(max=1 - float(finfo(uniform.dtype).eps)) * (math.pi / 2)).tan()

    def log_prob(self, value: Array) -> Array:
        self._check_value(value)
        inside = math.log(2 / math.pi) - self.scale.log() - (value / self.scale).square().log1p()
        return inside.masked_fill(value < 0, -math.inf)

    def cdf(self, value: Array) -> Array:
        self._check_value(value, "cdf")
        return (value / self.scale).atan() * (2 / math.pi)

    def icdf(self, value: Array) -> Array:
        return self.scale * (value * (math.pi / 2)).tan()

    def entropy(self) -> Array:
        return math.log(2 * math.pi) + self.scale.log()


__all__ = ["Exponential", "HalfCauchy", "HalfNormal", "LogNormal", "LogisticNormal", "Pareto", "RelaxedBernoulli"]
__all__ += ["RelaxedOneHotCategorical", "Weibull"]
