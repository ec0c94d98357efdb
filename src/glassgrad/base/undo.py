"""Save state and return a function that restores it: an attribute, an array, a dictionary or a random stream.

`engine.snapshot` composes them for tensors, `doctor.restoring` for the modules of any library.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

Undo = Callable[[], None]


def attribute(owner: Any, name: str) -> Undo:
    """Save the object that an attribute refers to, not its contents."""
    before = getattr(owner, name)

    def undo() -> None:
        if getattr(owner, name) is not before:
            setattr(owner, name, before)

    return undo


def same_bits(one: np.ndarray, other: np.ndarray) -> bool:
    """Tell whether two arrays of one shape and dtype are equal bit for bit: NaN, and the sign of zero."""
    if one.flags.c_contiguous and other.flags.c_contiguous and one.dtype.kind != "O":
        kind = np.uint32 if one.dtype.itemsize % 4 == 0 else np.uint8
        return bool((one.reshape(-1).view(kind) == other.reshape(-1).view(kind)).all())
    return bool(one.tobytes() == other.tobytes())


def put_back(array: np.ndarray, before: np.ndarray, written: Callable[[np.ndarray], object]) -> None:
    """Write earlier contents into an array and call `written` with it, only if something changed."""
    if array.flags.writeable and not same_bits(array, before):
        array[...] = before
        written(array)


def content(array: np.ndarray, written: Callable[[np.ndarray], object] = lambda array: None) -> Undo:
    """Save the contents of an array; see `put_back`."""
    before = array.copy()
    return lambda: put_back(array, before, written)


def entries(held: dict[Any, Any]) -> Undo:
    """Save the entries of a dictionary; entries added later stay."""
    before = dict(held)
    return lambda: held.update(before)


def mapping(held: dict[Any, Any]) -> Undo:
    """Save the entries of a dictionary and their order; entries added later are removed."""
    before = dict(held)

    def undo() -> None:
        if held.keys() != before.keys() or any(held[name] is not value for name, value in before.items()):
            held.clear()
            held.update(before)

    return undo


def stream(generator: Any) -> Undo:
    """Save the state of a random generator: ours, NumPy's, Python's or PyTorch's."""
    random = sys.modules.get("random")  # if it is not imported, the generator is not one of its
    if random is not None and isinstance(generator, random.Random):
        numbers = generator.getstate()
        return lambda: generator.setstate(numbers)
    if not hasattr(generator, "get_state"):  # NumPy's
        bits, state = generator.bit_generator, generator.bit_generator.state
        return lambda: setattr(bits, "state", state)
    state = generator.get_state()
    return lambda: generator.set_state(state)
