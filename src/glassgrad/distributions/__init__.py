"""Probability distributions with `torch.distributions`' names: samples, log-probabilities, entropies, divergences.

A distribution holds tensors, and its results are differentiable with respect to them. Gradients also flow through
samples of `rsample`, but not of `sample`. A compiled step draws new samples in every call.

`distribution.py` is the base; `continuous.py`, `gammas.py`, `derived.py`, `multivariate.py`, `discrete.py` and
`classes.py` hold the families, `composed.py` distributions built from others. `transforms.py` and `constraints.py`
describe functions and sets, `constraint_registry.py` connects them, `kl.py` has the divergences.
"""

from __future__ import annotations

from glassgrad.base.families import serve

_BIJECTION = "apply a transform from glassgrad.distributions.transforms."
_OWN = "subclass Distribution with log_prob and rsample, or register_kl for a divergence."
# PyTorch's names that this library lacks, and their replacements.
_INSTEAD = {
    "LowRankMultivariateNormal": "MultivariateNormal with covariance_matrix=cov_factor @ cov_factor.mT + diag.",
    **dict.fromkeys(("ContinuousBernoulli", "FisherSnedecor", "GeneralizedPareto", "Kumaraswamy"), _OWN),
    **dict.fromkeys(("LKJCholesky", "VonMises", "Wishart"), _OWN),
    **dict.fromkeys(("CatTransform", "CorrCholeskyTransform", "CumulativeDistributionTransform"), _BIJECTION),
    **dict.fromkeys(("PositiveDefiniteTransform", "StackTransform"), _BIJECTION),
}

_MODULES = ("constraint_registry", "constraints", "kl", "transforms")

__getattr__, __dir__ = serve(__name__, __path__, modules=_MODULES, apart=("constraints",), instead=_INSTEAD)
