"""Probability distributions with `torch.distributions`' names: samples, log-probabilities, entropies, divergences.

A distribution holds tensors, and its results are differentiable with respect to them. `rsample` lets gradients
through the samples as well, `sample` does not. A compiled step draws new samples in every call.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from glassgrad.distributions import constraint_registry, constraints, kl, transforms
from glassgrad.distributions.classes import (
    Categorical,
    Multinomial,
    OneHotCategorical,
    OneHotCategoricalStraightThrough,
)
from glassgrad.distributions.composed import Independent, MixtureSameFamily, TransformedDistribution
from glassgrad.distributions.constraint_registry import biject_to, transform_to
from glassgrad.distributions.continuous import Cauchy, Gumbel, Laplace, Normal, Uniform
from glassgrad.distributions.derived import (
    Exponential,
    HalfCauchy,
    HalfNormal,
    LogisticNormal,
    LogNormal,
    Pareto,
    RelaxedBernoulli,
    RelaxedOneHotCategorical,
    Weibull,
)
from glassgrad.distributions.discrete import Bernoulli, Binomial, Geometric, NegativeBinomial, Poisson
from glassgrad.distributions.distribution import Distribution, ExponentialFamily
from glassgrad.distributions.gammas import Beta, Chi2, Dirichlet, Gamma, InverseGamma, StudentT
from glassgrad.distributions.kl import kl_divergence, register_kl
from glassgrad.distributions.multivariate import MultivariateNormal
from glassgrad.distributions.transforms import (
    AbsTransform,
    AffineTransform,
    ComposeTransform,
    ExpTransform,
    IndependentTransform,
    LowerCholeskyTransform,
    PowerTransform,
    ReshapeTransform,
    SigmoidTransform,
    SoftmaxTransform,
    SoftplusTransform,
    StickBreakingTransform,
    TanhTransform,
    Transform,
    identity_transform,
)
from glassgrad.errors.missing import getter, lister

_BIJECTION = "apply the transform of your choice from glassgrad.distributions.transforms."
_OWN = "subclass Distribution with log_prob and rsample, or register_kl for a divergence."
# PyTorch's names that this library lacks, and what to use in their place.
_INSTEAD = {
    "LowRankMultivariateNormal": "MultivariateNormal with covariance_matrix=cov_factor @ cov_factor.mT + diag.",
    "ContinuousBernoulli": _OWN, "FisherSnedecor": _OWN, "GeneralizedPareto": _OWN, "Kumaraswamy": _OWN,
    "LKJCholesky": _OWN, "VonMises": _OWN, "Wishart": _OWN,
    "CatTransform": _BIJECTION, "CorrCholeskyTransform": _BIJECTION, "CumulativeDistributionTransform": _BIJECTION,
    "PositiveDefiniteTransform": _BIJECTION, "StackTransform": _BIJECTION,
}  # fmt: skip  # a table

if not TYPE_CHECKING:
    __getattr__ = getter(__name__, _INSTEAD)

__all__ = [
    "AbsTransform", "AffineTransform", "Bernoulli", "Beta", "Binomial", "Categorical", "Cauchy", "Chi2",
    "ComposeTransform", "Dirichlet", "Distribution", "ExpTransform", "Exponential", "ExponentialFamily", "Gamma",
    "Geometric", "Gumbel", "HalfCauchy", "HalfNormal", "Independent", "IndependentTransform", "InverseGamma",
    "Laplace", "LogNormal", "LogisticNormal", "LowerCholeskyTransform", "MixtureSameFamily", "Multinomial",
    "MultivariateNormal", "NegativeBinomial", "Normal", "OneHotCategorical", "OneHotCategoricalStraightThrough",
    "Pareto", "Poisson", "PowerTransform", "RelaxedBernoulli", "RelaxedOneHotCategorical", "ReshapeTransform",
    "SigmoidTransform", "SoftmaxTransform", "SoftplusTransform", "StickBreakingTransform", "StudentT", "TanhTransform",
    "Transform", "TransformedDistribution", "Uniform", "Weibull", "biject_to", "constraint_registry", "constraints",
    "identity_transform", "kl", "kl_divergence", "register_kl", "transform_to", "transforms",
]  # fmt: skip  # a table
__dir__ = lister(__name__)
