"""Save and restore the state that a step changes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from glassgrad.base.undo import put_back
from glassgrad.doctor.library import Array, Optimizer
from glassgrad.engine.random import USES, Generator, get_states, set_states
from glassgrad.engine.snapshot import Snapshot
from glassgrad.engine.tensor import Tensor
from glassgrad.engine.writes import MUTATIONS

SMALL = 1 << 14
"""The largest buffer that is copied at the beginning of each step: running statistics, not tables."""


class Beginning:
    """Running statistics and random states at the beginning of a step, which a forward pass changes.

    Args:
        buffers: of the model.
    """

    def __init__(self, buffers: Sequence[Tensor]) -> None:
        self.buffers = [one for one in buffers if type(one.array) is np.ndarray and one.array.size <= SMALL]
        self._arrays: list[Array] = []
        self._states: dict[Generator, Any] = {}
        self.uses = -1
        self.renew()

    def renew(self) -> None:
        """Save the current state; not needed while there are no `buffers` and the count of `USES` equals `uses`."""
        self._arrays = [one.array.copy() for one in self.buffers]
        if USES.count != self.uses:
            self._states = get_states()
            self.uses = USES.count

    def restore(self) -> None:
        """Put them back."""
        for tensor, before in zip(self.buffers, self._arrays, strict=True):
            put_back(tensor.array, before, MUTATIONS.record)
        set_states(self._states)


class Copies:
    """Copies of parameters and optimizers' state, taken before a step that may make a NaN."""

    def __init__(self, parameters: Sequence[Tensor], optimizers: Sequence[Optimizer], step: int) -> None:
        self.step = step
        states = [(optimizer.state, dict(optimizer.state)) for optimizer in optimizers]
        entries = [entry for _, known in states for entry in known.values()]
        parts = [part for entry in entries for part in entry.values()]
        groups = [group for optimizer in optimizers for group in optimizer.param_groups]
        self.values = {id(parameter): np.array(parameter.array) for parameter in parameters}
        self.states = {
            id(tensor): {name: copied(part) for name, part in entry.items()}
            for _, known in states
            for tensor, entry in known.items()
        }
        self._parameters, self._held = list(parameters), states
        self._rest = Snapshot(
            tensors=[part for part in parts if isinstance(part, Tensor)],
            arrays=[part for part in parts if type(part) is np.ndarray],
            dicts=[*entries, *groups],
        )

    def restore(self) -> None:
        """Put them back."""
        for state, known in self._held:
            for tensor in [one for one in state if one not in known]:
                del state[tensor]
        for parameter in self._parameters:
            put_back(parameter.array, self.values[id(parameter)], MUTATIONS.record)
        self._rest.restore()


def copied(part: object) -> Array:
    """Return a copy of the numbers of a tensor or an array."""
    return np.array(part.array if isinstance(part, Tensor) else part)
