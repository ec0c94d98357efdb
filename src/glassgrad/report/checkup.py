"""`debug_training`: the check-up of one batch, printed so that a person sees at a glance where to look."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, TextIO

from glassgrad.doctor.checkup import check_up
from glassgrad.doctor.checkup_wording import check_up_lines
from glassgrad.doctor.facts import CheckUp


def debug_training(
    model: Any,
    batch: Any,
    loss_fn: Callable[..., Any] | None = None,
    *,
    optimizer: Any = None,
    file: TextIO | None = None,
) -> CheckUp:
    """Print a check-up of one batch: inputs, forward pass, loss, gradients, what is wrong and what to do about it.

    The model is left as it was: its weights, running statistics, gradients and the random generators.

    Args:
        model: a module of ours or of PyTorch.
        batch: `(inputs, targets)`, tensors or arrays; a mapping is handed to the model as keywords.
        loss_fn: called with output and targets; without it the model returns the loss, or an object that has it.
        optimizer: the one the model is to be trained with, or several: see whether it fits.
        file: where to print; the standard output if not given.

    Returns:
        All that is printed and more as data; `findings` are the last part.

    Example:
        >>> import glassgrad as gg
        >>> _ = gg.manual_seed(0)
        >>> model = gg.nn.Linear(4, 3)
        >>> batch = gg.randn(16, 4), gg.randint(0, 4, (16,))
        >>> found = gg.debug_training(model, batch, gg.nn.functional.cross_entropy)
        check-up of Linear, 15 trainable numbers, training mode
        ...
        >>> [finding.rule for finding in found.findings if finding.rule.startswith("labels")]
        ['labels out of range']
    """
    found = check_up(model, batch, loss_fn, optimizer)
    print("\n".join(check_up_lines(found)), file=file or sys.stdout)
    return found


__all__ = ["check_up_lines", "debug_training"]
