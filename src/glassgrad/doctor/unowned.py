"""Watch a training whose steps no optimizer takes: its loop changes the tensors itself, between backward passes."""

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
"""Stands for the optimizer that there is not."""


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
        """Record the beginning of a backward pass, and the step that was taken before it."""
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
        """Record a step, if the tensors have changed since the last backward pass began."""
        now = _some(self.model)
        if self._values is not None and not np.array_equal(now, self._values):
            self.stepped(_NOBODY)
        self._values = now

    def _look_ahead(self, compiled: bool = False) -> None:
        super()._look_ahead(compiled)
        self.quiet = False  # each backward pass is reported


def _some(model: Module) -> Array:
    """Return copies of some numbers of the largest tensor of a model."""
    largest = max((one for _, one in model.named_parameters()), key=lambda one: library.values(one).size)
    return np.array(library.values(largest).reshape(-1)[:_NUMBERS])


class Seeker(Listener):
    """Hears of backward passes, and tells of the tensors behind the second one of the same, if nothing is watched yet.

    Args:
        found: called with these tensors.
        busy: tells whether something is watched already.
    """

    def __init__(self, found: Callable[[list[Tensor]], None], busy: Callable[[], bool]) -> None:
        self._found, self._busy = found, busy
        self._seen: set[int] = set()
        self._done = False

    def backward(self, loss: Tensor, traced: bool = False) -> bool:
        """Look at the tensors behind a loss of ours."""
        self.begins(loss[0] if isinstance(loss, tuple | list) and loss else loss)
        return False

    def begins(self, loss: Tensor) -> bool:
        """Look at the tensors behind a loss."""
        if not self._done and not self._busy() and loss is not None:
            found = leaves(loss, all_of_them=True)
            mine = {id(one) for one in found}
            if mine and mine <= self._seen:
                self._done = True
                self._found(found)
            self._seen = mine
        return False

    def ends(self) -> None:
        """Hear of the end of a backward pass of PyTorch's."""

    def rest(self) -> None:
        """Hear nothing more of our engine."""
        if MODE.witness is self:
            MODE.witness = None
