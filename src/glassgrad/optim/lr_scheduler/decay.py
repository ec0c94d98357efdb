"""Schedules that change the rate stepwise, linearly, by a power or exponentially."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable
from typing import Any

from glassgrad.ops.core import bad_option
from glassgrad.optim.lr_scheduler.base import LRScheduler
from glassgrad.optim.optimizer import Optimizer


class StepLR(LRScheduler):
    """lr *= gamma every `step_size` steps.

    Example:
        >>> import glassgrad as gg
        >>> optimizer = gg.optim.SGD(gg.nn.Linear(1, 1).parameters(), lr=1.0)
        >>> schedule = gg.optim.lr_scheduler.StepLR(optimizer, step_size=2)
        >>> rates = []
        >>> for _ in range(5):
        ...     rates.append(round(schedule.get_last_lr()[0], 3))
        ...     optimizer.step()
        ...     schedule.step()
        >>> rates
        [1.0, 1.0, 0.1, 0.1, 0.01]
    """

    def __init__(self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1) -> None:
        self.step_size = step_size
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def rate(self, lr: float, base: float) -> float:
        return lr if self.last_epoch == 0 or self.last_epoch % self.step_size else lr * self.gamma

    def closed(self, base: float) -> float:
        return base * self.gamma ** (self.last_epoch // self.step_size)


class MultiStepLR(LRScheduler):
    """lr *= gamma at each of the steps `milestones`.

    Example:
        >>> import glassgrad as gg
        >>> optimizer = gg.optim.SGD(gg.nn.Linear(1, 1).parameters(), lr=1.0)
        >>> schedule = gg.optim.lr_scheduler.MultiStepLR(optimizer, milestones=[1, 3])
        >>> rates = []
        >>> for _ in range(5):
        ...     rates.append(round(schedule.get_last_lr()[0], 3))
        ...     optimizer.step()
        ...     schedule.step()
        >>> rates
        [1.0, 0.1, 0.1, 0.01, 0.01]
    """

    def __init__(
        self, optimizer: Optimizer, milestones: Iterable[int], gamma: float = 0.1, last_epoch: int = -1
    ) -> None:
        self.milestones = Counter(milestones)
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def rate(self, lr: float, base: float) -> float:
        return lr * self.gamma ** self.milestones.get(self.last_epoch, 0)

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        super().load_state_dict(state_dict)
        self.milestones = Counter({int(step): count for step, count in self.milestones.items()})  # JSON has no int keys

    def closed(self, base: float) -> float:
        return base * self.gamma ** bisect_right(sorted(self.milestones.elements()), self.last_epoch)


class ConstantLR(LRScheduler):
    """base * factor for the first `total_iters` steps, base afterwards.

    Example:
        >>> import glassgrad as gg
        >>> optimizer = gg.optim.SGD(gg.nn.Linear(1, 1).parameters(), lr=1.0)
        >>> schedule = gg.optim.lr_scheduler.ConstantLR(optimizer, factor=0.5, total_iters=2)
        >>> rates = []
        >>> for _ in range(5):
        ...     rates.append(round(schedule.get_last_lr()[0], 3))
        ...     optimizer.step()
        ...     schedule.step()
        >>> rates
        [0.5, 0.5, 1.0, 1.0, 1.0]
    """

    def __init__(self, optimizer: Optimizer, factor: float = 1 / 3, total_iters: int = 5, last_epoch: int = -1) -> None:
        _check_factor("ConstantLR", "factor", factor)
        self.factor = factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def rate(self, lr: float, base: float) -> float:
        if self.last_epoch == 0:
            return lr * self.factor
        return lr / self.factor if self.last_epoch == self.total_iters else lr

    def closed(self, base: float) -> float:
        return base * (1 if self.last_epoch >= self.total_iters else self.factor)


def _check_factor(owner: str, name: str, given: float) -> None:
    if not 0 <= given <= 1 or (name == "start_factor" and given == 0):
        raise bad_option(owner, name, given, "a number above 0 and up to 1")


class LinearLR(LRScheduler):
    """base times a factor that goes from `start_factor` to `end_factor` in `total_iters` steps, then stays there.

    Example:
        >>> import glassgrad as gg
        >>> optimizer = gg.optim.SGD(gg.nn.Linear(1, 1).parameters(), lr=1.0)
        >>> schedule = gg.optim.lr_scheduler.LinearLR(optimizer, start_factor=0.25, total_iters=3)
        >>> rates = []
        >>> for _ in range(5):
        ...     rates.append(round(schedule.get_last_lr()[0], 3))
        ...     optimizer.step()
        ...     schedule.step()
        >>> rates
        [0.25, 0.5, 0.75, 1.0, 1.0]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        start_factor: float = 1 / 3,
        end_factor: float = 1.0,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        _check_factor("LinearLR", "start_factor", start_factor)
        _check_factor("LinearLR", "end_factor", end_factor)
        self.start_factor = start_factor
        self.end_factor = end_factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def _factor(self, step: int) -> float:
        done = min(step, self.total_iters) / self.total_iters
        return self.start_factor + (self.end_factor - self.start_factor) * done

    def rate(self, lr: float, base: float) -> float:
        if self.last_epoch == 0:
            return lr * self.start_factor
        if self.is_initial or self.last_epoch > self.total_iters:
            return lr
        return lr * (self._factor(self.last_epoch) / self._factor(self.last_epoch - 1))

    def closed(self, base: float) -> float:
        return base * self._factor(self.last_epoch)


class ExponentialLR(LRScheduler):
    """lr *= gamma every step.

    Example:
        >>> import glassgrad as gg
        >>> optimizer = gg.optim.SGD(gg.nn.Linear(1, 1).parameters(), lr=1.0)
        >>> schedule = gg.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.5)
        >>> rates = []
        >>> for _ in range(5):
        ...     rates.append(round(schedule.get_last_lr()[0], 3))
        ...     optimizer.step()
        ...     schedule.step()
        >>> rates
        [1.0, 0.5, 0.25, 0.125, 0.062]
    """

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def rate(self, lr: float, base: float) -> float:
        return lr if self.is_initial else lr * self.gamma

    def closed(self, base: float) -> float:
        return base * self.gamma**self.last_epoch


class PolynomialLR(LRScheduler):
    """base * (1 - step / total_iters)**power, 0 afterwards.

    Example:
        >>> import glassgrad as gg
        >>> optimizer = gg.optim.SGD(gg.nn.Linear(1, 1).parameters(), lr=1.0)
        >>> schedule = gg.optim.lr_scheduler.PolynomialLR(optimizer, total_iters=4)
        >>> rates = []
        >>> for _ in range(5):
        ...     rates.append(round(schedule.get_last_lr()[0], 3))
        ...     optimizer.step()
        ...     schedule.step()
        >>> rates
        [1.0, 0.75, 0.5, 0.25, 0.0]
    """

    def __init__(self, optimizer: Optimizer, total_iters: int = 5, power: float = 1.0, last_epoch: int = -1) -> None:
        self.total_iters = total_iters
        self.power = power
        super().__init__(optimizer, last_epoch)

    def _left(self, step: int) -> float:
        return 1 - min(step, self.total_iters) / self.total_iters

    def rate(self, lr: float, base: float) -> float:
        if self.is_initial or self.last_epoch > self.total_iters:
            return lr
        return float(lr * (self._left(self.last_epoch) / self._left(self.last_epoch - 1)) ** self.power)

    def closed(self, base: float) -> float:
        return float(base * self._left(self.last_epoch) ** self.power)


__all__ = ["ConstantLR", "ExponentialLR", "LinearLR", "MultiStepLR", "PolynomialLR", "StepLR"]
