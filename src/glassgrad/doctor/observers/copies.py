"""Find copies of a model that still have the weights with which its training began, such as a target network."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import FrameType, FunctionType, ModuleType

import numpy as np

from glassgrad.base.provenance import is_internal
from glassgrad.doctor import library
from glassgrad.doctor.library import Array, Module
from glassgrad.doctor.source_lines import assigned_to, assigning, going_through, moving

_MOST = 1 << 16
"""The most numbers of a weight that are kept to compare."""


class Copies:
    """The first weights of a model, and the user's variables that may hold a copy of it."""

    def __init__(self, model: Module, frame: FrameType) -> None:
        self._model, self._variables = model, frame.f_globals
        self._owners = [(name, one) for name, one in frame.f_locals.items() if _is_users(one)]
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
        seen: set[int] = set()
        for variable, held in self._others():
            weight = self._of(held)
            if id(held) not in seen and weight is not None and np.array_equal(weight, self._began):
                seen.add(id(held))
                yield variable, _line(variable, files)

    def follows(self, files: list[str]) -> Iterator[tuple[str, float, str, str]]:
        """Yield each variable with a copy, its distance from the model, a parameter, and the line that updates it.

        Copies that equal the model are left out. The distance is that of the named parameter.
        """
        now = self._of(self._model)
        for variable, held in self._others() if self._began.size else ():
            weight = self._of(held)
            if now is None or weight is None or weight.shape != now.shape or np.array_equal(weight, self._began):
                continue
            distance = float(np.sqrt(np.square((weight - now).astype(np.float64)).sum()))
            if distance > 0:
                yield variable, distance, self._name, moving(files) or _line(variable, files)

    def _others(self) -> Iterator[tuple[str, Module]]:
        """Yield the variables, and the attributes of the user's objects, that hold another model of the same class."""
        kind = type(self._model)
        for variable, held in [*self._variables.items(), *self._owners]:
            if variable.startswith("_") or held is self._model:
                continue
            if type(held) is kind:
                yield variable, held
            elif _is_users(held):
                for name, inner in list(vars(held).items()):
                    if type(inner) is kind and inner is not self._model:
                        yield f"{variable}.{name}", inner

    def stale(self, files: list[str]) -> Iterator[tuple[str, str, str]]:
        """Yield copies whose weights have changed and whose running statistics are the first ones, with their lines.

        The line is the one that goes through the parameters of both models, or the one that assigns the copy.
        """
        mine = _means(self._model)
        for variable, held in self._others():
            weight, theirs = self._of(held), _means(held)
            if weight is None or weight.shape != self._began.shape or np.array_equal(weight, self._began):
                continue
            for name, array in theirs.items():
                moved = name in mine and not np.array_equal(mine[name], self._means.get(name, mine[name]))
                if moved and np.array_equal(array, self._means.get(name, mine[name])):
                    yield variable, name.rpartition(".")[0], going_through(files) or _line(variable, files)
                    break

    def twin(self) -> bool:
        """Tell whether a variable holds another model of the same weights, such as a target network."""
        shapes = [tuple(one.shape) for _, one in self._model.named_parameters()]
        others = [one for _, one in self._others()]
        return any([tuple(part.shape) for _, part in one.named_parameters()] == shapes for one in others)

    def _of(self, model: Module) -> Array | None:
        one = dict(model.named_parameters()).get(self._name)
        return None if one is None else library.values(one)


def _is_users(value: object) -> bool:
    """Tell whether a value is an object of a class of the user, such as a trainer, but not a module."""
    if isinstance(value, type | ModuleType | FunctionType) or not hasattr(value, "__dict__"):
        return False
    kind = sys.modules.get(type(value).__module__)
    path = getattr(kind, "__file__", None)
    ours = type(value).__module__ == "__main__" or (path is not None and not is_internal(path))
    return ours and not hasattr(type(value), "named_parameters") and "site-packages" not in (path or "")


def _line(variable: str, files: list[str]) -> str:
    """Return the line that assigns a variable or an attribute."""
    owner, _, attribute = variable.rpartition(".")
    return assigned_to(attribute, files) if owner else assigning(variable, files)


def _means(model: Module) -> dict[str, Array]:
    """Return copies of the running means of a model, by their names."""
    named = model.named_buffers() if hasattr(model, "named_buffers") else ()
    found = ((name, library.numbers(one)) for name, one in named if name.rpartition(".")[2] == "running_mean")
    return {name: one.copy() for name, one in found if one is not None}
