"""Save the state that a block of code may change, and restore it."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from typing import Any

from glassgrad.base import undo
from glassgrad.engine.random import get_states, set_states
from glassgrad.engine.tensor import Tensor
from glassgrad.engine.writes import MUTATIONS
from glassgrad.ops.core import Array


class Snapshot:
    """A copy of the given state.

    Args:
        tensors: their memory and its contents.
        arrays: their contents. They are restored in place, so that views follow, and only where something changed: a
            write would make a live graph refuse its backward pass.
        gradients: the ``.grad`` of these tensors, the object, not its contents.
        attributes: of objects, by name; the references, not the contents.
        dicts: their entries; added entries stay.
        mappings: their entries; added entries are removed.
        states: objects with ``state_dict()`` and ``load_state_dict()``.
        streams: random generators of glassgrad, NumPy and Python.
        randoms: all existing generators of glassgrad.
        more: functions that restore anything else; they are called last.

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
        arrays: Iterable[Array] = (),
        gradients: Iterable[Tensor] = (),
        attributes: Iterable[tuple[Any, str]] = (),
        dicts: Iterable[dict[Any, Any]] = (),
        mappings: Iterable[dict[Any, Any]] = (),
        states: Iterable[Any] = (),
        streams: Iterable[Any] = (),
        randoms: bool = False,
        more: Iterable[Callable[[], None]] = (),
    ) -> None:
        self._undo: list[Callable[[], None]] = []
        for tensor in tensors:
            self._undo += [undo.attribute(tensor, "array"), undo.content(tensor.array, MUTATIONS.record)]
        self._undo += [undo.content(array, MUTATIONS.record) for array in arrays]
        self._undo += [undo.attribute(tensor, "_grad") for tensor in gradients]
        self._undo += [undo.attribute(owner, name) for owner, name in attributes]
        self._undo += [undo.entries(held) for held in dicts]
        self._undo += [undo.mapping(held) for held in mappings]
        self._undo += [_state(part) for part in states]
        self._undo += [undo.stream(generator) for generator in streams]
        if randoms:
            found = get_states()
            self._undo.append(lambda: set_states(found))
        self._undo += more

    def restore(self) -> None:
        """Restore the state; may be called repeatedly."""
        for step in self._undo:
            step()


def _state(part: Any) -> Callable[[], None]:
    before = copy.deepcopy(part.state_dict())
    return lambda: part.load_state_dict(before)
