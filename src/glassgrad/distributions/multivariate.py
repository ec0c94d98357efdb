"""The multivariate normal distribution."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from glassgrad import errors
from glassgrad.base import provenance
from glassgrad.distributions import constraints
from glassgrad.distributions.distribution import Constraints, Distribution, Sizes, given_one
from glassgrad.engine import random
from glassgrad.engine.tensors import creation
from glassgrad.ops.core import Array
from glassgrad.ops.factorise import cholesky
from glassgrad.ops.solve import inv, solve_triangular


def half_log_det(scale: Array) -> Array:
    """Return the log determinants of lower triangular matrices, half those of the covariances."""
    return scale.diagonal(0, -2, -1).log().sum(-1)


def mahalanobis(scale: Array, difference: Array) -> Array:
    """Return ``|scale**-1 difference|**2`` for each vector."""
    lead = np.broadcast_shapes(scale.shape[:-2], difference.shape[:-1])
    size = difference.shape[-1]
    if scale.dim() == 2:  # one matrix for all vectors: they are the columns of one system
        columns = difference.reshape((-1, size)).mT
        return solve_triangular(scale, columns, upper=False).square().sum(0).reshape(lead)
    wide = difference.expand((*lead, size)).unsqueeze(-1)
    solved = solve_triangular(scale.expand((*lead, size, size)), wide, upper=False)
    return solved.square().sum((-2, -1))


class MultivariateNormal(Distribution):
    """Normal distribution of vectors, given by its mean and one of three matrices.

    Args:
        loc: mean, (..., k).
        covariance_matrix: (..., k, k), positive definite.
        precision_matrix: its inverse instead.
        scale_tril: the lower Cholesky factor of the covariance instead, which is used internally.

    Example:
        >>> import glassgrad as gg
        >>> gg.distributions.MultivariateNormal(gg.zeros(2), gg.eye(2)).log_prob(gg.zeros(2))
        tensor(-1.8379)
    """

    has_rsample = True
    arg_constraints: ClassVar[Constraints] = {
        "loc": constraints.real_vector,
        "covariance_matrix": constraints.positive_definite,
        "precision_matrix": constraints.positive_definite,
        "scale_tril": constraints.lower_cholesky,
    }
    support = constraints.real_vector

    def __init__(
        self,
        loc: Array,
        covariance_matrix: Array | None = None,
        precision_matrix: Array | None = None,
        scale_tril: Array | None = None,
        validate_args: bool | None = None,
    ) -> None:
        given = {
            "covariance_matrix": covariance_matrix,
            "precision_matrix": precision_matrix,
            "scale_tril": scale_tril,
        }
        given_one("MultivariateNormal", **given)
        name, matrix = next((name, value) for name, value in given.items() if value is not None)
        if len(loc.shape) < 1 or len(matrix.shape) < 2:
            short, dims = ("loc", 1) if len(loc.shape) < 1 else (name, 2)
            raise errors.DISTRIBUTION_DIMS(owner="MultivariateNormal", name=short, dims=dims, where=provenance.here())
        batch = np.broadcast_shapes(matrix.shape[:-2], loc.shape[:-1])
        size = loc.shape[-1]
        self.loc: Array = loc.expand((*batch, size))
        self.__dict__[name] = matrix.expand((*batch, size, size))
        super().__init__(batch, (size,), validate_args)
        if name == "covariance_matrix":
            matrix = cholesky(matrix)
        elif name == "precision_matrix":
            matrix = _factor_of_inverse(matrix)
        self._scale: Array = matrix.expand((*batch, size, size))

    def __getattr__(self, name: str) -> Any:
        if "_scale" not in self.__dict__:
            raise AttributeError(name)
        if name == "scale_tril":
            return self._scale
        if name == "covariance_matrix":
            return self._scale @ self._scale.mT
        if name == "precision_matrix":
            return inv(self._scale @ self._scale.mT)
        raise AttributeError(f"'MultivariateNormal' object has no attribute {name!r}")

    @property
    def mean(self) -> Array:
        return self.loc

    mode = mean

    @property
    def variance(self) -> Array:
        return self._scale.square().sum(-1)

    def rsample(self, sample_shape: Sizes = ()) -> Array:
        noise = random.randn(self._extended_shape(sample_shape), dtype=self.loc.dtype)
        return self.loc + (self._scale @ noise.unsqueeze(-1)).squeeze(-1)

    def log_prob(self, value: Array) -> Array:
        self._check_value(value)
        far = mahalanobis(self._scale, value - self.loc)
        return -0.5 * (self._event_shape[0] * math.log(2 * math.pi) + far) - half_log_det(self._scale)

    def entropy(self) -> Array:
        return 0.5 * self._event_shape[0] * (1 + math.log(2 * math.pi)) + half_log_det(self._scale)


def _factor_of_inverse(precision: Array) -> Array:
    """Return the lower triangular factor of the inverse of a positive definite matrix."""
    turned = cholesky(precision.flip((-2, -1)))
    upper = turned.flip((-2, -1)).mT
    return solve_triangular(upper, creation.eye(precision.shape[-1], dtype=precision.dtype), upper=False)


__all__ = ["MultivariateNormal"]
