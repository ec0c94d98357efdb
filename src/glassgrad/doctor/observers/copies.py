"""Find copies of a model that still have the weights with which its training began, such as a target network."""

from __future__ import annotations

from collections.abc import Iterator
from types import FrameType

import numpy as np

from glassgrad.doctor import library
from glassgrad.doctor.library import Array, Module
from glassgrad.doctor.source_lines import named

_MOST = 1 << 16
"""The most numbers of a weight that are kept to compare."""


class Copies:
    """The first weights of a model, and the user's variables that may hold a copy of it."""

    def __init__(self, model: Module, frame: FrameType) -> None:
        self._model, self._variables = model, frame.f_globals
        self._name, self._began = "", np.zeros(0)
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
