"""`debug_training`: a printed check-up of one batch."""

from __future__ import annotations

import sys
from typing import Any, TextIO

from glassgrad.doctor.checkup import check_up
from glassgrad.doctor.facts import CheckUp
from glassgrad.doctor.library import LossFunction, Module, Optimizer
from glassgrad.doctor.reports.checkup_wording import check_up_lines


def debug_training(
    model: Module,
    batch: Any,
    loss_fn: LossFunction | None = None,
    *,
    optimizer: Optimizer = None,
    file: TextIO | None = None,
) -> CheckUp:
    """Print a check-up of one batch: inputs, forward pass, loss, gradients, problems and remedies.

    The model's weights, running statistics and gradients, and the random state, are restored afterwards.

    Args:
        model: a module of glassgrad or PyTorch.
        batch: `(inputs, targets)`, tensors or arrays; a mapping is passed to the model as keywords.
        loss_fn: called with output and targets; by default the model returns the loss, or an object that has it.
        optimizer: the optimizer of the training, or several, to be checked against the model.
        file: where to print; standard output by default.

    Returns:
        The printed facts and more as data; `findings` are the last part.

    Example:
        >>> import glassgrad as gg
        >>> _ = gg.manual_seed(0)
        >>> model = gg.nn.Linear(4, 3)
        >>> batch = gg.randn(16, 4), gg.randint(0, 4, (16,))
        >>> found = gg.doctor.debug_training(model, batch, gg.nn.functional.cross_entropy)
        check-up of Linear, 15 trainable numbers, training mode
        ...
        >>> [finding.rule for finding in found.findings if finding.rule.startswith("labels")]
        ['labels out of range']
    """
    found = check_up(model, batch, loss_fn, optimizer)
    print("\n".join(check_up_lines(found)), file=file or sys.stdout)
    return found


__all__ = ["check_up_lines", "debug_training"]
