"""Find frozen normalisations whose running statistics follow the data that the rest of the model is trained on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np

from glassgrad.doctor import library
from glassgrad.doctor.library import Array, Module

_PASSES = 5
"""The number of steps in training mode from which the statistics of a frozen layer count as following."""


def fixed(model: Module) -> Iterator[tuple[str, Module]]:
    """Yield the normalisations without trained parameters."""
    for name, module in model.named_modules():
        own = list(module.parameters(recurse=False)) if hasattr(module, "running_mean") else []
        if own and not any(library.trainable(one) for one in own):
            yield name, module


class Resting:
    """Counts the steps in which frozen normalisations are in training mode.

    Example:
        >>> Resting().found(None)
        ()
    """

    def __init__(self) -> None:
        self._passes: Counter[str] = Counter()
        self._first: dict[str, tuple[list[Array], Array]] = {}

    def look(self, model: Module) -> None:
        """Look at a model right before a step."""
        for name, module in fixed(model):
            if name not in self._first:
                self._first[name] = _state(module)
            self._passes[name] += bool(getattr(module, "training", False))

    def found(self, model: Module) -> tuple[str, ...]:
        """Return the layers that keep their weights while their statistics move.

        If the weights move as well, the layer is an average of another model and not a pretrained one.
        """
        known = dict(model.named_modules()) if self._first else {}
        often = (name for name, passes in self._passes.items() if passes >= _PASSES and name in known)
        return tuple(name for name in often if _follows(self._first[name], _state(known[name])))


def _state(module: Module) -> tuple[list[Array], Array]:
    """Return copies of the weights of a normalisation and of its running mean."""
    weights = [np.array(library.values(one)) for one in module.parameters(recurse=False)]
    mean = library.numbers(module.running_mean)
    return weights, np.zeros(0) if mean is None else mean.copy()


def _follows(before: tuple[list[Array], Array], now: tuple[list[Array], Array]) -> bool:
    kept = len(before[0]) == len(now[0]) and all(map(np.array_equal, before[0], now[0]))
    return kept and not np.array_equal(before[1], now[1])
