"""Run a training step and undo every effect: all reachable state is found, copied and restored."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from glassgrad.compile.front.state.places import Places
from glassgrad.compile.front.state.reach import Reach, reach
from glassgrad.engine.mode import ANOMALY, MODE
from glassgrad.engine.snapshot import Snapshot
from glassgrad.engine.tensor import Tensor


def written_as(function: Any) -> Any:
    """Return the original of a compiled function; return any other function unchanged."""
    return getattr(function, "__compiled_function__", function)


class StepAside:
    """The state that a step may change, to be restored any number of times.

    The step's variables, models, optimizers and arguments are found as in compilation. Iterators, files and the
    state of other libraries are not restored.

    Attributes:
        found: the state that the step can reach.
    """

    def __init__(self, function: Callable[..., Any], args: Sequence[Any]) -> None:
        self.found: Reach = reach(written_as(function), {f"args[{at}]": arg for at, arg in enumerate(args)})
        tensors = [tensor for tensor, _ in self.found.tensors.values()]
        arrays = [array for _, array in self.found.arrays]
        arrays += [tensor._grad.array for tensor in tensors if tensor._grad is not None]
        hidden = [random._inst, np.random.mtrand._rand]  # the global ones of Python and NumPy
        streams = [stream for _, stream in self.found.streams]
        self.places = Places(self.found.holders)
        self._values = Snapshot(
            tensors=tensors,
            arrays=arrays,
            gradients=tensors,
            attributes=[(tensor, name) for tensor in tensors for name in ("node", "_tracks")],
            mappings=[held for held, _ in self.found.sizes if isinstance(held, dict)],
            streams=[*streams, *hidden],
            randoms=True,
            more=[self.places.restore],
        )

    def restore(self) -> None:
        """Restore everything."""
        self._values.restore()

    def values(self) -> dict[str, Any]:
        """Return copies of all reachable values and gradients, by path."""
        seen: dict[str, Any] = {}
        for tensor, path in self.found.tensors.values():
            seen[path] = np.array(tensor.array)
            if tensor._grad is not None:
                seen[f"{path}.grad"] = np.array(tensor._grad.array)
        return seen


@contextlib.contextmanager
def eagerly(observer: Any) -> Iterator[None]:
    """Run compiled functions eagerly in the block, and report backward passes to an observer."""
    before = MODE.observer, MODE.flags
    MODE.observer, MODE.flags = observer, MODE.flags | ANOMALY
    try:
        yield
    finally:
        MODE.observer, MODE.flags = before


def arrays_in(values: Sequence[Any]) -> Iterator[Any]:
    """Yield the NumPy arrays in nested tuples and lists, and the arrays of the tensors."""
    for value in values:
        if isinstance(value, np.ndarray):
            yield value
        elif isinstance(value, Tensor) and isinstance(value.array, np.ndarray):
            yield value.array
        elif isinstance(value, tuple | list):
            yield from arrays_in(value)
