"""Change training and evaluation mode temporarily."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from glassgrad.nn.module import Module


@contextmanager
def modes_kept(model: Module) -> Iterator[None]:
    """Restore the mode of every module after the block: a module that was frozen by its own `eval()` stays frozen."""
    before = [(module, module.training) for module in model.modules()]
    try:
        yield
    finally:
        for module, training in before:
            module.training = training


@contextmanager
def evaluating(model: Module) -> Iterator[None]:
    """Set evaluation mode for the block; afterwards restore the mode of every module."""
    with modes_kept(model):
        model.eval()
        yield
