"""Training and evaluation mode, changed for a while."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from glassgrad.nn.module import Module


@contextmanager
def modes_kept(model: Module) -> Iterator[None]:
    """Put every module back into the mode it was in: one that was frozen by `eval()` on its own stays frozen."""
    before = [(module, module.training) for module in model.modules()]
    try:
        yield
    finally:
        for module, training in before:
            module.training = training


@contextmanager
def evaluating(model: Module) -> Iterator[None]:
    """Within the block the model is in evaluation mode; afterwards every module is in the mode it was in."""
    with modes_kept(model):
        model.eval()
        yield
