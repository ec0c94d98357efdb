"""Kullback-Leibler divergence: ``KL(p || q) = E_p[log p(x) - log q(x)]``, in closed form."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from glassgrad import errors
from glassgrad.base import provenance
from glassgrad.distributions.classes import Categorical, OneHotCategorical
from glassgrad.distributions.composed import Independent, TransformedDistribution
from glassgrad.distributions.continuous import Cauchy, Gumbel, Laplace, Normal, Uniform
from glassgrad.distributions.derived import Exponential, HalfNormal
from glassgrad.distributions.discrete import Bernoulli, Binomial, Geometric, Poisson
from glassgrad.distributions.distribution import Distribution, summed
from glassgrad.distributions.gammas import Beta, Dirichlet, Gamma, InverseGamma
from glassgrad.distributions.multivariate import MultivariateNormal, half_log_det, mahalanobis
from glassgrad.distributions.transforms import Transform
from glassgrad.ops.core import Array
from glassgrad.ops.names import PUBLIC
from glassgrad.ops.solve import solve_triangular

Formula = Callable[[Any, Any], Array]  # of two distributions of the registered classes
_FORMULAS: dict[tuple[type, type], Formula] = {}


def register_kl(type_p: type, type_q: type) -> Callable[[Formula], Formula]:
    """Register the decorated function as the divergence of two classes of distributions.

    Example:
        >>> import glassgrad as gg
        >>> class Point(gg.distributions.Distribution):
        ...     pass
        >>> @gg.distributions.register_kl(Point, Point)
        ... def same(p, q):
        ...     return gg.tensor(0.0)
        >>> gg.distributions.kl_divergence(Point(), Point())
        tensor(0.)
    """

    def register(formula: Formula) -> Formula:
        _FORMULAS[type_p, type_q] = formula
        return formula

    return register


def kl_divergence(p: Distribution, q: Distribution) -> Array:
    """Return KL(p || q), of their batch shape, with gradients to the parameters of both.

    Raises:
        NoFormulaError: there is no formula for these two.

    Example:
        >>> import glassgrad as gg
        >>> from glassgrad.distributions import Normal, kl_divergence
        >>> kl_divergence(Normal(1.0, 1.0), Normal(0.0, 1.0))
        tensor(0.5)
    """
    for left in type(p).__mro__:
        for right in type(q).__mro__:
            if (left, right) in _FORMULAS:
                return _FORMULAS[left, right](p, q)
    raise errors.NO_KL(left=type(p).__name__, right=type(q).__name__, where=provenance.here())


@register_kl(Normal, Normal)
def _normals(p: Normal, q: Normal) -> Array:
    ratio = (p.scale / q.scale).square()
    return 0.5 * (ratio + ((p.loc - q.loc) / q.scale).square() - 1 - ratio.log())


@register_kl(HalfNormal, HalfNormal)
def _half_normals(p: HalfNormal, q: HalfNormal) -> Array:
    return _normals(p._whole, q._whole)


@register_kl(Laplace, Laplace)
def _laplaces(p: Laplace, q: Laplace) -> Array:
    apart = (p.loc - q.loc).abs()
    ratio = p.scale / q.scale
    return -ratio.log() + apart / q.scale + ratio * (-apart / p.scale).exp() - 1


@register_kl(Cauchy, Cauchy)
def _cauchys(p: Cauchy, q: Cauchy) -> Array:
    # Chyzak and Nielsen 2019.
    together = (p.scale + q.scale).square() + (p.loc - q.loc).square()
    return together.log() - (4 * p.scale * q.scale).log()


@register_kl(Gumbel, Gumbel)
def _gumbels(p: Gumbel, q: Gumbel) -> Array:
    ratio, moved = p.scale / q.scale, (p.loc - q.loc) / q.scale
    return -ratio.log() - moved.neg() + (-moved + (1 + ratio).lgamma()).exp() - 1 - np.euler_gamma * (1 - ratio)


@register_kl(Uniform, Uniform)
def _uniforms(p: Uniform, q: Uniform) -> Array:
    outside = (q.low > p.low) | (q.high < p.high)
    return ((q.high - q.low) / (p.high - p.low)).log().masked_fill(outside, math.inf)


@register_kl(Uniform, Normal)
def _uniform_normal(p: Uniform, q: Normal) -> Array:
    width = p.high - p.low
    far = ((p.high + p.low - 2 * q.loc) / 2).square() + width.square() / 12
    return 0.5 * math.log(2 * math.pi) + (q.scale / width).log() + 0.5 * far / q.scale.square()


@register_kl(Normal, Laplace)
def _normal_laplace(p: Normal, q: Laplace) -> Array:
    # E|x - m| for a normal x is the mean of the folded normal distribution.
    apart = p.loc - q.loc
    z = apart / p.scale
    folded = p.scale * math.sqrt(2 / math.pi) * (-0.5 * z.square()).exp() + apart * (z / math.sqrt(2)).erf()
    return (2 * q.scale / p.scale).log() + folded / q.scale - 0.5 * (1 + math.log(2 * math.pi))


@register_kl(Exponential, Exponential)
def _exponentials(p: Exponential, q: Exponential) -> Array:
    ratio = q.rate / p.rate
    return ratio - ratio.log() - 1


@register_kl(Exponential, Gamma)
def _exponential_gamma(p: Exponential, q: Gamma) -> Array:
    ratio, a = q.rate / p.rate, q.concentration
    return -a * ratio.log() + ratio + a.lgamma() + a * np.euler_gamma - (1 + np.euler_gamma)


@register_kl(InverseGamma, InverseGamma)  # the divergence is invariant under bijections
@register_kl(Gamma, Gamma)
def _gammas(p: Gamma, q: Gamma) -> Array:
    a, b = p.concentration, q.concentration
    norms = b * (p.rate / q.rate).log() + b.lgamma() - a.lgamma()
    return norms + (a - b) * a.digamma() + (q.rate - p.rate) * (a / p.rate)


@register_kl(Beta, Beta)
def _betas(p: Beta, q: Beta) -> Array:
    a, b, c, d = p.concentration1, p.concentration0, q.concentration1, q.concentration0
    total = a + b
    norms = c.lgamma() + d.lgamma() + total.lgamma() - (c + d).lgamma() - a.lgamma() - b.lgamma()
    return norms + (a - c) * a.digamma() + (b - d) * b.digamma() + (c + d - total) * total.digamma()


@register_kl(Dirichlet, Dirichlet)
def _dirichlets(p: Dirichlet, q: Dirichlet) -> Array:
    a, b = p.concentration, q.concentration
    norms = a.sum(-1).lgamma() - b.sum(-1).lgamma() + (b.lgamma() - a.lgamma()).sum(-1)
    return norms + ((a - b) * (a.digamma() - a.sum(-1, True).digamma())).sum(-1)


@register_kl(MultivariateNormal, MultivariateNormal)
def _vectors(p: MultivariateNormal, q: MultivariateNormal) -> Array:
    size = p.event_shape[0]
    lead = np.broadcast_shapes(tuple(p.batch_shape), tuple(q.batch_shape))
    ours, theirs = (one._scale.expand((*lead, size, size)) for one in (p, q))
    trace = solve_triangular(theirs, ours, upper=False).square().sum((-2, -1))
    far = mahalanobis(theirs, q.loc - p.loc)
    return half_log_det(theirs) - half_log_det(ours) + 0.5 * (trace + far - size)


@register_kl(Bernoulli, Bernoulli)
def _bernoullis(p: Bernoulli, q: Bernoulli) -> Array:
    return _coin(p.probs, p.logits, q)


def _coin(probs: Array, logits: Array, q: Bernoulli | Binomial) -> Array:
    """Return the divergence of Bernoulli variables; infinite where q has probability 0 and p has not."""
    softplus = PUBLIC["softplus"]
    one = probs * (softplus(-q.logits) - softplus(-logits))
    zero = (1 - probs) * (softplus(q.logits) - softplus(logits))
    one = one.masked_fill(q.probs == 0, math.inf).masked_fill(probs == 0, 0.0)
    zero = zero.masked_fill(q.probs == 1, math.inf).masked_fill(probs == 1, 0.0)
    return one + zero


@register_kl(Binomial, Binomial)
def _binomials(p: Binomial, q: Binomial) -> Array:
    if not bool((p.total_count == q.total_count).all()):
        raise errors.NO_KL(left="Binomial", right="Binomial of other total_count", where=provenance.here(1))
    return p.total_count * _coin(p.probs, p.logits, q)


@register_kl(Geometric, Geometric)
def _geometrics(p: Geometric, q: Geometric) -> Array:
    return -p.entropy() - (-q.probs).log1p() / p.probs - q.logits


@register_kl(Poisson, Poisson)
def _poissons(p: Poisson, q: Poisson) -> Array:
    return p.rate * (p.rate.log() - q.rate.log()) - (p.rate - q.rate)


@register_kl(OneHotCategorical, OneHotCategorical)
@register_kl(Categorical, Categorical)
def _classes(p: Categorical, q: Categorical) -> Array:
    terms = p.probs * (p.logits - q.logits)
    return terms.masked_fill(q.probs == 0, math.inf).masked_fill(p.probs == 0, 0.0).sum(-1)


@register_kl(Independent, Independent)
def _independents(p: Independent, q: Independent) -> Array:
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise errors.NO_KL(left=p, right=q, where=provenance.here(1))
    return summed(kl_divergence(p.base_dist, q.base_dist), p.reinterpreted_batch_ndims)


@register_kl(TransformedDistribution, TransformedDistribution)
def _transformed(p: TransformedDistribution, q: TransformedDistribution) -> Array:
    pairs = zip(p.transforms, q.transforms, strict=False)
    same = len(p.transforms) == len(q.transforms) and all(
        type(one) is type(other) and _equal(one, other) for one, other in pairs
    )
    if not same or p.event_shape != q.event_shape:
        raise errors.NO_KL(left=p, right=q, where=provenance.here(1))
    inner = kl_divergence(p.base_dist, q.base_dist)
    return summed(inner, len(p.event_shape) - len(p.base_dist.event_shape))


def _equal(left: Transform, right: Transform) -> bool:
    """Tell whether two transforms of one class have the same parameters."""
    for name, value in vars(left).items():
        other = vars(right)[name]
        if name.startswith("_") or value is other:
            continue
        if not bool(np.all(np.asarray(value == other))):
            return False
    return True


__all__ = ["kl_divergence", "register_kl"]
