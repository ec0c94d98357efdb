"""Schedules that go up and down while the momentum goes down and up (Smith 2017; Smith and Topin 2018)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from glassgrad import errors
from glassgrad.ops.core import bad_option
from glassgrad.optim.lr_scheduler.base import LRScheduler, for_each_group, for_new_group
from glassgrad.optim.optimizer import Optimizer, Options


class _Momentum:
    """Reads and writes the momentum of groups: `momentum`, or the first of `betas`."""

    def __init__(self, optimizer: Optimizer, owner: str) -> None:
        self.optimizer = optimizer
        if not any(name in optimizer.defaults for name in ("momentum", "betas")):
            raise bad_option(owner, "cycle_momentum", True, f"False, as {type(optimizer).__name__} has no momentum")
        self.as_beta = "betas" in optimizer.defaults
        optimizer.moving |= {"betas" if self.as_beta else "momentum"}

    def write(self, values: Sequence[float]) -> None:
        for group, value in zip(self.optimizer.param_groups, values, strict=True):
            if self.as_beta:
                group["betas"] = (value, *group["betas"][1:])
            else:
                group["momentum"] = value


class _InCycles(LRScheduler):
    """The data per group of a schedule with a highest rate and a momentum.

    Attributes:
        max_lrs, max_momentums, base_momentums: one for each group.
    """

    cycle_momentum: bool
    max_lrs: list[float]
    base_momentums: list[float]
    max_momentums: list[float]
    _given: dict[str, Any]
    _momentum: _Momentum

    def _take_momentum(
        self, optimizer: Optimizer, base: float | Sequence[float], highest: float | Sequence[float]
    ) -> None:
        owner = type(self).__name__
        self._momentum = _Momentum(optimizer, owner)
        self.base_momentums = for_each_group(base, optimizer, owner, "base_momentum")
        self.max_momentums = for_each_group(highest, optimizer, owner, "max_momentum")
        self._given |= {"base_momentum": base, "max_momentum": highest}

    def _new(self, name: str) -> float:
        return float(for_new_group(self._given[name], type(self).__name__, name))

    def join(self, group: Options) -> float:
        kept = [("max_lr", self.max_lrs)]
        if self.cycle_momentum:
            kept += [("base_momentum", self.base_momentums), ("max_momentum", self.max_momentums)]
        values = [self._new(name) for name, _ in kept]
        for (_, numbers), value in zip(kept, values, strict=True):
            numbers.append(value)
        return super().join(group)

    def state_dict(self) -> dict[str, Any]:
        return {name: value for name, value in super().state_dict().items() if name != "_momentum"}


class CyclicLR(_InCycles):
    """Triangles between `base_lr` and `max_lr`.

    Args:
        optimizer: the optimizer whose groups are changed.
        base_lr, max_lr: lowest and highest rate, for all groups or one for each.
        step_size_up, step_size_down: lengths of the two halves of a cycle.
        mode: "triangular", "triangular2" (halves the height each cycle) or "exp_range" (times gamma**step).
        gamma: see `mode`.
        scale_fn: a function that scales the height, instead of `mode`.
        scale_mode: whether `scale_fn` gets the number of the "cycle" or of the "iterations".
        cycle_momentum: whether the momentum moves the opposite way, between `max_momentum` and `base_momentum`.
        base_momentum, max_momentum: see `cycle_momentum`.
        last_epoch: as in `LRScheduler`.

    Example:
        >>> import glassgrad as gg
        >>> optimizer = gg.optim.SGD(gg.nn.Linear(1, 1).parameters(), lr=1.0)
        >>> schedule = gg.optim.lr_scheduler.CyclicLR(optimizer, base_lr=0.1, max_lr=0.3, step_size_up=2)
        >>> rates = []
        >>> for _ in range(5):
        ...     rates.append(round(schedule.get_last_lr()[0], 3))
        ...     optimizer.step()
        ...     schedule.step()
        >>> rates
        [0.1, 0.2, 0.3, 0.2, 0.1]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        base_lr: float | Sequence[float],
        max_lr: float | Sequence[float],
        step_size_up: int = 2000,
        step_size_down: int | None = None,
        mode: str = "triangular",
        gamma: float = 1.0,
        scale_fn: Callable[[float], float] | None = None,
        scale_mode: str = "cycle",
        cycle_momentum: bool = True,
        base_momentum: float | Sequence[float] = 0.8,
        max_momentum: float | Sequence[float] = 0.9,
        last_epoch: int = -1,
    ) -> None:
        if scale_fn is None and mode not in {"triangular", "triangular2", "exp_range"}:
            raise bad_option("CyclicLR", "mode", mode, "'triangular', 'triangular2' or 'exp_range'")
        self.max_lrs = for_each_group(max_lr, optimizer, "CyclicLR", "max_lr")
        self.up = float(step_size_up)
        self.total_size = self.up + float(step_size_up if step_size_down is None else step_size_down)
        self.mode = mode
        self.gamma = gamma
        self.scale_fn = scale_fn
        self.scale_mode = scale_mode
        self.cycle_momentum = cycle_momentum
        starts = for_each_group(base_lr, optimizer, "CyclicLR", "base_lr")
        self._given = {"base_lr": base_lr, "max_lr": max_lr}
        if last_epoch == -1:
            for group, start in zip(optimizer.param_groups, starts, strict=True):
                group["lr"] = group["initial_lr"] = start
        if cycle_momentum:
            self._take_momentum(optimizer, base_momentum, max_momentum)
        super().__init__(optimizer, last_epoch)
        self.base_lrs = starts

    def _height(self, cycle: int) -> float:
        if self.scale_fn is not None:
            return self.scale_fn(cycle if self.scale_mode == "cycle" else self.last_epoch)
        if self.mode == "triangular2":
            return 1 / 2.0 ** (cycle - 1)
        return self.gamma**self.last_epoch if self.mode == "exp_range" else 1.0

    def get_lr(self) -> list[float]:
        cycle = math.floor(1 + self.last_epoch / self.total_size)
        done = (self.last_epoch - (cycle - 1) * self.total_size) / self.total_size
        rising = self.up / self.total_size
        place = done / rising if done <= rising else (done - 1) / (rising - 1)
        share = place * self._height(cycle)
        if self.cycle_momentum:
            ends = zip(self.max_momentums, self.base_momentums, strict=True)
            self._momentum.write([most - (most - least) * share for most, least in ends])
        return [low + (high - low) * share for low, high in zip(self.base_lrs, self.max_lrs, strict=True)]

    def join(self, group: Options) -> float:
        group["lr"] = group["initial_lr"] = self._new("base_lr")
        return super().join(group)


class OneCycleLR(_InCycles):
    """Up from `max_lr` / div_factor to `max_lr`, then down to nearly 0, in one cycle over the whole training.

    Args:
        optimizer: the optimizer whose groups are changed.
        max_lr: the highest rate, for all groups or one for each.
        total_steps: steps of the training, or `epochs` times `steps_per_epoch`.
        epochs, steps_per_epoch: see `total_steps`.
        pct_start: fraction of the steps in which the rate rises.
        anneal_strategy: "cos" or "linear".
        cycle_momentum: whether the momentum moves the opposite way, between `max_momentum` and `base_momentum`.
        base_momentum, max_momentum: see `cycle_momentum`.
        div_factor: max_lr / the first rate.
        final_div_factor: the first rate / the last rate.
        three_phase: fall to the first rate in as many steps as up, then to the last one.
        last_epoch: as in `LRScheduler`.

    Example:
        >>> import glassgrad as gg
        >>> optimizer = gg.optim.SGD(gg.nn.Linear(1, 1).parameters(), lr=1.0)
        >>> schedule = gg.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=1.0, total_steps=5)
        >>> rates = []
        >>> for _ in range(5):
        ...     rates.append(round(schedule.get_last_lr()[0], 3))
        ...     optimizer.step()
        ...     schedule.step()
        >>> rates
        [0.04, 0.95, 0.611, 0.188, 0.0]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        max_lr: float | Sequence[float],
        total_steps: int | None = None,
        epochs: int | None = None,
        steps_per_epoch: int | None = None,
        pct_start: float = 0.3,
        anneal_strategy: str = "cos",
        cycle_momentum: bool = True,
        base_momentum: float | Sequence[float] = 0.85,
        max_momentum: float | Sequence[float] = 0.95,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        three_phase: bool = False,
        last_epoch: int = -1,
    ) -> None:
        if total_steps is None:
            if epochs is None or steps_per_epoch is None:
                raise self._wrong("total_steps", None, "a number, or epochs and steps_per_epoch")
            total_steps = epochs * steps_per_epoch
        if total_steps <= 0:
            raise self._wrong("total_steps", total_steps, "at least 1")
        if not 0 <= pct_start <= 1:
            raise self._wrong("pct_start", pct_start, "a share between 0 and 1")
        if anneal_strategy not in {"cos", "linear"}:
            raise self._wrong("anneal_strategy", anneal_strategy, "'cos' or 'linear'")
        self.total_steps = total_steps
        self.anneal_strategy = anneal_strategy
        self.cycle_momentum = cycle_momentum
        self.max_lrs = for_each_group(max_lr, optimizer, "OneCycleLR", "max_lr")
        self._given = {"max_lr": max_lr}
        self.div_factor, self.final_div_factor = div_factor, final_div_factor
        self.first_lrs = [rate / div_factor for rate in self.max_lrs]
        self.final_lrs = [rate / final_div_factor for rate in self.first_lrs]
        peak = float(pct_start * total_steps) - 1
        self.turns = [peak, 2 * peak, total_steps - 1.0] if three_phase else [peak, total_steps - 1.0]
        if last_epoch == -1:
            for group, first in zip(optimizer.param_groups, self.first_lrs, strict=True):
                group["initial_lr"] = first
        if cycle_momentum:
            self._take_momentum(optimizer, base_momentum, max_momentum)
        super().__init__(optimizer, last_epoch)

    @staticmethod
    def _wrong(name: str, given: object, expected: str) -> Exception:
        return bad_option("OneCycleLR", name, given, expected)

    def _way(self, start: float, end: float, done: float) -> float:
        if self.anneal_strategy == "linear":
            return start + (end - start) * done
        return end + (start - end) * (1 + math.cos(math.pi * done)) / 2

    def _phase(self) -> tuple[int, float]:
        """Return the phase of this step, and its completed fraction."""
        before = 0.0
        for phase, turn in enumerate(self.turns):
            if self.last_epoch <= turn or phase == len(self.turns) - 1:
                break
            before = turn
        # A phase of one step begins at its end.
        return phase, (self.last_epoch - before) / (turn - before) if turn > before else 1.0

    def get_lr(self) -> list[float]:
        if self.last_epoch > self.total_steps:
            raise errors.SCHEDULE_OVER(owner="OneCycleLR", step=self.last_epoch, total=self.total_steps)
        phase, done = self._phase()
        if self.cycle_momentum:
            stations = zip(self.max_momentums, self.base_momentums, strict=True)
            self._momentum.write([self._leg((high, low, high, high), phase, done) for high, low in stations])
        rates = zip(self.first_lrs, self.max_lrs, self.final_lrs, strict=True)
        three = len(self.turns) == 3
        return [
            self._leg((first, most, first, final) if three else (first, most, final), phase, done)
            for first, most, final in rates
        ]

    def _leg(self, stations: Sequence[float], phase: int, done: float) -> float:
        return self._way(stations[phase], stations[phase + 1], done)

    def join(self, group: Options) -> float:
        first = self._new("max_lr") / self.div_factor
        self.first_lrs.append(first)
        self.final_lrs.append(first / self.final_div_factor)
        group["initial_lr"] = first
        return super().join(group)


__all__ = ["CyclicLR", "OneCycleLR"]
