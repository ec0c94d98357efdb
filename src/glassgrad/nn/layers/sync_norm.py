"""Batch norm over the batches of all ranks together."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from glassgrad import errors
from glassgrad.base import provenance
from glassgrad.distributed import primitives, world
from glassgrad.engine.mode import no_grad
from glassgrad.engine.tensor import Tensor
from glassgrad.engine.tensors.devices import Device, DType
from glassgrad.nn.functional.norm import _blend
from glassgrad.nn.layers.norm import TOGETHER, _BatchNorm
from glassgrad.nn.module import Module
from glassgrad.ops import elementwise as ew
from glassgrad.ops.shape import cat


class SyncBatchNorm(_BatchNorm):
    """Batch normalisation of (N, C, ...), of any number of dimensions, over the batches of all ranks together.

    In training, mean and variance are computed over the rows of all ranks, and gradients flow through both to all
    ranks. Ranks may have different numbers of rows. It takes two reductions forward and two backward, because the
    variance is computed from centred values. Before `init_process_group`, and outside training, it equals `BatchNorm1d`
    and so on.

    Args:
        num_features: channels.
        eps: added to the variance.
        momentum: weight of a new batch in the running statistics; None for their plain average.
        affine: whether a scale and a shift are learned.
        track_running_stats: if False, the statistics of the batch are used outside training as well.
        process_group: the ranks; by default all.

    Raises:
        ShapeError: a single value for each channel on all ranks together, which has no variance.

    Example:
        >>> import glassgrad as gg
        >>> model = gg.nn.Sequential(gg.nn.Linear(2, 3), gg.nn.BatchNorm1d(3))
        >>> gg.nn.SyncBatchNorm.convert_sync_batchnorm(model)[1](gg.zeros(4, 3)).shape
        (4, 3)
    """

    dims = (2, 3, 4, 5)

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        process_group: world.ProcessGroup | None = None,
        device: Device = None,
        dtype: DType = None,
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype)
        self.process_group = process_group

    def forward(self, input: Tensor) -> Tensor:
        group = self.process_group if self.process_group is not None else world.group.WORLD
        training = self.training or self.running_mean is None
        if group is None or group.size() == 1 or not training:
            return super().forward(input)
        return _over_all(self, input, group)

    @classmethod
    def convert_sync_batchnorm(cls, module: Module, process_group: world.ProcessGroup | None = None) -> Module:
        """Return the module with each batch norm replaced by a layer of this class with the same state."""
        if isinstance(module, _BatchNorm) and not isinstance(module, cls):
            made = cls(module.num_features, module.eps, module.momentum, module.affine, module.track_running_stats)
            made.process_group, made.training = process_group, module.training
            for name in ("weight", "bias", "running_mean", "running_var", "num_batches_tracked"):
                setattr(made, name, getattr(module, name))
            return made
        for name, child in module.named_children():
            turned = cls.convert_sync_batchnorm(child, process_group)
            if turned is not child:
                module.register_module(name, turned)
        return module


def _over_all(layer: _BatchNorm, input: Tensor, group: world.ProcessGroup | None) -> Tensor:
    """Normalise by the rows of all ranks of a group."""
    shape = tuple(input.shape)
    if len(shape) not in layer.dims or shape[1] != layer.num_features:
        layer._check(input, 1)
    momentum = layer._counted()
    axes, beside = (0, *range(2, len(shape))), (1, shape[1], *(1,) * (len(shape) - 2))
    key = primitives.register(group)
    rows = np.full(1, math.prod(shape) // shape[1], input.dtype)
    totals = primitives.all_reduce_p(cat([input.sum(axes), Tensor(rows)]), group=key, op="SUM")
    count = totals[-1].detach()
    mean = totals[:-1] / count
    centred = input - mean.reshape(beside)
    var = primitives.all_reduce_p((centred * centred).sum(axes), group=key, op="SUM") / count
    if isinstance(count.array, np.ndarray) and count.item() == 1:
        raise errors.ONE_VALUE_PER_CHANNEL(given=shape, where=provenance.here())
    if layer.running_mean is not None:
        with no_grad():
            _blend(layer.running_mean, mean.detach(), 1 - momentum, momentum)
            _blend(layer.running_var, (var * (count / (count - 1))).detach(), 1 - momentum, momentum)
    scale = ew.rsqrt(var + layer.eps)
    if layer.weight is not None:
        scale = scale * layer.weight
    y = centred * scale.reshape(beside)
    return y if layer.bias is None else y + layer.bias.reshape(beside)


@contextmanager
def synchronised(group: world.ProcessGroup | None) -> Iterator[None]:
    """Let every batch norm in training mode normalise as `SyncBatchNorm` does, within the block."""
    TOGETHER.append(lambda layer, x: _over_all(layer, x, group))
    try:
        yield
    finally:
        TOGETHER.pop()


__all__ = ["SyncBatchNorm"]
