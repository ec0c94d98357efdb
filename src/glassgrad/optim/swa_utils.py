"""Averages of weights during training (Izmailov et al. 2018; Polyak and Juditsky 1992)."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from glassgrad.base import documents
from glassgrad.engine.mode import no_grad
from glassgrad.engine.tensor import Tensor, make
from glassgrad.engine.tensors import devices
from glassgrad.engine.tensors.devices import Device
from glassgrad.engine.writes import MUTATIONS
from glassgrad.errors.missing import lister
from glassgrad.nn.layers.norm import _BatchNorm
from glassgrad.nn.modes import modes_kept
from glassgrad.nn.module import Module
from glassgrad.nn.parameter import Buffer
from glassgrad.ops.core import Array, bad_option
from glassgrad.optim.lr_scheduler.base import LRScheduler, for_new_group
from glassgrad.optim.optimizer import Optimizer

Average = Callable[[Tensor, Tensor, Array], Array]
MultiAverage = Callable[[list[Tensor], list[Tensor], Array], None]


def get_swa_avg_fn() -> Average:
    """Return the function of the plain average: a + (p - a) / (n + 1).

    Example:
        >>> import glassgrad as gg
        >>> average = gg.optim.swa_utils.get_swa_avg_fn()
        >>> average(gg.tensor(1.0), gg.tensor(2.0), 1)
        tensor(1.5)
    """

    def average(averaged: Tensor, current: Tensor, num_averaged: Array) -> Array:
        return averaged + (current - averaged) / (num_averaged + 1)

    return average


def get_ema_avg_fn(decay: float = 0.999) -> Average:
    """Return the function of the exponential average: decay * a + (1 - decay) * p.

    Example:
        >>> import glassgrad as gg
        >>> average = gg.optim.swa_utils.get_ema_avg_fn(0.9)
        >>> average(gg.tensor(1.0), gg.tensor(2.0), 1)
        tensor(1.1)
    """

    def average(averaged: Tensor, current: Tensor, num_averaged: Array) -> Array:
        return averaged * decay + current * (1 - decay)

    return average


def get_swa_multi_avg_fn() -> MultiAverage:
    """Return the function of the plain average for lists of tensors, in place.

    Example:
        >>> import glassgrad as gg
        >>> from glassgrad.optim.swa_utils import AveragedModel, get_swa_multi_avg_fn
        >>> averaged = AveragedModel(gg.nn.Linear(2, 1), multi_avg_fn=get_swa_multi_avg_fn())
    """

    def average(averaged: list[Tensor], current: list[Tensor], num_averaged: Array) -> None:
        for mean, value in zip(averaged, current, strict=True):
            mean.array += (value.array - mean.array) / (int(num_averaged) + 1)
            MUTATIONS.record(mean.array)

    return average


def get_ema_multi_avg_fn(decay: float = 0.999) -> MultiAverage:
    """Return the function of the exponential average for lists of tensors, in place.

    Example:
        >>> import glassgrad as gg
        >>> from glassgrad.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn
        >>> averaged = AveragedModel(gg.nn.Linear(2, 1), multi_avg_fn=get_ema_multi_avg_fn(0.99))
    """

    def average(averaged: list[Tensor], current: list[Tensor], num_averaged: Array) -> None:
        for mean, value in zip(averaged, current, strict=True):
            mean.array *= decay
            mean.array += (1 - decay) * value.array
            MUTATIONS.record(mean.array)

    return average


class AveragedModel(Module):
    """A copy of a model whose parameters are an average of the model's, updated by `update_parameters`.

    Args:
        model: the model; its copy is the attribute `module`.
        device: accepted for compatibility with PyTorch.
        avg_fn: ``(averaged, current, number of averages so far) -> averaged``; the plain average by default.
        multi_avg_fn: the same for lists of tensors, in place; it takes precedence.
        use_buffers: average running statistics, too; otherwise copy them.

    Example:
        >>> import glassgrad as gg
        >>> model = gg.nn.Linear(1, 1)
        >>> average = gg.optim.swa_utils.AveragedModel(model)
        >>> average.update_parameters(model)  # after each step, or each epoch
        >>> average(gg.ones(1, 1)).shape
        (1, 1)
    """

    def __init__(
        self,
        model: Module,
        device: Device = None,
        avg_fn: Average | None = None,
        multi_avg_fn: MultiAverage | None = None,
        use_buffers: bool = False,
    ) -> None:
        devices.check(device)
        super().__init__()
        self.module = copy.deepcopy(model)
        self.n_averaged = Buffer(np.zeros((), np.int64))
        self.avg_fn = avg_fn
        self.multi_avg_fn = multi_avg_fn
        self.use_buffers = use_buffers

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.module(*args, **kwargs)

    def update_parameters(self, model: Module) -> None:
        """Update the average with the model's parameters."""
        pairs: list[tuple[Tensor, Tensor]] = list(zip(self.module.parameters(), model.parameters(), strict=True))
        buffers: list[tuple[Tensor, Tensor]] = list(zip(self.module.buffers(), model.buffers(), strict=True))
        count = int(self.n_averaged)
        if self.use_buffers:
            pairs += [pair for pair in buffers if pair[0].dtype.kind in "fV"]
        averaged = [make(mean.array, None, False) for mean, _ in pairs]
        current = [make(value.array, None, False) for _, value in pairs]
        if count == 0:
            for mean, value in zip(averaged, current, strict=True):
                _write(mean, value)
        elif self.multi_avg_fn is not None or self.avg_fn is None:
            (self.multi_avg_fn or get_swa_multi_avg_fn())(averaged, current, count)
        else:
            for mean, value in zip(averaged, current, strict=True):
                _write(mean, self.avg_fn(mean, value, count))
        for mean, value in buffers:
            if not self.use_buffers or mean.dtype.kind not in "fV":
                _write(mean, value)
        self.n_averaged.array[...] = count + 1


def _write(target: Tensor, value: Array) -> None:
    target.array[...] = value.array
    MUTATIONS.record(target.array)


def update_bn(loader: Iterable[Any], model: Module, device: Device = None) -> None:
    """Recompute the running statistics of batch norms for averaged weights, over the inputs of a loader.

    The loader may yield inputs, or tuples that start with them.

    Example:
        >>> import glassgrad as gg
        >>> model = gg.nn.Sequential(gg.nn.Linear(2, 3), gg.nn.BatchNorm1d(3))
        >>> gg.optim.swa_utils.update_bn([gg.randn(8, 2), gg.randn(8, 2)], model)
        >>> model[1].num_batches_tracked.item()
        2
    """
    norms = [module for module in model.modules() if isinstance(module, _BatchNorm)]
    if not norms:
        return
    momenta = [norm.momentum for norm in norms]
    for norm in norms:
        norm.reset_running_stats()
        norm.momentum = None  # a plain average over all batches
    try:
        with modes_kept(model), no_grad():
            model.train()
            for batch in loader:
                model(batch[0] if isinstance(batch, list | tuple) else batch)
    finally:
        for norm, momentum in zip(norms, momenta, strict=True):
            norm.momentum = momentum


class SWALR(LRScheduler):
    """From the current rate to `swa_lr` in `anneal_epochs` steps, linearly or along a cosine; then constant.

    Example:
        >>> import glassgrad as gg
        >>> optimizer = gg.optim.SGD(gg.nn.Linear(1, 1).parameters(), lr=1.0)
        >>> schedule = gg.optim.swa_utils.SWALR(optimizer, swa_lr=0.1, anneal_epochs=2, anneal_strategy="linear")
        >>> optimizer.step(); schedule.step()
        >>> round(optimizer.param_groups[0]["lr"], 4)
        0.55
    """

    def __init__(
        self,
        optimizer: Optimizer,
        swa_lr: float | list[float],
        anneal_epochs: int = 10,
        anneal_strategy: str = "cos",
        last_epoch: int = -1,
    ) -> None:
        if anneal_strategy not in {"cos", "linear"}:
            raise bad_option("SWALR", "anneal_strategy", anneal_strategy, "'cos' or 'linear'")
        ends = swa_lr if isinstance(swa_lr, list | tuple) else [swa_lr] * len(optimizer.param_groups)
        for group, end in zip(optimizer.param_groups, ends, strict=True):
            group["swa_lr"] = end
        self._given = swa_lr
        self.anneal_epochs = anneal_epochs
        self.anneal_strategy = anneal_strategy
        super().__init__(optimizer, last_epoch)

    def join(self, group: dict[str, Any]) -> float:
        group.setdefault("swa_lr", for_new_group(self._given, "SWALR", "swa_lr"))
        return super().join(group)

    def _done(self, step: int) -> float:
        share = max(0.0, min(1.0, step / max(1, self.anneal_epochs)))
        return (1 - math.cos(math.pi * share)) / 2 if self.anneal_strategy == "cos" else share

    def get_lr(self) -> list[float]:
        # Start from the previous rate, since another schedule may have set it.
        step = self.last_epoch if self.anneal_epochs else max(1, self.last_epoch)
        before, now = self._done(max(0, step - 1)), self._done(step)
        rates = []
        for group in self.optimizer.param_groups:
            end = group["swa_lr"]
            start = end if before == 1 else (group["lr"] - before * end) / (1 - before)
            rates.append(now * end + start * (1 - now))
        return rates


__all__ = ["SWALR", "AveragedModel", "get_ema_avg_fn", "get_ema_multi_avg_fn", "get_swa_avg_fn"]
__all__ += ["get_swa_multi_avg_fn", "update_bn"]
__dir__ = lister(__name__)
documents.complete_all(__name__, globals())
