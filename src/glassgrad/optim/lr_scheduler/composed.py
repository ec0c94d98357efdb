"""Schedules of schedules: one after the other, or several at once."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

from glassgrad import errors
from glassgrad.base import provenance
from glassgrad.ops.core import bad_option
from glassgrad.optim.lr_scheduler.base import LRScheduler
from glassgrad.optim.optimizer import Optimizer


class SequentialLR(LRScheduler):
    """One schedule after the other; the next one starts at each of the steps `milestones`.

    Example:
        >>> import glassgrad as gg
        >>> from glassgrad.optim import lr_scheduler
        >>> optimizer = gg.optim.SGD(gg.nn.Linear(1, 1).parameters(), lr=1.0)
        >>> parts = [lr_scheduler.LinearLR(optimizer, 0.5, total_iters=2), lr_scheduler.ExponentialLR(optimizer, 0.1)]
        >>> schedule = lr_scheduler.SequentialLR(optimizer, parts, milestones=[2])
        >>> for _ in range(3):
        ...     optimizer.step()
        ...     schedule.step()
        >>> round(optimizer.param_groups[0]["lr"], 4)
        0.1
    """

    def __init__(
        self, optimizer: Optimizer, schedulers: Sequence[LRScheduler], milestones: Sequence[int], last_epoch: int = -1
    ) -> None:
        if len(milestones) != len(schedulers) - 1:
            raise bad_option(
                "SequentialLR", "milestones", list(milestones), f"{len(schedulers) - 1}, one fewer than schedules"
            )
        if any(one.optimizer is not optimizer for one in schedulers):
            raise errors.ANOTHER_OPTIMIZER(owner="SequentialLR", where=provenance.here())
        self.optimizer = optimizer
        self._schedulers = list(schedulers)
        self._milestones = list(milestones)
        self.last_epoch = last_epoch + 1
        # Each schedule made its first step on construction. The first one repeats it now, the others when they start.
        for group in optimizer.param_groups:
            group["lr"] = group["initial_lr"]
        self._schedulers[0].repeat_step()
        for one in self._schedulers[1:]:
            one.last_epoch -= 1
        self.base_lrs = self._schedulers[0].base_lrs
        self._step_count = 1
        self._last_lr = self._schedulers[0].get_last_lr()

    def step(self, epoch: int | None = None) -> None:
        """Advance by one step."""
        self._step_count += 1
        self.last_epoch += 1
        at = bisect_right(self._milestones, self.last_epoch)
        starts = at > 0 and self._milestones[at - 1] == self.last_epoch
        self._schedulers[at].step(0 if starts else None)
        self._last_lr = self._schedulers[at].get_last_lr()

    def state_dict(self) -> dict[str, Any]:
        """Return the state, including those of the schedules."""
        state = super().state_dict()
        return {**state, "_schedulers": [one.state_dict() for one in self._schedulers]}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load a state from `state_dict()`."""
        inner = state_dict["_schedulers"]
        super().load_state_dict({name: value for name, value in state_dict.items() if name != "_schedulers"})
        for one, state in zip(self._schedulers, inner, strict=True):
            one.load_state_dict(state)


class ChainedScheduler(LRScheduler):
    """Several schedules at once: each changes the rate set by the previous one.

    Example:
        >>> import glassgrad as gg
        >>> from glassgrad.optim import lr_scheduler
        >>> optimizer = gg.optim.SGD(gg.nn.Linear(1, 1).parameters(), lr=1.0)
        >>> parts = [lr_scheduler.ConstantLR(optimizer, 0.1, total_iters=2), lr_scheduler.ExponentialLR(optimizer, 0.9)]
        >>> schedule = lr_scheduler.ChainedScheduler(parts)
        >>> optimizer.step(); schedule.step()
        >>> round(optimizer.param_groups[0]["lr"], 4)
        0.09
    """

    def __init__(self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None = None) -> None:
        if not schedulers:
            raise bad_option("ChainedScheduler", "schedulers", [], "at least one")
        self.optimizer = schedulers[0].optimizer if optimizer is None else optimizer
        if any(one.optimizer is not self.optimizer for one in schedulers):
            raise errors.ANOTHER_OPTIMIZER(owner="ChainedScheduler", where=provenance.here())
        self._schedulers = list(schedulers)
        self._last_lr = [group["lr"] for group in self.optimizer.param_groups]

    def step(self, epoch: int | None = None) -> None:
        """Advance every schedule by one step."""
        for one in self._schedulers:
            one.step()
        self._last_lr = [group["lr"] for group in self.optimizer.param_groups]

    def state_dict(self) -> dict[str, Any]:
        """Return the state, including those of the schedules."""
        return {"_last_lr": self._last_lr, "_schedulers": [one.state_dict() for one in self._schedulers]}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load a state from `state_dict()`."""
        self._last_lr = state_dict["_last_lr"]
        for one, state in zip(self._schedulers, state_dict["_schedulers"], strict=True):
            one.load_state_dict(state)


__all__ = ["ChainedScheduler", "SequentialLR"]
