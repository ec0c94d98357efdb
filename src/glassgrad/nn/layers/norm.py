"""Normalisation layers: batch, layer, RMS, group, instance and local response norm."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from glassgrad import errors
from glassgrad.base import provenance
from glassgrad.engine.tensor import Tensor, TensorLike
from glassgrad.engine.tensors import creation, devices
from glassgrad.engine.tensors.devices import Device, DType
from glassgrad.nn import init
from glassgrad.nn.arguments import Ints
from glassgrad.nn.functional import norm as F
from glassgrad.nn.module import Module
from glassgrad.nn.parameter import Buffer, Parameter
from glassgrad.ops.core import Array, bad_option

_ONE = np.ones((), np.int64)  # a plain number would become a new array in every call


class _Scaled(Module):
    """Base of most norms: a learned scale and a learned shift, or None."""

    def _learn(self, shape: Ints, scale: bool, shift: bool, dtype: DType) -> None:
        self.weight = Parameter(creation.ones(shape, dtype=dtype).array) if scale else None
        self.bias = Parameter(creation.zeros(shape, dtype=dtype).array) if scale and shift else None

    def reset_parameters(self) -> None:
        """Set the scale to 1 and the shift to 0."""
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)


class _Tracked(_Scaled):
    """Base of batch and instance norms: a scale for each channel and running statistics."""

    dims: tuple[int, ...] = ()

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Device = None,
        dtype: DType = None,
        *,
        bias: bool = True,
    ) -> None:
        devices.check(device)
        super().__init__()
        self.num_features = num_features
        self.eps = eps
        self.momentum = momentum
        self.affine = affine
        self.track_running_stats = track_running_stats
        self._learn(num_features, affine, bias, dtype)
        tracked = track_running_stats
        self.running_mean = Buffer(creation.zeros(num_features, dtype=dtype).array) if tracked else None
        self.running_var = Buffer(creation.ones(num_features, dtype=dtype).array) if tracked else None
        self.num_batches_tracked = Buffer(np.zeros((), np.int64)) if tracked else None

    def reset_running_stats(self) -> None:
        """Forget the running statistics."""
        if self.running_mean is not None and self.running_var is not None and self.num_batches_tracked is not None:
            self.running_mean.array[...] = 0
            self.running_var.array[...] = 1
            self.num_batches_tracked.array[...] = 0

    def reset_parameters(self) -> None:
        """Forget the running statistics, and set the scale to 1 and the shift to 0."""
        self.reset_running_stats()
        super().reset_parameters()

    def _check(self, x: Array, channel: int) -> None:
        if len(x.shape) not in self.dims or x.shape[channel] != self.num_features:
            raise errors.WRONG_INPUT(
                layer=repr(self),
                expected=f"(N, {self.num_features}, ...) with {' or '.join(map(str, self.dims))} dimensions",
                given=tuple(x.shape),
                where=provenance.here(2),
            )

    def _counted(self) -> Array:
        """Count a batch; return the weight that it gets in the running statistics."""
        if not self.training or self.num_batches_tracked is None:
            return self.momentum or 0.0
        seen = self.num_batches_tracked.lifted()
        if type(seen) is np.ndarray:
            np.add(seen, _ONE, seen)
        else:
            seen += 1
            self.num_batches_tracked.array = seen
        if self.momentum is not None:
            return self.momentum
        # A cumulative average; the count may be a Symbol.
        return 1 / float(seen) if isinstance(seen, np.ndarray) else 1 / seen.astype(np.float32)

    def extra_repr(self) -> str:
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, "
            f"bias={self.bias is not None}, track_running_stats={self.track_running_stats}"
        )


# The function that replaces the normalisation while several ranks share a batch; see `sync_norm.synchronised`.
TOGETHER: list[Callable[[_BatchNorm, Tensor], Tensor]] = []


class _BatchNorm(_Tracked):
    """Base of the batch norms, which differ in the shapes of their inputs."""

    def forward(self, input: Tensor) -> Tensor:
        shape = tuple(input.shape)
        if len(shape) not in self.dims or shape[1] != self.num_features:
            self._check(input, 1)
        training = self.training or self.running_mean is None
        if TOGETHER and training:
            return TOGETHER[-1](self, input)
        return F.batch_norm(
            input, self.running_mean, self.running_var, self.weight, self.bias, training, self._counted(), self.eps
        )


class BatchNorm1d(_BatchNorm):
    """Batch normalisation of (N, C) or (N, C, L) over all but the channels (Ioffe and Szegedy 2015).

    In training it uses the statistics of the batch, and moves `running_mean` and `running_var` (unbiased) towards them
    by `momentum`; in evaluation it uses the running statistics.

    Args:
        num_features: channels.
        eps: added to the variance.
        momentum: weight of a new batch in the running statistics; None for their plain average.
        affine: whether a scale and a shift are learned.
        track_running_stats: if False, the statistics of the batch are used in evaluation as well.

    Example:
        >>> import glassgrad as gg
        >>> gg.nn.BatchNorm1d(1)(gg.tensor([[1.0], [3.0]])).detach()
        tensor([[-1.],
                [ 1.]])
    """

    dims = (2, 3)


class BatchNorm2d(_BatchNorm):
    """Batch normalisation of (N, C, H, W) over all but the channels; see `BatchNorm1d`.

    Example:
        >>> import glassgrad as gg
        >>> gg.nn.BatchNorm2d(3)(gg.zeros(2, 3, 5, 5)).shape
        (2, 3, 5, 5)
    """

    dims = (4,)


class BatchNorm3d(_BatchNorm):
    """Batch normalisation of (N, C, D, H, W) over all but the channels; see `BatchNorm1d`.

    Example:
        >>> import glassgrad as gg
        >>> gg.nn.BatchNorm3d(3)(gg.zeros(2, 3, 4, 5, 5)).shape
        (2, 3, 4, 5, 5)
    """

    dims = (5,)


class _InstanceNorm(_Tracked):
    """Base of the instance norms."""

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
        device: Device = None,
        dtype: DType = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)

    def forward(self, input: Tensor) -> Tensor:
        alone = len(input.shape) == self.dims[0]
        x = input[None] if alone else input
        if len(x.shape) != self.dims[1] or (self.affine and x.shape[1] != self.num_features):
            self._check(input, 0 if alone else 1)
        own = self.training or self.running_mean is None
        y = F.instance_norm(
            x, self.running_mean, self.running_var, self.weight, self.bias, own, self.momentum or 0.0, self.eps
        )
        return y[0] if alone else y


class InstanceNorm1d(_InstanceNorm):
    """Normalises each channel of each example of (N, C, L) or (C, L) (Ulyanov et al. 2016).

    Example:
        >>> import glassgrad as gg
        >>> gg.nn.InstanceNorm1d(1)(gg.tensor([[[1.0, 3.0]]]))
        tensor([[[-1.,  1.]]])
    """

    dims = (2, 3)


class InstanceNorm2d(_InstanceNorm):
    """Normalises each channel of each example of (N, C, H, W) or (C, H, W) (Ulyanov et al. 2016).

    Example:
        >>> import glassgrad as gg
        >>> gg.nn.InstanceNorm2d(3)(gg.zeros(2, 3, 5, 5)).shape
        (2, 3, 5, 5)
    """

    dims = (3, 4)


class InstanceNorm3d(_InstanceNorm):
    """Normalises each channel of each example of (N, C, D, H, W) or (C, D, H, W) (Ulyanov et al. 2016).

    Example:
        >>> import glassgrad as gg
        >>> gg.nn.InstanceNorm3d(3)(gg.zeros(2, 3, 4, 5, 5)).shape
        (2, 3, 4, 5, 5)
    """

    dims = (4, 5)


def _sizes(normalized_shape: Ints) -> tuple[int, ...]:
    return (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)


class LayerNorm(_Scaled):
    """Normalises over the last dimensions, `normalized_shape` (Ba et al. 2016).

    Args:
        normalized_shape: sizes of the last dimensions, or of the last one.
        eps: added to the variance.
        elementwise_affine: whether a scale is learned for each element.
        bias: whether a shift is learned too.

    Example:
        >>> import glassgrad as gg
        >>> gg.nn.LayerNorm(2)(gg.tensor([[1.0, 3.0]])).detach()
        tensor([[-1.,  1.]])
    """

    def __init__(
        self,
        normalized_shape: Ints,
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        device: Device = None,
        dtype: DType = None,
    ) -> None:
        devices.check(device)
        super().__init__()
        self.normalized_shape = _sizes(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        self._learn(self.normalized_shape, elementwise_affine, bias, dtype)

    def forward(self, input: TensorLike) -> Tensor:
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        bias = self.bias is not None
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}, bias={bias}"


class RMSNorm(Module):
    """Divides by the root mean square over the last dimensions (Zhang and Sennrich 2019).

    `eps` defaults to the machine epsilon of the input's dtype.

    Example:
        >>> import glassgrad as gg
        >>> gg.nn.RMSNorm(2)(gg.tensor([[3.0, 4.0]])).detach()
        tensor([[0.8485, 1.1314]])
    """

    _shown = "{normalized_shape}, eps={eps}, elementwise_affine={elementwise_affine}"

    def __init__(
        self,
        normalized_shape: Ints,
        eps: float | None = None,
        elementwise_affine: bool = True,
        device: Device = None,
        dtype: DType = None,
    ) -> None:
        devices.check(device)
        super().__init__()
        self.normalized_shape = _sizes(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        scale = Parameter(creation.ones(self.normalized_shape, dtype=dtype).array) if elementwise_affine else None
        self.weight = scale

    def reset_parameters(self) -> None:
        """Set the scale to 1."""
        if self.weight is not None:
            init.ones_(self.weight)

    def forward(self, input: Tensor) -> Tensor:
        return F.rms_norm(input, self.normalized_shape, self.weight, self.eps)


class GroupNorm(_Scaled):
    """Normalises each example of (N, C, ...) over groups of channels (Wu and He 2018).

    Example:
        >>> import glassgrad as gg
        >>> gg.nn.GroupNorm(2, 6)(gg.zeros(4, 6, 5, 5)).shape
        (4, 6, 5, 5)
    """

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        device: Device = None,
        dtype: DType = None,
        *,
        bias: bool = True,
    ) -> None:
        devices.check(device)
        super().__init__()
        if num_groups <= 0 or num_channels % num_groups:
            raise bad_option("GroupNorm", "num_channels", num_channels, f"a multiple of num_groups={num_groups}")
        self.num_groups = num_groups
        self.num_channels = num_channels
        self.eps = eps
        self.affine = affine
        self._learn(num_channels, affine, bias, dtype)

    def forward(self, input: Tensor) -> Tensor:
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        bias = self.bias is not None
        return f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}, bias={bias}"


class LocalResponseNorm(Module):
    """Divides by a power of the mean square of neighbouring channels (Krizhevsky et al. 2012).

    Example:
        >>> import glassgrad as gg
        >>> gg.nn.LocalResponseNorm(2)(gg.ones(1, 3, 1)).shape
        (1, 3, 1)
    """

    _shown = "{size}, alpha={alpha}, beta={beta}, k={k}"

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> None:
        super().__init__()
        self.size = size
        self.alpha = alpha
        self.beta = beta
        self.k = k

    def forward(self, input: Tensor) -> Tensor:
        return F.local_response_norm(input, self.size, self.alpha, self.beta, self.k)


__all__ = ["BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "GroupNorm", "InstanceNorm1d", "InstanceNorm2d"]
__all__ += ["InstanceNorm3d", "LayerNorm", "LocalResponseNorm", "RMSNorm"]
