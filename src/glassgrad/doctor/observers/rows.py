"""Compare the examples of validations with those that were trained on, by their bytes."""

from __future__ import annotations

from glassgrad.doctor.library import Array

_MOST, _OF_BATCH, _CALLS, _BYTES = 4096, 128, 40, 1 << 16
"""The examples kept, those of a batch, the validations that are looked at, and the largest example."""


class Rows:
    """Two sets of examples: those of training steps, and those of passes without gradients.

    Example:
        >>> import numpy as np
        >>> rows = Rows()
        >>> rows.train(np.eye(4))
        >>> rows.held(np.eye(5)[1:, :4])
        >>> rows.shared()
        (3, 4)
    """

    def __init__(self) -> None:
        self._trained: set[bytes] = set()
        self._held: set[bytes] = set()
        self.calls = 0
        self._validations: set[int] = set()

    def train(self, inputs: Array) -> None:
        """Keep the examples of a training step."""
        if len(self._trained) < _MOST:
            self._trained.update(_bytes(inputs))

    def held(self, inputs: Array, step: int = 0) -> None:
        """Keep the examples of a pass without gradients after a number of steps."""
        self._validations.add(step)
        self.calls += 1
        if self.calls <= _CALLS and len(self._held) < _MOST:
            self._held.update(_bytes(inputs))

    @property
    def validations(self) -> int:
        """The number of validations, each of one or more calls between two steps."""
        return len(self._validations)

    def shared(self) -> tuple[int, int]:
        """Return how many examples of the passes without gradients were trained on too, and how many there are."""
        return len(self._held & self._trained), len(self._held)


def _bytes(inputs: Array) -> list[bytes]:
    if inputs.ndim < 2 or len(inputs) < 4 or inputs[0].nbytes > _BYTES or inputs[0].size < 2:
        return []
    rows = [row.tobytes() for row in inputs[:_OF_BATCH]]
    return rows if 2 * len(set(rows)) > len(rows) else []  # of a few kinds, which any two sets share
