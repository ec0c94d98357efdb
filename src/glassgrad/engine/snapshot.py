"""Save what a block of code may change, and put it back."""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from glassgrad.engine.random import Generator, get_states, set_states
from glassgrad.engine.tensor import Tensor
from glassgrad.engine.writes import MUTATIONS


class Snapshot:
    """A copy of the given state.

    Args:
        tensors: their memory and what is in it.
        arrays: what is in them. They are restored in place, so that views of them follow, and only where something
            changed: a write would make a graph that is still alive refuse its backward pass.
        gradients: the ``.grad`` of these tensors, which gradient it is and not what is in it.
        dicts: their entries; those that are added stay.
        states: objects with ``state_dict()`` and ``load_state_dict()``.
        streams: random generators of ours, NumPy's and Python's.
        randoms: all generators of ours that there are.

    Example:
        >>> import glassgrad as gg
        >>> weight = gg.zeros(2)
        >>> before = Snapshot(tensors=[weight])
        >>> _ = weight.add_(1)
        >>> before.restore()
        >>> weight
        tensor([0., 0.])
    """

    def __init__(
        self,
        *,
        tensors: Iterable[Tensor] = (),
        arrays: Iterable[Any] = (),
        gradients: Iterable[Tensor] = (),
        dicts: Iterable[dict[Any, Any]] = (),
        states: Iterable[Any] = (),
        streams: Iterable[Any] = (),
        randoms: bool = False,
    ) -> None:
        self._undo: list[Callable[[], None]] = []
        for tensor in tensors:
            self._undo += [_value(tensor, "array"), _content(tensor.array)]
        self._undo += [_content(array) for array in arrays]
        self._undo += [_value(tensor, "_grad") for tensor in gradients]
        self._undo += [_entries(held) for held in dicts]
        self._undo += [_state(part) for part in states]
        self._undo += [rewinder(stream) for stream in streams]
        if randoms:
            found = get_states()
            self._undo.append(lambda: set_states(found))

    def restore(self) -> None:
        """Restore the state; may be called repeatedly."""
        for undo in self._undo:
            undo()


def _value(owner: Any, name: str) -> Callable[[], None]:
    before = getattr(owner, name)

    def undo() -> None:
        if getattr(owner, name) is not before:
            setattr(owner, name, before)

    return undo


def _content(array: Any) -> Callable[[], None]:
    before = array.copy()

    def undo() -> None:
        if array.flags.writeable and array.tobytes() != before.tobytes():  # bit for bit: NaN, and the sign of zero
            array[...] = before
            MUTATIONS.record(array)

    return undo


def _entries(held: dict[Any, Any]) -> Callable[[], None]:
    before = dict(held)
    return lambda: held.update(before)


def _state(part: Any) -> Callable[[], None]:
    before = copy.deepcopy(part.state_dict())
    return lambda: part.load_state_dict(before)


def rewinder(stream: Any) -> Callable[[], None]:
    """Return a function that takes a random stream back to where it is now."""
    random = sys.modules.get("random")  # where nobody imported it, nothing comes from it
    if random is not None and isinstance(stream, random.Random):
        numbers = stream.getstate()
        return lambda: stream.setstate(numbers)
    if not isinstance(stream, Generator) and isinstance(stream, np.random.Generator):
        bits, state = stream.bit_generator, stream.bit_generator.state
        return lambda: setattr(bits, "state", state)
    state = stream.get_state()
    return lambda: stream.set_state(state)
