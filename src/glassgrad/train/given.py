"""Checks of the arguments of `Trainer` and `find_rate`: their kinds, and that the configuration agrees with them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from glassgrad import errors, manual
from glassgrad.doctor.library import is_by_hand
from glassgrad.nn import Module
from glassgrad.optim import by_name
from glassgrad.optim.optimizer import Optimizer
from glassgrad.train.training_config import TrainingConfig


def check_kinds(owner: str, model: Any, optimizer: Any, loss_fn: Any, scheduler: Any = None) -> None:
    """Check the types: the order of the arguments is easily confused."""
    by_hand = is_by_hand(model)
    for name, given, fine, expected in (
        ("model", model, by_hand or isinstance(model, Module), "a module of glassgrad.nn, or of glassgrad.manual"),
        *_own_kinds(by_hand, optimizer, loss_fn),
        ("scheduler", scheduler, scheduler is None or hasattr(scheduler, "step"), "a scheduler with step()"),
    ):
        if not fine:
            raise errors.FIT_WRONG_KIND(owner=owner, name=name, expected=expected, given=type(given).__name__)


def _own_kinds(by_hand: bool, optimizer: Any, loss_fn: Any) -> Iterator[tuple[str, Any, bool, str]]:
    """Yield the checks of optimizer and loss, which depend on the kind of the model."""
    if by_hand:
        fits = all(hasattr(optimizer, name) for name in ("parameters", "step", "zero_grad", "param_groups"))
        yield (
            "optimizer",
            optimizer,
            fits,
            "an optimizer of glassgrad.manual for hand-written layers",
        )
        fits = hasattr(loss_fn, "backward")
        yield "loss_fn", loss_fn, fits, "a loss of glassgrad.manual for hand-written layers"
        return
    yield "optimizer", optimizer, isinstance(optimizer, Optimizer), "an optimizer of glassgrad.optim"
    yield "loss_fn", loss_fn, loss_fn is None or callable(loss_fn), "a function of outputs and targets, or None"


def check_config(config: TrainingConfig, model: Any, optimizer: Any, loader: Any, scheduler: Any) -> None:
    """Refuse options without effect: those that need the engine, and those that contradict the parts."""
    for option in ("dtype", "ema", "loss_scale") if is_by_hand(model) else ():
        if getattr(config, option):
            raise errors.FIT_BY_HAND(option=f"{option}={getattr(config, option)}")
    for option, part, found, fits in _agreements(config, optimizer, loader, scheduler):
        if getattr(config, option) and not fits:
            raise errors.FIT_CONTRADICTS(
                option=f"{option}={getattr(config, option)!r}",
                part=part,
                found=found,
                maker="make_loader(data)" if part == "train_loader" else "make_optimizer(model.parameters())",
            )


def _agreements(
    config: TrainingConfig, optimizer: Any, loader: Any, scheduler: Any
) -> Iterator[tuple[str, str, Any, bool]]:
    """Yield option, part, the part's value, and whether they agree; a schedule may have changed the rate already."""
    if config.optimizer:
        yield "optimizer", "optimizer", type(optimizer).__name__, isinstance(optimizer, _kinds(config, optimizer))
    rates = [float(group["lr"]) for group in optimizer.param_groups]
    yield "rate", "optimizer", f"lr={rates[0]:g}", scheduler is not None or config.rate in rates
    size = getattr(loader, "batch_size", None)
    yield "batch_size", "train_loader", f"batch_size={size}", size is None or size == config.batch_size


def _kinds(config: TrainingConfig, optimizer: Any) -> tuple[type[Any], ...]:
    if isinstance(optimizer, Optimizer):
        return (by_name.kind_of(config.optimizer),)
    kind = manual.optimizers.kind_of(config.optimizer)
    return (kind, manual.SGDMomentum) if kind is manual.SGD else (kind,)
