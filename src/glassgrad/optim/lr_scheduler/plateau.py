"""A schedule that lowers the rate when a metric stops improving."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import SupportsFloat

from glassgrad.ops.core import bad_option
from glassgrad.optim.lr_scheduler.base import LRScheduler, for_each_group, for_new_group
from glassgrad.optim.optimizer import Optimizer


class ReduceLROnPlateau(LRScheduler):
    """lr *= factor when a metric has not improved for more than `patience` steps.

    Args:
        optimizer: the optimizer whose groups are changed.
        mode: "min" if lower is better, "max" if if higher is.
        factor: factor of the rate, less than 1.
        patience: tolerated steps without improvement.
        threshold: the smallest change that counts as an improvement.
        threshold_mode: whether `threshold` is relative to the best ("rel") or absolute ("abs").
        cooldown: steps that are ignored after a change.
        min_lr: the lowest rate, for all groups or one for each.
        eps: smaller changes of the rate are skipped.

    Example:
        >>> import glassgrad as gg
        >>> optimizer = gg.optim.SGD(gg.nn.Linear(1, 1).parameters(), lr=1.0)
        >>> schedule = gg.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=1)
        >>> for loss in (3.0, 2.0, 2.0, 2.0):
        ...     schedule.step(loss)
        >>> optimizer.param_groups[0]["lr"]
        0.1
    """

    def __init__(
        self,
        optimizer: Optimizer,
        mode: str = "min",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        threshold_mode: str = "rel",
        cooldown: int = 0,
        min_lr: float | Sequence[float] = 0.0,
        eps: float = 1e-8,
    ) -> None:
        for name, given, known in (("mode", mode, ("min", "max")), ("threshold_mode", threshold_mode, ("rel", "abs"))):
            if given not in known:
                raise self._wrong(name, given, " or ".join(map(repr, known)))
        if factor >= 1:
            raise self._wrong("factor", factor, "a number below 1")
        self.optimizer = optimizer
        self.mode = mode
        self.factor = factor
        self.patience = patience
        self.threshold = threshold
        self.threshold_mode = threshold_mode
        self.cooldown = cooldown
        self._given = min_lr
        self.min_lrs = for_each_group(min_lr, optimizer, "ReduceLROnPlateau", "min_lr")
        self.eps = eps
        self.last_epoch = 0
        self.best = math.inf if mode == "min" else -math.inf
        self.num_bad_epochs = 0
        self.cooldown_counter = 0
        self._last_lr = [group["lr"] for group in optimizer.param_groups]

    @staticmethod
    def _wrong(name: str, given: object, expected: str) -> Exception:
        return bad_option("ReduceLROnPlateau", name, given, expected)

    def is_better(self, value: float) -> bool:
        """Tell whether a value is better than the best, by more than the threshold."""
        # Before the first value there is no best one to compare with.
        best = 0.0 if math.isinf(self.best) else self.best
        margin = self.threshold * (1 if self.threshold_mode == "abs" else best)
        return value < self.best - margin if self.mode == "min" else value > self.best + margin

    def step(self, metrics: SupportsFloat, epoch: int | None = None) -> None:
        """Take a new value; lower the rates if it is time."""
        value = float(metrics)
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        if self.is_better(value):
            self.best, self.num_bad_epochs = value, 0
        else:
            self.num_bad_epochs += 1
        if self.cooldown_counter > 0:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            self._lower()
            self.cooldown_counter = self.cooldown
            self.num_bad_epochs = 0
        self._last_lr = [group["lr"] for group in self.optimizer.param_groups]

    def _lower(self) -> None:
        while len(self.min_lrs) < len(self.optimizer.param_groups):
            self.min_lrs.append(for_new_group(self._given, "ReduceLROnPlateau", "min_lr"))
        for group, least in zip(self.optimizer.param_groups, self.min_lrs, strict=True):
            lower = max(group["lr"] * self.factor, least)
            if group["lr"] - lower > self.eps:
                group["lr"] = lower


__all__ = ["ReduceLROnPlateau"]
