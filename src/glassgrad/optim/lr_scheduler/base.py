"""The base of all schedules, and schedules given by a function."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, cast

from glassgrad import errors
from glassgrad.base import provenance
from glassgrad.engine.mode import MODE, TRACING
from glassgrad.engine.tensor import Tensor
from glassgrad.ops.core import bad_option
from glassgrad.optim.optimizer import Optimizer, Options


def _in_every_call(step: Callable[..., Any]) -> Callable[..., Any]:
    """Make a compiled function repeat the step in every call instead of only once during the trace.

    A step that takes a Tensor cannot be deferred: it runs during the trace, which raises when it reads the value.
    """

    @functools.wraps(step)
    def wrapped(self: LRScheduler, *args: Any, **kwargs: Any) -> Any:
        traced = MODE.flags & TRACING and not any(isinstance(arg, Tensor) for arg in args)
        if traced and MODE.replay is not None:
            return MODE.replay(functools.partial(wrapped, self, *args, **kwargs), self)
        return step(self, *args, **kwargs)

    return wrapped


def is_by_hand(optimizer: object) -> bool:
    """Tell whether an optimizer is from `glassgrad.manual`: it has groups with rates but no tensors."""
    return all(hasattr(optimizer, name) for name in ("param_groups", "step", "parameters"))


class LRScheduler:
    """Sets the rate of every group of an optimizer, once on construction and then at every `step()`.

    A subclass computes a rate from the previous one (`rate`), so schedules can be chained and manual changes of the
    rate persist. If there is a closed formula in the number of steps, it defines `closed`, which `step(epoch)` uses to
    jump.

    Args:
        optimizer: the optimizer whose groups are changed.
        last_epoch: number of the last step of a resumed schedule, else -1.

    Attributes:
        base_lrs: the rates of the groups at the start.
        last_epoch: number of steps made.

    Example:
        >>> import glassgrad as gg
        >>> class Halved(gg.optim.lr_scheduler.LRScheduler):
        ...     def rate(self, lr, base):
        ...         return lr * 0.5 if self.last_epoch else lr
        >>> w = gg.ones(1, requires_grad=True)
        >>> optimizer = gg.optim.SGD([w], lr=0.8)
        >>> schedule = Halved(optimizer)
        >>> w.sum().backward()
        >>> optimizer.step()
        >>> schedule.step()
        >>> optimizer.param_groups[0]["lr"]
        0.4
    """

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "step" in cls.__dict__:
            cls.step = _in_every_call(cls.step)  # type: ignore[method-assign]  # the same signature

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        if not is_by_hand(optimizer) and not isinstance(optimizer, Optimizer):
            raise errors.NOT_AN_OPTIMIZER(
                owner=type(self).__name__, kind=type(optimizer).__name__, where=provenance.here()
            )
        self.optimizer = optimizer
        for group in optimizer.param_groups:
            if last_epoch == -1:
                group.setdefault("initial_lr", group["lr"])
            elif "initial_lr" not in group:
                raise errors.NO_INITIAL_LR(owner=type(self).__name__, where=provenance.here())
        self.base_lrs: list[float] = [group["initial_lr"] for group in optimizer.param_groups]
        self.last_epoch = last_epoch
        self._step_count = 0
        self._last_lr: list[float] = []
        self.step()

    # --- the definition of a schedule -------------------------------------------------------------------

    def rate(self, lr: float, base: float) -> float:
        """Return the rate of step `last_epoch` from the previous one."""
        return lr

    def closed(self, base: float) -> float | None:
        """Return the rate of step `last_epoch` from the initial one; None if there is no formula."""
        return None

    @property
    def is_initial(self) -> bool:
        """Whether this is the constructor's step, which does not change a resumed rate."""
        return self._step_count == 1

    # --- its use ----------------------------------------------------------------------------------------

    def get_lr(self) -> list[float]:
        """Return the rates for step `last_epoch`, one for each group."""
        groups = self.optimizer.param_groups
        return [self.rate(group["lr"], base) for group, base in zip(groups, self.base_lrs, strict=True)]

    def get_last_lr(self) -> list[float]:
        """Return the rates that were set last."""
        return self._last_lr

    @_in_every_call
    def step(self, epoch: int | None = None) -> None:
        """Advance by one step, or to step `epoch`, including groups added to the optimizer in the meantime."""
        self._take_in_groups()
        self._step_count += 1
        if epoch is None:
            self.last_epoch += 1
            rates = self.get_lr()
        else:
            self.last_epoch = epoch
            jumped = [self.closed(base) for base in self.base_lrs]
            rates = self.get_lr() if None in jumped else [rate for rate in jumped if rate is not None]
        self._set(rates)

    def repeat_step(self) -> None:
        """Repeat the last step, from the current rates."""
        self._step_count -= 1
        self.last_epoch -= 1
        self.step()

    def _take_in_groups(self) -> None:
        groups = self.optimizer.param_groups
        while len(self.base_lrs) < len(groups):
            self.base_lrs.append(self.join(groups[len(self.base_lrs)]))

    def join(self, group: Options) -> float:
        """Return the initial rate of a group that was added to the optimizer after the schedule was made.

        A subclass with numbers for each group adds those of this group.
        """
        group.setdefault("initial_lr", group["lr"])
        return float(group["initial_lr"])

    def _set(self, rates: Sequence[float]) -> None:
        for group, rate in zip(self.optimizer.param_groups, rates, strict=True):
            group["lr"] = rate
        self._last_lr = [group["lr"] for group in self.optimizer.param_groups]

    def state_dict(self) -> dict[str, Any]:
        """Return everything except the optimizer and functions."""
        return {name: value for name, value in vars(self).items() if name != "optimizer" and not _is_function(value)}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load a state from `state_dict()`."""
        vars(self).update(state_dict)


def for_each_group(value: float | Sequence[float], optimizer: Optimizer, owner: str, name: str) -> list[float]:
    """Return one number for each group."""
    count = len(optimizer.param_groups)
    if isinstance(value, list | tuple):
        if len(value) != count:
            raise bad_option(owner, name, value, f"one number, or {count}")
        return [float(one) for one in value]
    return [float(cast("float", value))] * count


def for_new_group(value: Any, owner: str, name: str) -> Any:
    """Return an option's value for an added group; raise for a list, which has no value for that group."""
    if isinstance(value, list | tuple):
        raise errors.NEW_GROUP(owner=owner, name=name, count=len(value), where=provenance.here())
    return value


def _is_function(value: object) -> bool:
    return callable(value) or (isinstance(value, list) and any(map(callable, value)))


class _Functions(LRScheduler):
    """A function of the step number, or one for each group."""

    def __init__(
        self,
        optimizer: Optimizer,
        lr_lambda: Callable[[int], float] | Sequence[Callable[[int], float]],
        last_epoch: int = -1,
    ) -> None:
        count = len(optimizer.param_groups)
        functions = list(lr_lambda) if isinstance(lr_lambda, list | tuple) else [lr_lambda] * count
        if len(functions) != count:
            raise bad_option(
                type(self).__name__, "lr_lambda", f"{len(functions)} functions", f"one for each of {count} groups"
            )
        self.lr_lambdas: list[Any] = functions
        self._given = lr_lambda
        super().__init__(optimizer, last_epoch)

    def functions(self) -> list[Callable[[int], float]]:
        """The function of each group, added groups included."""
        while len(self.lr_lambdas) < len(self.optimizer.param_groups):
            self.lr_lambdas.append(for_new_group(self._given, type(self).__name__, "lr_lambda"))
        return self.lr_lambdas


class LambdaLR(_Functions):
    """lr = base * function(step), with one function for all groups or one for each.

    Example:
        >>> import glassgrad as gg
        >>> optimizer = gg.optim.SGD(gg.nn.Linear(1, 1).parameters(), lr=1.0)
        >>> schedule = gg.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 / (1 + step))
        >>> rates = []
        >>> for _ in range(5):
        ...     rates.append(round(schedule.get_last_lr()[0], 3))
        ...     optimizer.step()
        ...     schedule.step()
        >>> rates
        [1.0, 0.5, 0.333, 0.25, 0.2]
    """

    def get_lr(self) -> list[float]:
        pairs = zip(self.base_lrs, self.functions(), strict=True)
        return [base * function(self.last_epoch) for base, function in pairs]


class MultiplicativeLR(_Functions):
    """lr *= function(step), from step 1.

    Example:
        >>> import glassgrad as gg
        >>> optimizer = gg.optim.SGD(gg.nn.Linear(1, 1).parameters(), lr=1.0)
        >>> schedule = gg.optim.lr_scheduler.MultiplicativeLR(optimizer, lambda step: 0.9)
        >>> rates = []
        >>> for _ in range(5):
        ...     rates.append(round(schedule.get_last_lr()[0], 3))
        ...     optimizer.step()
        ...     schedule.step()
        >>> rates
        [1.0, 0.9, 0.81, 0.729, 0.656]
    """

    def get_lr(self) -> list[float]:
        groups = self.optimizer.param_groups
        if self.is_initial:
            return [group["lr"] for group in groups]
        pairs = zip(groups, self.functions(), strict=True)
        return [group["lr"] * function(self.last_epoch) for group, function in pairs]


_LRScheduler = LRScheduler  # PyTorch's older name, still subclassed by scripts

__all__ = ["LRScheduler", "LambdaLR", "MultiplicativeLR"]
