"""Schedules along a cosine (Loshchilov and Hutter 2017)."""

from __future__ import annotations

import math

from glassgrad.ops.core import bad_option
from glassgrad.optim.lr_scheduler.base import LRScheduler
from glassgrad.optim.optimizer import Optimizer


def _between(low: float, high: float, done: float) -> float:
    """Return the value of a half cosine from `high` to `low`."""
    return low + (high - low) * (1 + math.cos(math.pi * done)) / 2


class CosineAnnealingLR(LRScheduler):
    """Half a cosine from base to `eta_min` in `T_max` steps, and back in the same number of steps.

    Example:
        >>> import glassgrad as gg
        >>> optimizer = gg.optim.SGD(gg.nn.Linear(1, 1).parameters(), lr=1.0)
        >>> schedule = gg.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=4)
        >>> rates = []
        >>> for _ in range(5):
        ...     rates.append(round(schedule.get_last_lr()[0], 3))
        ...     optimizer.step()
        ...     schedule.step()
        >>> rates
        [1.0, 0.854, 0.5, 0.146, 0.0]
    """

    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1) -> None:
        self.T_max = T_max
        self.eta_min = eta_min
        super().__init__(optimizer, last_epoch)

    def rate(self, lr: float, base: float) -> float:
        step = self.last_epoch
        if self.is_initial:
            return lr
        if (step - 1 - self.T_max) % (2 * self.T_max) == 0:  # at the lowest point, a factor cannot raise the rate
            return lr + (base - self.eta_min) * (1 - math.cos(math.pi / self.T_max)) / 2
        now, before = (1 + math.cos(math.pi * n / self.T_max) for n in (step, step - 1))
        return self.eta_min + (lr - self.eta_min) * now / before

    def closed(self, base: float) -> float:
        return _between(self.eta_min, base, self.last_epoch / self.T_max)


class CosineAnnealingWarmRestarts(LRScheduler):
    """Half a cosine from base to `eta_min` in `T_0` steps, then restarts, each `T_mult` times as long.

    `step(epoch)` also takes fractions, to set the rate within an epoch.

    Example:
        >>> import glassgrad as gg
        >>> optimizer = gg.optim.SGD(gg.nn.Linear(1, 1).parameters(), lr=1.0)
        >>> schedule = gg.optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, T_0=2)
        >>> rates = []
        >>> for _ in range(5):
        ...     rates.append(round(schedule.get_last_lr()[0], 3))
        ...     optimizer.step()
        ...     schedule.step()
        >>> rates
        [1.0, 0.5, 1.0, 0.5, 1.0]
    """

    def __init__(
        self, optimizer: Optimizer, T_0: int, T_mult: int = 1, eta_min: float = 0.0, last_epoch: int = -1
    ) -> None:
        for name, given in (("T_0", T_0), ("T_mult", T_mult)):
            if given < 1 or int(given) != given:
                raise bad_option("CosineAnnealingWarmRestarts", name, given, "a whole number of at least 1")
        self.T_0 = T_0
        self.T_mult = T_mult
        self.eta_min = eta_min
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        return [_between(self.eta_min, base, self.T_cur / self.T_i) for base in self.base_lrs]

    def step(self, epoch: float | None = None) -> None:
        """Advance by one step, or to `epoch`."""
        self._take_in_groups()
        self._step_count += 1
        at = self.last_epoch + 1 if epoch is None else epoch
        self.T_cur, self.T_i = self._place(at)
        self.last_epoch = math.floor(at)
        self._set(self.get_lr())

    def _place(self, at: float) -> tuple[float, int]:
        """Return the position in the current cosine and its length."""
        if self.T_mult == 1:
            return at % self.T_0, self.T_0
        turn = int(math.log(at / self.T_0 * (self.T_mult - 1) + 1, self.T_mult) + 1e-12)
        start = self.T_0 * (self.T_mult**turn - 1) / (self.T_mult - 1)
        return at - start, self.T_0 * self.T_mult**turn


class WarmupCosineLR(LRScheduler):
    """Linear warm-up from `start_factor` * base in `warmup_steps`, then half a cosine to `eta_min` at `total_steps`.

    PyTorch needs a `SequentialLR` of two schedules for this. The rate stays at `eta_min` afterwards.

    Example:
        >>> import glassgrad as gg
        >>> optimizer = gg.optim.SGD(gg.nn.Linear(1, 1).parameters(), lr=1.0)
        >>> schedule = gg.optim.lr_scheduler.WarmupCosineLR(optimizer, warmup_steps=2, total_steps=4)
        >>> rates = []
        >>> for _ in range(5):
        ...     rates.append(round(schedule.get_last_lr()[0], 3))
        ...     optimizer.step()
        ...     schedule.step()
        >>> rates
        [0.0, 0.5, 1.0, 0.5, 0.0]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        warmup_steps: int,
        total_steps: int,
        eta_min: float = 0.0,
        start_factor: float = 0.0,
        last_epoch: int = -1,
    ) -> None:
        if not 0 <= warmup_steps < total_steps:
            raise bad_option(
                "WarmupCosineLR", "warmup_steps", warmup_steps, f"at least 0 and less than total_steps={total_steps}"
            )
        self.warmup_steps = warmup_steps
        self.total_steps = total_steps
        self.eta_min = eta_min
        self.start_factor = start_factor
        super().__init__(optimizer, last_epoch)

    def rate(self, lr: float, base: float) -> float:
        return self.closed(base)

    def closed(self, base: float) -> float:
        step = min(self.last_epoch, self.total_steps)
        if step < self.warmup_steps:
            return base * (self.start_factor + (1 - self.start_factor) * step / self.warmup_steps)
        done = (step - self.warmup_steps) / (self.total_steps - self.warmup_steps)
        return _between(self.eta_min, base, done)


__all__ = ["CosineAnnealingLR", "CosineAnnealingWarmRestarts", "WarmupCosineLR"]
