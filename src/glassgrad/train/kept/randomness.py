"""The random state of a program as a part of a checkpoint."""

from __future__ import annotations

import random
from typing import Any

import numpy as np

from glassgrad.engine.random import default_generator


class RandomState:
    """The random state of a program: glassgrad's, NumPy's and Python's, and that of additional generators.

    Example:
        >>> import glassgrad as gg
        >>> from glassgrad.train import RandomState
        >>> state = RandomState()
        >>> kept = state.state_dict()
        >>> first = gg.rand(3)
        >>> state.load_state_dict(kept)
        >>> bool((gg.rand(3) == first).all())
        True
    """

    def __init__(self, *generators: Any) -> None:
        self._generators = [default_generator, *generators]

    def state_dict(self) -> dict[str, Any]:
        """Return the state of each generator."""
        name, keys, *place = np.random.get_state()  # noqa: NPY002 - data sets may use the legacy generator
        version, numbers, gauss = random.getstate()
        return {
            "glassgrad": [generator.get_state() for generator in self._generators],
            "numpy": [name, keys, *place],
            "python": [version, np.array(numbers, np.int64), gauss],
        }

    def load_state_dict(self, state: dict[str, Any], /) -> None:
        """Load a state from `state_dict`."""
        for generator, values in zip(self._generators, state["glassgrad"], strict=True):
            generator.set_state(values)
        np.random.set_state(tuple(state["numpy"]))  # noqa: NPY002 - as above
        version, numbers, gauss = state["python"]
        random.setstate((version, tuple(numbers.tolist()), gauss))


__all__ = ["RandomState"]
