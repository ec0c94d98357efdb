"""The origin of a NaN: one step runs op by op, with its effects undone, up to the first op that makes a NaN."""

from __future__ import annotations

import copy
from collections.abc import Callable, Collection
from typing import Any

from glassgrad.doctor import library
from glassgrad.doctor.facts import Finding
from glassgrad.doctor.library import LossFunction, Module, Optimizer
from glassgrad.doctor.nans.again import Again
from glassgrad.doctor.nans.allowed import checked
from glassgrad.doctor.nans.findings import CHECKPOINT, DATA, held
from glassgrad.doctor.restoring.set_aside import aside
from glassgrad.engine.reports.nonfinite import has_bad
from glassgrad.engine.snapshot import Snapshot


def nan_origin(
    model: Module,
    batch: Any,
    loss_fn: LossFunction,
    optimizer: Optimizer = None,
    *,
    inf: bool = False,
    allow: Collection[str] = (),
) -> Finding | None:
    """Take one step of a model and name the first place where a NaN appears; None if there is none.

    These are checked in order: the batch, the parameters, every op of the forward pass and the loss, every cotangent of
    the backward pass, and with an optimizer the parameters after its step. Everything is restored: parameters,
    gradients, running statistics, the optimizer's state and random numbers.

    Args:
        model: a module of glassgrad or PyTorch, called with the inputs.
        batch: (inputs, targets).
        loss_fn: called with the output and the targets; returns the loss.
        optimizer: takes the step, if given.
        inf: look for infinities too.
        allow: names of what makes NaN or infinities on purpose: ops ("masked_fill") and modules of the model
            ("encoder.attention"). For lines of code there is `allow_nonfinite`.

    Returns:
        A finding with the op, the user's line, the index and operands of the first NaN, its path to the loss, and what
        to write instead.

    Raises:
        ArgumentError: a name in `allow` that is neither an op nor a module.

    Example:
        >>> import glassgrad as gg
        >>> model = gg.nn.Linear(2, 1)
        >>> batch = gg.ones(4, 2), gg.zeros(4, 1)
        >>> found = gg.doctor.nan_origin(model, batch, lambda y, t: (y - y).sqrt().mean() * 0)
        >>> found.rule
        'NaN in the backward pass'
        >>> gg.doctor.nan_origin(model, batch, gg.nn.functional.mse_loss) is None
        True
    """
    allow = checked(model, allow)
    inputs, targets = batch
    for name, value in (("inputs", inputs), ("targets", targets)):
        if has_bad(library.numbers(value), inf):
            return held(f"NaN in the {name}", f"the {name} hold", library.numbers(value), DATA, inf)
    for name, parameter in model.named_parameters():
        if has_bad(library.numbers(parameter), inf):
            return held("NaN in a parameter", f"{name} holds", library.numbers(parameter), CHECKPOINT, inf)
    if library.is_torch(model):
        return _of_torch(model, lambda: loss_fn(model(inputs), targets), optimizer, inf, allow)
    before = None if optimizer is None else Snapshot(states=[optimizer])

    def step() -> Any:
        loss = loss_fn(model(inputs), targets)
        if library.is_cut(loss):
            return loss
        loss.backward()
        if optimizer is not None:
            optimizer.step()
        return None

    try:
        with aside(model):
            return Again(model, inf=inf, allow=allow).run(step)
    finally:
        if before is not None:
            before.restore()


def _of_torch(
    model: Module, forward: Callable[[], Any], optimizer: Optimizer, inf: bool, allow: Collection[str]
) -> Finding | None:
    from glassgrad.doctor.nans.torch_again import TorchAgain

    before = None if optimizer is None else copy.deepcopy(optimizer.state_dict())
    try:
        with aside(model):
            return TorchAgain(model, inf=inf, allow=allow).run(forward, optimizer)
    finally:
        if optimizer is not None:
            optimizer.load_state_dict(before)


__all__ = ["nan_origin"]
