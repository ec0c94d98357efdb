"""One row for each distribution: its parameters, and values to evaluate."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

REAL = np.array([-1.3, 0.2, 2.5])
POSITIVE = np.array([0.3, 1.1, 2.7])
UNIT = np.array([0.1, 0.45, 0.9])
COUNTS = np.array([0.0, 1.0, 3.0])
LOC, SCALE = np.array([0.5, -0.2, 1.0]), np.array([0.7, 1.5, 2.0])
PROBS = np.array([[0.2, 0.5, 0.3], [0.6, 0.3, 0.1]])
LOGITS = np.array([[0.3, -1.0, 2.0], [0.0, 0.5, -0.5]])
SIMPLEX = np.array([[0.2, 0.5, 0.3], [0.1, 0.1, 0.8]])
FACTOR = np.array([[1.0, 0.0], [0.4, 0.8]])


@dataclass(frozen=True)
class Case:
    """A distribution: `build` makes it from a module and its parameters."""

    name: str
    parameters: dict[str, np.ndarray]
    values: np.ndarray
    build: Callable[..., Any] | None = None

    def make(self, library: Any, parameters: dict[str, Any]) -> Any:
        if self.build is not None:
            return self.build(library, **parameters)
        return getattr(library, self.name.split(":")[0])(**parameters)


def _independent(d: Any, loc: Any, scale: Any) -> Any:
    return d.Independent(d.Normal(loc, scale), 1)


def _squashed(d: Any, loc: Any, scale: Any) -> Any:
    return d.TransformedDistribution(d.Normal(loc, scale), [d.TanhTransform(), d.AffineTransform(1.0, 2.0)])


def _mixture(d: Any, logits: Any, loc: Any, scale: Any) -> Any:
    return d.MixtureSameFamily(d.Categorical(logits=logits), d.Normal(loc, scale))


def _vector_mixture(d: Any, logits: Any, loc: Any) -> Any:
    return d.MixtureSameFamily(d.Categorical(logits=logits), d.Independent(d.Normal(loc, 1.0), 1))


def _softplus(d: Any, loc: Any, scale: Any) -> Any:
    return d.TransformedDistribution(d.Normal(loc, scale), d.SoftplusTransform())


def _multinomial(d: Any, probs: Any) -> Any:
    return d.Multinomial(4, probs=probs)


CASES = [
    Case("Normal", {"loc": LOC, "scale": SCALE}, REAL),
    Case("Laplace", {"loc": LOC, "scale": SCALE}, REAL),
    Case("Cauchy", {"loc": LOC, "scale": SCALE}, REAL),
    Case("Gumbel", {"loc": LOC, "scale": SCALE}, REAL),
    Case("Uniform", {"low": LOC - 3, "high": LOC + 4}, np.array([-1.0, 0.2, 1.0])),
    Case("Exponential", {"rate": SCALE}, POSITIVE),
    Case("HalfNormal", {"scale": SCALE}, POSITIVE),
    Case("HalfCauchy", {"scale": SCALE}, POSITIVE),
    Case("LogNormal", {"loc": LOC, "scale": SCALE}, POSITIVE),
    Case("Weibull", {"scale": SCALE, "concentration": POSITIVE}, POSITIVE),
    Case("Pareto", {"scale": SCALE, "alpha": POSITIVE}, SCALE + 0.5),
    Case("Gamma", {"concentration": POSITIVE, "rate": SCALE}, POSITIVE),
    Case("InverseGamma", {"concentration": POSITIVE, "rate": SCALE}, POSITIVE),
    Case("Chi2", {"df": SCALE}, POSITIVE),
    Case("Beta", {"concentration1": POSITIVE, "concentration0": SCALE}, UNIT),
    Case("StudentT", {"df": POSITIVE + 1, "loc": LOC, "scale": SCALE}, REAL),
    Case("Dirichlet", {"concentration": np.array([[0.5, 1.5, 2.0], [3.0, 0.2, 1.0]])}, SIMPLEX),
    Case("Bernoulli", {"probs": UNIT}, np.array([0.0, 1.0, 1.0])),
    Case("Bernoulli:logits", {"logits": REAL.round()}, np.array([0.0, 1.0, 1.0])),
    Case("Geometric", {"probs": UNIT}, COUNTS),
    Case("Geometric:logits", {"logits": REAL}, COUNTS),
    Case("Binomial", {"total_count": np.array([4.0, 4.0, 4.0]), "probs": UNIT}, COUNTS),
    Case("Binomial:logits", {"total_count": np.array([4.0, 4.0, 4.0]), "logits": REAL.round()}, COUNTS),
    Case("NegativeBinomial", {"total_count": np.array([4.0, 2.0, 3.0]), "probs": UNIT}, COUNTS),
    Case("Poisson", {"rate": POSITIVE}, COUNTS),
    Case("Categorical", {"probs": PROBS}, np.array([2, 0])),
    Case("Categorical:logits", {"logits": LOGITS}, np.array([2, 0])),
    Case("OneHotCategorical", {"probs": PROBS}, np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]])),
    Case("OneHotCategoricalStraightThrough", {"logits": LOGITS}, np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]])),
    Case("Multinomial", {"probs": PROBS}, np.array([[1.0, 2.0, 1.0], [4.0, 0.0, 0.0]]), _multinomial),
    Case("RelaxedBernoulli", {"temperature": np.array(0.7), "logits": REAL}, UNIT),
    Case("RelaxedOneHotCategorical", {"temperature": np.array(0.7), "logits": LOGITS}, SIMPLEX),
    Case("LogisticNormal", {"loc": LOGITS[:, :2], "scale": SCALE[:2]}, SIMPLEX),
    Case("MultivariateNormal:tril", {"loc": LOC[:2], "scale_tril": FACTOR}, REAL[:2]),
    Case("MultivariateNormal", {"loc": LOGITS[:, :2], "covariance_matrix": FACTOR @ FACTOR.T}, LOGITS[:, 1:]),
    Case("MultivariateNormal:precision", {"loc": LOC[:2], "precision_matrix": FACTOR @ FACTOR.T}, REAL[:2]),
    Case("Independent", {"loc": LOGITS, "scale": SCALE}, SIMPLEX, _independent),
    Case("TanhNormal", {"loc": LOC, "scale": SCALE}, np.array([-0.3, 1.2, 2.4]), _squashed),
    Case("SoftplusNormal", {"loc": LOC, "scale": SCALE}, POSITIVE, _softplus),
    Case("Mixture", {"logits": LOGITS, "loc": LOGITS.T.copy().T, "scale": SCALE}, REAL[:2], _mixture),
    Case("VectorMixture", {"logits": LOGITS, "loc": np.stack([LOGITS, -LOGITS], -1)}, LOGITS[:, 1:], _vector_mixture),
]
