"""Find copies of a model that still have the weights with which its training began, such as a target network."""

from __future__ import annotations

from collections.abc import Iterator
from types import FrameType

import numpy as np

from glassgrad.doctor import library
from glassgrad.doctor.library import Array, Module
from glassgrad.doctor.source_lines import going_through, named

_MOST = 1 << 16
"""The most numbers of a weight that are kept to compare."""


class Copies:
    """The first weights of a model, and the user's variables that may hold a copy of it."""

    def __init__(self, model: Module, frame: FrameType) -> None:
        self._model, self._variables = model, frame.f_globals
        self._name, self._began = "", np.zeros(0)
        self._means = _means(model)
        for name, parameter in model.named_parameters():
            if 1 < (size := library.values(parameter).size) <= _MOST and size > self._began.size:
                self._name, self._began = name, np.array(library.values(parameter))

    def found(self, files: list[str]) -> Iterator[tuple[str, str]]:
        """Yield the variables with such a copy, and the lines that assign them, if the model itself has changed."""
        now = self._of(self._model)
        if not self._began.size or now is None or np.array_equal(now, self._began):
            return
        for variable, held in list(self._variables.items()):
            if type(held) is type(self._model) and held is not self._model and not variable.startswith("_"):
                weight = self._of(held)
                if weight is not None and np.array_equal(weight, self._began):
                    yield variable, named(variable, files)

    def stale(self, files: list[str]) -> Iterator[tuple[str, str, str]]:
        """Yield copies whose weights have changed and whose running statistics are the first ones, with their lines.

        The line is the one that goes through the parameters of both models, or the one that assigns the copy.
        """
        mine = _means(self._model)
        for variable, held in list(self._variables.items()):
            if type(held) is not type(self._model) or held is self._model or variable.startswith("_"):
                continue
            weight, theirs = self._of(held), _means(held)
            if weight is None or weight.shape != self._began.shape or np.array_equal(weight, self._began):
                continue
            for name, array in theirs.items():
                moved = name in mine and not np.array_equal(mine[name], self._means.get(name, mine[name]))
                if moved and np.array_equal(array, self._means.get(name, mine[name])):
                    yield variable, name.rpartition(".")[0], going_through(files) or named(variable, files)
                    break

    def twin(self) -> bool:
        """Tell whether a variable holds another model of the same weights, such as a target network."""
        shapes = [tuple(one.shape) for _, one in self._model.named_parameters()]
        others = [
            one for one in list(self._variables.values()) if type(one) is type(self._model) and one is not self._model
        ]
        return any([tuple(part.shape) for _, part in one.named_parameters()] == shapes for one in others)

    def _of(self, model: Module) -> Array | None:
        one = dict(model.named_parameters()).get(self._name)
        return None if one is None else library.values(one)


def _means(model: Module) -> dict[str, Array]:
    """Return copies of the running means of a model, by their names."""
    named = model.named_buffers() if hasattr(model, "named_buffers") else ()
    found = ((name, library.numbers(one)) for name, one in named if name.rpartition(".")[2] == "running_mean")
    return {name: one.copy() for name, one in found if one is not None}
