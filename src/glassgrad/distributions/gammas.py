"""Distributions based on the gamma distribution, with gradients through their samples.

A sample of the standard gamma distribution depends on its shape through ``F(x; a) = u``, with F its distribution
function and u a uniform number. So ``dx/da = -(dF/da) / p(x; a)``: implicit reparameterisation, Figurnov, Mohamed and
Mnih 2018.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from glassgrad import errors
from glassgrad.base import provenance
from glassgrad.distributions import constraints
from glassgrad.distributions.distribution import Constraints, Distribution, ExponentialFamily, Sizes, spread
from glassgrad.engine import random
from glassgrad.engine.function import Function, once_differentiable
from glassgrad.engine.tensor import Tensor, make
from glassgrad.errors.packages import needed
from glassgrad.ops.axes import concrete
from glassgrad.ops.core import Array
from glassgrad.ops.narrow import finfo
from glassgrad.ops.shape import stack


@lru_cache(maxsize=1)
def _scipy() -> Any:
    with needed("scipy", "Gamma, Beta, Dirichlet and StudentT"):
        import scipy.special

    return scipy.special


def log_gamma_slope(shape: Array, log_x: Array) -> Array:
    """Return d log(x) / d shape of standard gamma samples x, in float64, for fixed underlying uniform numbers.

    The distribution function is differentiated by a fourth-order difference, on the smaller of the two tails. Below
    1e-6 it is ``x**a / Gamma(a + 1)`` to six digits, which has a known derivative.
    """
    special = _scipy()
    a, log_x = np.broadcast_arrays(np.asarray(shape, np.float64), np.asarray(log_x, np.float64))
    small = log_x < math.log(1e-6)
    log_y = np.where(small, 0.0, log_x)
    y = np.exp(log_y)
    step = 1e-3 * np.minimum(a, np.sqrt(a))
    left = special.gammainc(a, y) < 0.5

    def tail(at: Array) -> Array:
        return np.where(left, special.gammainc(at, y), -special.gammaincc(at, y))

    difference = (8 * (tail(a + step) - tail(a - step)) - (tail(a + 2 * step) - tail(a - 2 * step))) / (12 * step)
    density = np.exp(a * log_y - y - special.gammaln(a))  # of log(y)
    near = (special.digamma(a + 1) - log_x) / a
    with np.errstate(divide="ignore", invalid="ignore"):
        slope = np.where(small, near, -difference / density)
    return np.where(np.isfinite(slope), slope, 0.0)  # non-finite only so far in a tail that the density underflows


class _LogGamma(Function):
    """Logarithms of standard gamma samples, with the implicit gradient."""

    @staticmethod
    def forward(ctx: Any, shape: Array) -> Array:
        a = np.asarray(concrete(shape, "a gamma sample"), np.float64)
        rng = random._rng(None)
        # x(a) = x(a + 1) u**(1/a), Marsaglia and Tsang 2000: a small shape's sample underflows, its logarithm does not.
        drawn = np.log(rng.standard_gamma(a + 1)) - rng.exponential(size=a.shape) / a
        ctx.slope = log_gamma_slope(a, drawn)
        return make(drawn.astype(shape.dtype), None, False)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, g: Array) -> Array:
        return g * make(ctx.slope.astype(g.dtype), None, False)


def log_gamma(shape: Tensor) -> Array:
    """Return logarithms of standard gamma samples, one for each element of `shape`."""
    return _LogGamma.apply(shape)


class Gamma(ExponentialFamily):
    """Gamma distribution: density ``rate**a x**(a - 1) exp(-rate x) / Gamma(a)``.

    Args:
        concentration: a, above 0.
        rate: above 0.

    Example:
        >>> import glassgrad as gg
        >>> gg.distributions.Gamma(2.0, 1.0).log_prob(gg.tensor(1.0))
        tensor(-1.)
    """

    has_rsample = True
    arg_constraints: ClassVar[Constraints] = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.nonnegative

    def __init__(self, concentration: Array, rate: Array, validate_args: bool | None = None) -> None:
        self._hold(validate_args, concentration=concentration, rate=rate)

    @property
    def mean(self) -> Array:
        return self.concentration / self.rate

    @property
    def mode(self) -> Array:
        return ((self.concentration - 1) / self.rate).clamp(min=0)

    @property
    def variance(self) -> Array:
        return self.concentration / self.rate.square()

    def rsample(self, sample_shape: Sizes = ()) -> Array:
        shape = self._extended_shape(sample_shape)
        drawn = log_gamma(self.concentration.expand(shape)).exp() / self.rate
        return drawn.clamp(min=float(finfo(drawn.dtype).tiny))

    def log_prob(self, value: Array) -> Array:
        self._check_value(value)
        a = self.concentration
        return a.xlogy(self.rate) + (a - 1).xlogy(value) - self.rate * value - a.lgamma()

    def entropy(self) -> Array:
        a = self.concentration
        return a - self.rate.log() + a.lgamma() + (1 - a) * a.digamma()


class Chi2(Gamma):
    """Chi-squared distribution with `df` degrees of freedom: Gamma(df / 2, 1 / 2).

    Example:
        >>> import glassgrad as gg
        >>> gg.distributions.Chi2(3.0).mean
        tensor(3.)
    """

    arg_constraints: ClassVar[Constraints] = {"df": constraints.positive}

    def __init__(self, df: Array, validate_args: bool | None = None) -> None:
        (self.df,) = spread(df)
        super().__init__(0.5 * self.df, 0.5, validate_args)


class InverseGamma(ExponentialFamily):
    """Distribution of 1 / x with x of Gamma(concentration, rate).

    Example:
        >>> import glassgrad as gg
        >>> gg.distributions.InverseGamma(3.0, 4.0).mean
        tensor(2.)
    """

    has_rsample = True
    arg_constraints: ClassVar[Constraints] = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.positive

    def __init__(self, concentration: Array, rate: Array, validate_args: bool | None = None) -> None:
        self._hold(validate_args, concentration=concentration, rate=rate)

    @property
    def mean(self) -> Array:
        a = self.concentration
        return (self.rate / (a - 1).masked_fill(a <= 1, 1.0)).masked_fill(a <= 1, math.inf)

    @property
    def mode(self) -> Array:
        return self.rate / (self.concentration + 1)

    @property
    def variance(self) -> Array:
        a = self.concentration
        size = ((a - 1).square() * (a - 2)).masked_fill(a <= 2, 1.0)
        return (self.rate.square() / size).masked_fill(a <= 2, math.inf)

    def rsample(self, sample_shape: Sizes = ()) -> Array:
        shape = self._extended_shape(sample_shape)
        logs = -log_gamma(self.concentration.expand(shape))
        return self.rate * logs.clamp(max=math.log(float(finfo(logs.dtype).max)) - 1).exp()

    def log_prob(self, value: Array) -> Array:
        self._check_value(value)
        a = self.concentration
        return a.xlogy(self.rate) - (a + 1) * value.log() - self.rate / value - a.lgamma()

    def entropy(self) -> Array:
        a = self.concentration
        return a + self.rate.log() + a.lgamma() - (1 + a) * a.digamma()


class Dirichlet(Distribution):
    """Dirichlet distribution over vectors of positive numbers with a sum of 1.

    Args:
        concentration: (..., k), above 0.

    Example:
        >>> import glassgrad as gg
        >>> gg.distributions.Dirichlet(gg.tensor([1.0, 3.0])).mean
        tensor([0.25, 0.75])
    """

    has_rsample = True
    arg_constraints: ClassVar[Constraints] = {"concentration": constraints.independent(constraints.positive, 1)}
    support = constraints.simplex

    def __init__(self, concentration: Array, validate_args: bool | None = None) -> None:
        self.concentration: Array = concentration
        shape = tuple(concentration.shape)
        if not shape:
            raise errors.DISTRIBUTION_DIMS(owner="Dirichlet", name="concentration", dims=1, where=provenance.here())
        super().__init__(shape[:-1], shape[-1:], validate_args)

    @property
    def mean(self) -> Array:
        return self.concentration / self.concentration.sum(-1, True)

    @property
    def mode(self) -> Array:
        spare = (self.concentration - 1).clamp(min=0)
        corner = (self.concentration < 1).all(-1, True)
        largest = (self.concentration == self.concentration.amax(-1, True)).to(spare.dtype)
        inner = spare / spare.sum(-1, True).masked_fill(corner, 1.0)
        return inner.where(~corner, largest / largest.sum(-1, True))

    @property
    def variance(self) -> Array:
        total = self.concentration.sum(-1, True)
        return self.concentration * (total - self.concentration) / (total.square() * (total + 1))

    def rsample(self, sample_shape: Sizes = ()) -> Array:
        return log_gamma(self.concentration.expand(self._extended_shape(sample_shape))).softmax(-1)

    def log_prob(self, value: Array) -> Array:
        self._check_value(value)
        a = self.concentration
        return (a - 1).xlogy(value).sum(-1) + a.sum(-1).lgamma() - a.lgamma().sum(-1)

    def entropy(self) -> Array:
        a = self.concentration
        total, k = a.sum(-1), a.shape[-1]
        spread_out = a.lgamma().sum(-1) - total.lgamma()
        return spread_out - (k - total) * total.digamma() - ((a - 1) * a.digamma()).sum(-1)


class Beta(ExponentialFamily):
    """Beta distribution over (0, 1): density proportional to ``x**(a - 1) (1 - x)**(b - 1)``.

    Args:
        concentration1: a, above 0.
        concentration0: b, above 0.

    Example:
        >>> import glassgrad as gg
        >>> gg.distributions.Beta(2.0, 2.0).log_prob(gg.tensor(0.5)).exp()
        tensor(1.5)
    """

    has_rsample = True
    arg_constraints: ClassVar[Constraints] = {
        "concentration1": constraints.positive,
        "concentration0": constraints.positive,
    }
    support = constraints.unit_interval

    def __init__(self, concentration1: Array, concentration0: Array, validate_args: bool | None = None) -> None:
        self._hold(validate_args, concentration1=concentration1, concentration0=concentration0)

    @property
    def _total(self) -> Array:
        return self.concentration1 + self.concentration0

    @property
    def mean(self) -> Array:
        return self.concentration1 / self._total

    @property
    def mode(self) -> Array:
        return Dirichlet(stack((self.concentration1, self.concentration0), -1), validate_args=False).mode[..., 0]

    @property
    def variance(self) -> Array:
        total = self._total
        return self.concentration1 * self.concentration0 / (total.square() * (total + 1))

    def rsample(self, sample_shape: Sizes = ()) -> Array:
        shape = self._extended_shape(sample_shape)
        first, second = log_gamma(self.concentration1.expand(shape)), log_gamma(self.concentration0.expand(shape))
        info = finfo(first.dtype)
        return (first - second).sigmoid().clamp(float(info.tiny), 1 - float(info.epsneg))

    def log_prob(self, value: Array) -> Array:
        self._check_value(value)
        a, b = self.concentration1, self.concentration0
        scale = self._total.lgamma() - a.lgamma() - b.lgamma()
        return (a - 1).xlogy(value) + (b - 1).xlog1py(-value) + scale

    def entropy(self) -> Array:
        a, b, total = self.concentration1, self.concentration0, self._total
        spread_out = a.lgamma() + b.lgamma() - total.lgamma()
        return spread_out - (a - 1) * a.digamma() - (b - 1) * b.digamma() + (total - 2) * total.digamma()


class StudentT(ExponentialFamily):
    """Student's t distribution with `df` degrees of freedom, shifted by `loc` and scaled by `scale`.

    Example:
        >>> import glassgrad as gg
        >>> gg.distributions.StudentT(4.0).variance
        tensor(2.)
    """

    has_rsample = True
    arg_constraints: ClassVar[Constraints] = {
        "df": constraints.positive,
        "loc": constraints.real,
        "scale": constraints.positive,
    }

    def __init__(self, df: Array, loc: Array = 0.0, scale: Array = 1.0, validate_args: bool | None = None) -> None:
        self._hold(validate_args, df=df, loc=loc, scale=scale)

    @property
    def mean(self) -> Array:
        return self.loc.masked_fill(self.df <= 1, math.nan)

    @property
    def mode(self) -> Array:
        return self.loc

    @property
    def variance(self) -> Array:
        finite = self.scale.square() * self.df / (self.df - 2).masked_fill(self.df <= 2, 1.0)
        return finite.masked_fill(self.df <= 2, math.inf).masked_fill(self.df <= 1, math.nan)

    def rsample(self, sample_shape: Sizes = ()) -> Array:
        shape = self._extended_shape(sample_shape)
        chi2 = 2 * log_gamma((0.5 * self.df).expand(shape)).exp()
        return self.loc + self.scale * random.randn(shape, dtype=self.loc.dtype) * (self.df / chi2).sqrt()

    def log_prob(self, value: Array) -> Array:
        self._check_value(value)
        z = (value - self.loc) / self.scale
        scale = self.scale.log() + 0.5 * self.df.log() + 0.5 * math.log(math.pi)
        scale = scale + (0.5 * self.df).lgamma() - (0.5 * (self.df + 1)).lgamma()
        return -0.5 * (self.df + 1) * (z.square() / self.df).log1p() - scale

    def entropy(self) -> Array:
        half = 0.5 * self.df
        beta = half.lgamma() + math.lgamma(0.5) - (half + 0.5).lgamma()
        slopes = (half + 0.5).digamma() - half.digamma()
        return self.scale.log() + 0.5 * (self.df + 1) * slopes + 0.5 * self.df.log() + beta


__all__ = ["Beta", "Chi2", "Dirichlet", "Gamma", "InverseGamma", "StudentT"]
