"""Where a NaN comes from: one step taken aside, op by op, and the first op that makes a NaN of numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from glassgrad import errors
from glassgrad.doctor import library
from glassgrad.doctor.aside import aside
from glassgrad.doctor.facts import Finding
from glassgrad.engine.anomaly import ADVICE, Birth, detect_anomaly, first_nan, has_nan
from glassgrad.engine.snapshot import Snapshot

_RATE_ADVICE = "Lower the rate, or raise eps: the gradients are finite, what the rule divides by is 0 or overflows."
_NAN_ADVICE = "Look at what makes the batch: a division by a deviation of 0, a missing value that was read as NaN."


def nan_origin(model: Any, batch: Any, loss_fn: Callable[..., Any], optimizer: Any = None) -> Finding | None:
    """Take one step of a model and name the first place where a NaN appears; None if there is none.

    Looked at, in this order: the batch, the parameters, every op of the forward pass and the loss, every cotangent of
    the backward pass, and with an optimizer the parameters after its step. Everything is put back: parameters,
    gradients, running statistics, the optimizer's state and random numbers.

    Args:
        model: a module of ours, called with the inputs.
        batch: (inputs, targets).
        loss_fn: called with the output and the targets; returns the loss.
        optimizer: takes the step, if given.

    Returns:
        A finding with the op, the user's line, the index and operands of the first NaN, and what to write instead.

    Raises:
        KindError: for a PyTorch model, whose own `torch.autograd.detect_anomaly` does this.

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
    if library.is_torch(model):
        raise errors.NAN_ORIGIN_OF_TORCH(given=type(model).__name__)
    inputs, targets = batch
    for name, value in (("inputs", inputs), ("targets", targets)):
        if has_nan(value):
            return _held(f"NaN in the {name}", f"the {name} hold", value, _NAN_ADVICE)
    for name, parameter in model.named_parameters():
        if has_nan(parameter):
            return _held(
                "NaN in a parameter", f"{name} holds", parameter, "Go back to a checkpoint from before it did."
            )
    with aside(model), np.errstate(all="ignore"):
        found = _of_gradients(model, inputs, targets, loss_fn)
        return found if found is not None or optimizer is None else _of_update(model, optimizer)


def _held(rule: str, what: str, tensor: Any, advice: str) -> Finding:
    index, count = first_nan(np.asarray(library.values(tensor)))
    return Finding(
        rule, "error", f"{what} NaN in {count} of {library.values(tensor).size} places, first {index}", advice
    )


def _of_gradients(model: Any, inputs: Any, targets: Any, loss_fn: Callable[..., Any]) -> Finding | None:
    with detect_anomaly() as looking:
        output = model(inputs)
        loss = loss_fn(output, targets)
        born = looking.born
        if has_nan(loss):
            where = "the model" if has_nan(output) else "the loss"
            return _born(f"NaN in the forward pass of {where}", born)
        try:
            loss.backward()
        except errors.AutogradError as error:
            what, _, advice = str(error).partition("\nNext: ")
            return Finding("NaN in the backward pass", "error", what, advice)
    return None


def _born(rule: str, born: Birth | None) -> Finding:
    if born is None:
        return Finding(rule, "error", "the loss is NaN, and no op with a gradient made it of numbers", _NAN_ADVICE)
    remedy = ADVICE.get(born.op, "")
    return Finding(rule, "error", str(born), "Keep what goes in finite.", str(born.place), remedy=remedy)


def _of_update(model: Any, optimizer: Any) -> Finding | None:
    kind, before = type(optimizer).__name__, Snapshot(states=[optimizer])
    try:
        optimizer.step()
        for name, parameter in model.named_parameters():
            if has_nan(parameter):
                return _held(f"NaN in the step of {kind}", f"after {kind}'s step {name} holds", parameter, _RATE_ADVICE)
    finally:
        before.restore()
    return None
