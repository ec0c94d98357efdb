"""Normalisation layers."""

from __future__ import annotations

from typing import Any

import numpy as np

from glassgrad import creation, errors, provenance
from glassgrad.nn import functional as F
from glassgrad.nn.module import Buffer, Module, Parameter


class _BatchNorm(Module):
    """What the batch norms share; they differ in the shapes they take."""

    dims: tuple[int, ...] = ()

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.num_features = num_features
        self.eps = eps
        self.momentum = momentum
        self.affine = affine
        self.track_running_stats = track_running_stats
        self.weight = Parameter(creation.ones(num_features, dtype=dtype).array) if affine else None
        self.bias = Parameter(creation.zeros(num_features, dtype=dtype).array) if affine else None
        tracked = track_running_stats
        self.running_mean = Buffer(creation.zeros(num_features, dtype=dtype).array) if tracked else None
        self.running_var = Buffer(creation.ones(num_features, dtype=dtype).array) if tracked else None
        self.num_batches_tracked = Buffer(np.zeros((), np.int64)) if tracked else None

    def forward(self, x: Any) -> Any:
        if len(x.shape) not in self.dims or x.shape[1] != self.num_features:
            raise errors.WRONG_INPUT(
                layer=repr(self),
                expected=f"(N, {self.num_features}, ...) with {' or '.join(map(str, self.dims))} dimensions",
                given=tuple(x.shape),
                where=provenance.here(),
            )
        training = self.training or self.running_mean is None
        momentum = self.momentum
        if self.training and self.num_batches_tracked is not None:
            seen = self.num_batches_tracked.lifted()
            seen += 1
            self.num_batches_tracked.array = seen
            if momentum is None:  # a cumulative average
                momentum = 1 / float(seen)
        mean, var = self.running_mean, self.running_var
        return F.batch_norm(x, mean, var, self.weight, self.bias, training, momentum or 0.0, self.eps)

    def extra_repr(self) -> str:
        return f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}"


class BatchNorm1d(_BatchNorm):
    """Batch normalisation of (N, C) or (N, C, L) over all but the channels (Ioffe and Szegedy 2015).

    In training by the statistics of the batch, which also move `running_mean` and `running_var`
    (unbiased) by `momentum`; otherwise by those.
    """

    dims = (2, 3)


class BatchNorm2d(_BatchNorm):
    """Batch normalisation of (N, C, H, W) over all but the channels; see `BatchNorm1d`."""

    dims = (4,)
