"""Compare the outputs of a model in training and in evaluation mode for one batch, late in a run."""

from __future__ import annotations

import sys

from glassgrad.doctor import library
from glassgrad.doctor.library import Args, Array, Module
from glassgrad.doctor.parts import Score
from glassgrad.doctor.restoring.set_aside import aside
from glassgrad.doctor.scores import score

FIRST, LATER = 40, 1.4
"""The step from which statistics should have arrived, and the number of a step relative to that of the last look."""


class Modes:
    """Calls a model in evaluation mode with the batch that it was just trained on.

    Attributes:
        scores: those of the looks so far.
    """

    def __init__(self) -> None:
        self.scores: list[Score] = []
        self._next = float(FIRST)
        self._batch: tuple[int, str, Array, Array] | None = None

    def learns(self, step: int, kind: str, output: Array | None, target: Array | None) -> None:
        """Keep the output of a training step and its targets, if it is time for a look."""
        if step < self._next or output is None or target is None or not output.ndim or not target.ndim:
            return
        if len(output) >= len(target) > 3:
            self._batch = step, kind, output[: len(target)].copy(), target

    def ask(self, model: Module, args: Args) -> None:
        """Look at the last batch, if it was kept. Restores the model and the random generators."""
        batch, self._batch = self._batch, None
        if batch is None or not args:
            return
        step, kind, before, target = batch
        torch = library.is_torch(args[0])
        with aside(model), sys.modules["torch" if torch else "glassgrad"].no_grad():
            model.eval()
            after = library.numbers(library.first_tensor(model(*args)))
        self._next = LATER * step
        if after is not None and after.shape[1:] == before.shape[1:] and len(after) >= len(target):
            found = (score(one, target, kind) for one in (before, after[: len(target)]))
            self.scores.append(Score(step, kind, *found))
