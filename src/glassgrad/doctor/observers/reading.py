"""Detect recurrent layers of which the loss reads the beginning only, by the gradients that reach their outputs."""

from __future__ import annotations

from collections import Counter

import numpy as np

from glassgrad.doctor import library
from glassgrad.doctor.library import Args, Array, Module, Tensor
from glassgrad.doctor.parts import Reading
from glassgrad.doctor.reading.names import named

WHOLE, CELLS = named("RNN LSTM GRU"), named("RNNCell LSTMCell GRUCell")
_ENOUGH = 3
"""The number of passes that are compared; all of them must agree."""


class Readings:
    """Looks at the first passes of recurrent layers, between the calls of `end_pass`."""

    def __init__(self) -> None:
        self._passes = 0
        self._seen: dict[str, tuple[str, int]] = {}
        self._reads: dict[str, list[str]] = {}
        self._calls: Counter[str] = Counter()
        self._first: dict[str, set[int]] = {}
        self._carried: Counter[str] = Counter()

    def look(self, name: str, kind: str, module: Module, args: Args, result: Tensor) -> None:
        """Look at the output of a module, if it is a recurrent layer, and at the state that it begins with."""
        if kind not in WHOLE | CELLS or self._passes >= _ENOUGH or not result.requires_grad:
            return
        state = library.first_tensor(args[1:])
        if kind in WHOLE and state is not None and not state.requires_grad:
            begun = library.numbers(state)
            self._carried[name] += bool(begun is not None and begun.any())
        if kind in CELLS:
            at = self._calls[name]
            self._calls[name] += 1
            self._seen[name] = kind, at + 1
            result.register_hook(lambda g: self._first.setdefault(name, set()).add(at))
        elif result.ndim == 3 and not getattr(module, "bidirectional", False):
            time = 1 if getattr(module, "batch_first", False) else 0
            if result.shape[time] == 1 and kind in WHOLE:
                self._reads.setdefault(name, []).append("one" if state is None else "")
            self._seen[name] = kind, int(result.shape[time])
            result.register_hook(lambda g: self._arrived(name, time, library.numbers(g)))

    def _arrived(self, name: str, time: int, g: Array | None) -> None:
        if g is None or min(g.shape[:2]) < 2 or not g.any():
            return
        steps = np.flatnonzero(np.any(g != 0, axis=(1 - time, 2)))
        examples = np.flatnonzero(np.any(g != 0, axis=(time, 2)))
        reads = "first" if steps.tolist() == [0] else "example" if len(examples) == 1 and len(steps) > 1 else ""
        self._reads.setdefault(name, []).append(reads)

    def end_pass(self) -> None:
        """Count a step; cells that were called once in it tell nothing."""
        for name, times in self._calls.items():
            if times > 1 and (reached := self._first.get(name)):
                # The first output reaches later ones by recurrence: it is alone only if none of them is read.
                self._reads.setdefault(name, []).append("first" if reached == {0} else "")
        self._passes += bool(self._seen)
        self._calls.clear()
        self._first.clear()

    def carried(self) -> tuple[str, ...]:
        """Return the layers that began with the state of an earlier batch in two of the passes."""
        return tuple(name for name, passes in self._carried.items() if passes > 1)

    def found(self) -> tuple[Reading, ...]:
        """Return the layers that were read at their beginning in every pass that was looked at."""
        return tuple(
            Reading(name, *self._seen[name][:1], reads[0], self._seen[name][1])
            for name, reads in self._reads.items()
            if reads[0] and len(set(reads)) == 1 and len(reads) > 1
        )
