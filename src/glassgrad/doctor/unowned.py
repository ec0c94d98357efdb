"""Watch a training without an optimizer, whose loop changes the tensors itself between backward passes."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Self

import numpy as np

from glassgrad.base import provenance
from glassgrad.doctor import library, source_lines
from glassgrad.doctor.library import Array, Module, Tensor
from glassgrad.doctor.observers.events import Listener
from glassgrad.doctor.observers.outside import leaves
from glassgrad.doctor.watching import Watch
from glassgrad.engine.mode import MODE

_NUMBERS = 512
_NOBODY = SimpleNamespace()
"""Stands for the missing optimizer."""


class UnownedWatch(Watch):
    """Counts a step for each backward pass after which the tensors have changed."""

    def __init__(self, model: Module, *, preset: str = "standard", report: bool = True) -> None:
        super().__init__(model, None, preset=preset, report=report)
        self._values: Array | None = None

    def __enter__(self) -> Self:
        line = source_lines.updating([provenance.user_frame().f_code.co_filename])
        if line:
            self.heard.lines["step"] = line
        return super().__enter__()

    def backward(self, loss: Tensor, traced: bool = False) -> bool:
        """Record the beginning of a backward pass, and the step before it."""
        self._step()
        return super().backward(loss, traced)

    def passed(self, loss: float | None) -> None:
        """Record a backward pass of a step that is not sampled."""
        self._step()
        super().passed(loss)

    def left(self) -> None:
        """Measure the gradients; the loop changes the tensors now."""
        super().left()
        if self.sampling:
            self.stepping(_NOBODY)

    def disconnect(self) -> None:
        """Record the last step."""
        self._step()
        super().disconnect()

    def _step(self) -> None:
        """Record a step if the tensors have changed since the last backward pass began."""
        now = _some(self.model)
        if self._values is not None and not np.array_equal(now, self._values):
            self.stepped(_NOBODY)
        self._values = now

    def _look_ahead(self, compiled: bool = False) -> None:
        super()._look_ahead(compiled)
        self.quiet = False  # report each backward pass


def _some(model: Module) -> Array:
    """Return a copy of some elements of the largest tensor of a model."""
    largest = max((one for _, one in model.named_parameters()), key=lambda one: library.values(one).size)
    return np.array(library.values(largest).reshape(-1)[:_NUMBERS])


class Seeker(Listener):
    """Reports the tensors of a loss at their second backward pass, if the doctor watches nothing yet.

    Args:
        found: the function to call with these tensors.
        busy: returns whether the doctor watches something already.
    """

    def __init__(self, found: Callable[[list[Tensor]], None], busy: Callable[[], bool]) -> None:
        self._found, self._busy = found, busy
        self._seen: set[int] = set()
        self._done = False

    def backward(self, loss: Tensor, traced: bool = False) -> bool:
        """Check the tensors behind a loss of glassgrad."""
        self.begins(loss[0] if isinstance(loss, tuple | list) and loss else loss)
        return False

    def begins(self, loss: Tensor) -> bool:
        """Check the tensors behind a loss of PyTorch."""
        if not self._done and not self._busy() and loss is not None:
            found = leaves(loss, all_of_them=True)
            mine = {id(one) for one in found}
            if mine and mine <= self._seen:
                self._done = True
                self._found(found)
            self._seen = mine
        return False

    def ends(self) -> None:
        """Ignore the end of a backward pass of PyTorch."""

    def rest(self) -> None:
        """Stop listening to the engine of glassgrad."""
        if MODE.witness is self:
            MODE.witness = None
