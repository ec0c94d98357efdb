"""Distributions composed of others: independent ones, mixtures, transformed ones."""

from __future__ import annotations

from collections.abc import Sequence

from glassgrad.distributions import constraints
from glassgrad.distributions.classes import Categorical
from glassgrad.distributions.distribution import Distribution, Sizes, as_sizes, summed
from glassgrad.distributions.transforms import ComposeTransform, Transform
from glassgrad.engine.mode import no_grad
from glassgrad.ops.core import Array


class Independent(Distribution):
    """A distribution whose last batch dimensions count as one event: its log-probabilities add up.

    Args:
        base_distribution: the distribution.
        reinterpreted_batch_ndims: the number of these dimensions.
        validate_args: whether values are checked.

    Example:
        >>> import glassgrad as gg
        >>> from glassgrad.distributions import Independent, Normal
        >>> Independent(Normal(gg.zeros(5, 3), 1.0), 1).log_prob(gg.zeros(5, 3)).shape
        (5,)
    """

    def __init__(
        self, base_distribution: Distribution, reinterpreted_batch_ndims: int, validate_args: bool | None = None
    ) -> None:
        self.base_dist = base_distribution
        self.has_rsample = base_distribution.has_rsample
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims
        whole = tuple(base_distribution.batch_shape) + tuple(base_distribution.event_shape)
        split = len(base_distribution.batch_shape) - reinterpreted_batch_ndims
        super().__init__(whole[:split], whole[split:], validate_args)

    @property
    def support(self) -> constraints.Constraint | None:
        inner = self.base_dist.support
        return None if inner is None else constraints.independent(inner, self.reinterpreted_batch_ndims)

    @property
    def mean(self) -> Array:
        return self.base_dist.mean

    @property
    def mode(self) -> Array:
        return self.base_dist.mode

    @property
    def variance(self) -> Array:
        return self.base_dist.variance

    def sample(self, sample_shape: Sizes = ()) -> Array:
        return self.base_dist.sample(sample_shape)

    def rsample(self, sample_shape: Sizes = ()) -> Array:
        return self.base_dist.rsample(sample_shape)

    def log_prob(self, value: Array) -> Array:
        return summed(self.base_dist.log_prob(value), self.reinterpreted_batch_ndims)

    def entropy(self) -> Array:
        return summed(self.base_dist.entropy(), self.reinterpreted_batch_ndims)

    def __repr__(self) -> str:
        return f"Independent({self.base_dist}, {self.reinterpreted_batch_ndims})"


class MixtureSameFamily(Distribution):
    """A mixture: one of k components, the last batch dimension, is drawn, then a sample from it.

    Args:
        mixture_distribution: a `Categorical` over k.
        component_distribution: a distribution with batch_shape (..., k).
        validate_args: whether values are checked.

    Example:
        >>> import glassgrad as gg
        >>> from glassgrad.distributions import Categorical, MixtureSameFamily, Normal
        >>> MixtureSameFamily(Categorical(gg.ones(2)), Normal(gg.tensor([-1.0, 1.0]), 1.0)).mean
        tensor(0.)
    """

    support = None  # bounds of the support may differ between components

    def __init__(
        self,
        mixture_distribution: Categorical,
        component_distribution: Distribution,
        validate_args: bool | None = None,
    ) -> None:
        self.mixture_distribution = mixture_distribution
        self.component_distribution = component_distribution
        event = tuple(component_distribution.event_shape)
        super().__init__(tuple(component_distribution.batch_shape)[:-1], event, validate_args)

    def _weights(self) -> Array:
        probs = self.mixture_distribution.probs
        return probs.reshape(*probs.shape, *(1,) * len(self._event_shape))

    @property
    def mean(self) -> Array:
        return (self._weights() * self.component_distribution.mean).sum(-1 - len(self._event_shape))

    @property
    def variance(self) -> Array:
        axis, parts = -1 - len(self._event_shape), self.component_distribution
        spread_out = (self._weights() * parts.variance).sum(axis)
        return spread_out + (self._weights() * (parts.mean - self.mean.unsqueeze(axis)).square()).sum(axis)

    def log_prob(self, value: Array) -> Array:
        self._check_value(value)
        inside = self.component_distribution.log_prob(value.unsqueeze(-1 - len(self._event_shape)))
        return (inside + self.mixture_distribution.logits.log_softmax(-1)).logsumexp(-1)

    def cdf(self, value: Array) -> Array:
        inside = self.component_distribution.cdf(value.unsqueeze(-1))
        return (inside * self.mixture_distribution.probs).sum(-1)

    def sample(self, sample_shape: Sizes = ()) -> Array:
        with no_grad():
            extra, axis = len(self._event_shape), len(as_sizes(sample_shape)) + len(self._batch_shape)
            chosen = self.mixture_distribution.expand(self._batch_shape).sample(sample_shape)
            chosen = chosen.reshape(*chosen.shape, *(1,) * (1 + extra))
            samples = self.component_distribution.sample(sample_shape)
            picked = chosen.expand((*samples.shape[:axis], 1, *self._event_shape))
            return samples.gather(axis, picked).squeeze(axis)

    def __repr__(self) -> str:
        return f"MixtureSameFamily(\n  {self.mixture_distribution},\n  {self.component_distribution})"


class TransformedDistribution(Distribution):
    """The distribution of ``transform(x)`` where x is a sample of another one.

    Args:
        base_distribution: the distribution of x.
        transforms: a transform, or several, applied in order.
        validate_args: whether values are checked.

    Example:
        >>> import glassgrad as gg
        >>> from glassgrad.distributions import Normal, TanhTransform, TransformedDistribution
        >>> squashed = TransformedDistribution(Normal(gg.zeros(2), 1.0), TanhTransform(cache_size=1))
        >>> bool((squashed.rsample().abs() < 1).all())
        True
    """

    def __init__(
        self,
        base_distribution: Distribution,
        transforms: Transform | Sequence[Transform],
        validate_args: bool | None = None,
    ) -> None:
        self.transforms = [transforms] if isinstance(transforms, Transform) else list(transforms)
        whole = self._whole
        event = len(base_distribution.event_shape)
        if whole.event_dim > event:
            base_distribution = Independent(base_distribution, whole.event_dim - event)
        self.base_dist = base_distribution
        self.has_rsample = base_distribution.has_rsample
        shape = whole.forward_shape(tuple(base_distribution.batch_shape) + tuple(base_distribution.event_shape))
        split = len(shape) - max(whole.event_dim, len(base_distribution.event_shape))
        super().__init__(shape[:split], shape[split:], validate_args)

    @property
    def _whole(self) -> ComposeTransform:
        return ComposeTransform(self.transforms)

    @property
    def support(self) -> constraints.Constraint | None:
        if not self.transforms:
            return self.base_dist.support
        last = self.transforms[-1].codomain
        return constraints.independent(last, max(len(self._event_shape) - last.event_dim, 0))

    def sample(self, sample_shape: Sizes = ()) -> Array:
        with no_grad():
            return self._whole(self.base_dist.sample(sample_shape))

    def rsample(self, sample_shape: Sizes = ()) -> Array:
        return self._whole(self.base_dist.rsample(sample_shape))

    def log_prob(self, value: Array) -> Array:
        self._check_value(value)
        event, y, grown = len(self._event_shape), value, 0.0
        for transform in reversed(self.transforms):
            x = transform._undo(y)
            grown = grown + summed(transform.log_abs_det_jacobian(x, y), event - transform.event_dim)
            y = x
        return summed(self.base_dist.log_prob(y), event - len(self.base_dist.event_shape)) - grown

    def cdf(self, value: Array) -> Array:
        inside = self.base_dist.cdf(self._whole._undo(value))
        return self._whole.sign * (inside - 0.5) + 0.5

    def icdf(self, value: Array) -> Array:
        return self._whole(self.base_dist.icdf(self._whole.sign * (value - 0.5) + 0.5))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.base_dist}, {self.transforms})"


__all__ = ["Independent", "MixtureSameFamily", "TransformedDistribution"]
