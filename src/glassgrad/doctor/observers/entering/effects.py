"""Find arguments and input columns that have no effect on the outputs of a model."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from contextlib import suppress

import numpy as np

from glassgrad.doctor import library
from glassgrad.doctor.library import Args, Array, Module, Tensor
from glassgrad.doctor.restoring.set_aside import aside

FIRST, LATER, LOOKS = 12, 1.5, 2
"""The step of the first look, since what begins at 0 has an effect only later, the ratio to that of the next one, and
the number of looks that have to agree."""
_FEWEST, _LARGEST, _COLUMNS = 6, 1 << 20, 2048
_SAME = 1e-6
_BY_PLACE = {inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD}
Outputs = list[Array]


class Effects:
    """Calls a model after it permutes the rows of one argument, or of its first or last column.

    Attributes:
        idle: the positions of the arguments without an effect.
        columns: the columns without an effect, if the model has only one argument.
    """

    def __init__(self) -> None:
        self._next, self._looks = float(FIRST), 0
        self.idle: tuple[int, ...] = ()
        self.columns: tuple[str, ...] = ()

    def wants(self, step: int) -> bool:
        """Tell whether a check is due at this step."""
        return self._looks < LOOKS and step >= self._next

    def ask(self, step: int, model: Module, args: Args) -> None:
        """Check the arguments of a step. Restores the model and the random generators."""
        self._next = LATER * step
        arrays = {at: one for at, arg in enumerate(args) if (one := _rows_of(arg)) is not None}
        rows = len(arrays[min(arrays)]) if arrays else 0
        known = {at: one for at, one in arrays.items() if len(one) == rows and one.size <= _LARGEST}
        if rows < _FEWEST or len(known) < len(arrays):
            return
        idle = tuple(_without_effect(model, args, {at: _turned(one) for at, one in known.items()}))
        idle = () if len(idle) == len(known) else idle  # another rule reports it if no argument has an effect
        columns: tuple[str, ...] = ()
        if len(known) == 1 and not idle:
            columns = _idle_columns(model, args, *known.items())
        self._looks += 1
        self.idle = idle if self._looks == 1 else tuple(one for one in idle if one in self.idle)
        self.columns = columns if self._looks == 1 else tuple(one for one in columns if one in self.columns)

    def found(self, model: Module) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the names of the arguments and the columns on which all checks agree; empty after a single check."""
        if self._looks < LOOKS:
            return (), ()
        names = [name for name, one in inspect.signature(model.forward).parameters.items() if one.kind in _BY_PLACE]
        return tuple(names[at] if at < len(names) else str(at) for at in self.idle), self.columns


def _rows_of(arg: Tensor) -> Array | None:
    array = library.numbers(arg) if library.is_tensor(arg) else None
    return array if array is not None and array.ndim else None


def _turned(array: Array) -> Array:
    """Return the rows of an array in another order."""
    return np.roll(array, len(array) // 2, axis=0)


def _idle_columns(model: Module, args: Args, known: tuple[int, Array]) -> tuple[str, ...]:
    place, array = known
    if array.dtype.kind != "f" or array.ndim not in {2, 3} or not 2 < array.shape[-1] <= _COLUMNS:
        return ()
    found = []
    strides = array.ndim == 3 and any(map(_strides, model.modules()))  # the last windows may end before the last place
    for name, column in (("first", 0), ("last", -1))[: 1 if strides else 2]:
        changed = array.copy()
        changed[..., column] = _turned(array[..., column])
        if list(_without_effect(model, args, {place: changed})):
            found.append(name)
    return tuple(found)


def _strides(module: Module) -> bool:
    """Tell whether a convolution or a pooling moves on by more than one place."""
    stride = getattr(module, "stride", 1)
    return any(isinstance(one, int) and one > 1 for one in (stride if isinstance(stride, tuple) else (stride,)))


def _without_effect(model: Module, args: Args, changes: dict[int, Array]) -> Iterator[int]:
    """Yield the arguments whose change does not change the outputs in training or in evaluation mode."""
    before = _run(model, args, training=False)
    if before is None or not _varies(before, len(next(iter(changes.values())))):
        return
    for place, changed in changes.items():
        given = library.numbers(args[place])
        if given is None or np.array_equal(changed, given):
            continue
        other = (*args[:place], library.tensor_of(np.ascontiguousarray(changed), library.is_torch(args[place])))
        other = (*other, *args[place + 1 :])
        if not _same(before, _run(model, other, training=False)):
            continue
        if _same(_run(model, args, training=True), _run(model, other, training=True)):  # teacher forcing, for example
            yield place


def _run(model: Module, args: Args, *, training: bool) -> Outputs | None:
    """Return copies of all outputs of a call with the same random numbers; None if some are not tensors."""
    torch = any(library.is_torch(one) for one in args)
    found: list[Tensor | None] = []
    with suppress(Exception), aside(model), sys.modules["torch" if torch else "glassgrad"].no_grad():
        model.train(training)  # a call may fail, for example because lengths have to be sorted
        found = list(_every(model(*args)))
    arrays = [None if one is None else library.numbers(one) for one in found]
    return (
        [one.copy() for one in arrays if one is not None]
        if found and all(one is not None and np.isfinite(one).all() for one in arrays)
        else None
    )


def _every(value: Tensor) -> Iterator[Tensor | None]:
    """Yield the tensors in tuples, lists and dictionaries, and None for anything else."""
    if library.is_tensor(value):
        yield value
    elif isinstance(value, dict):
        for one in value.values():
            yield from _every(one)
    elif isinstance(value, tuple | list):
        for one in value:
            yield from _every(one)
    elif value is not None:
        yield None


def _varies(outputs: Outputs, rows: int) -> bool:
    """Tell whether outputs differ between examples, or are one number for the batch."""
    return any(one.ndim == 0 or (len(one) == rows and bool((one != one[:1]).any())) for one in outputs)


def _same(one: Outputs | None, other: Outputs | None) -> bool:
    if one is None or other is None or len(one) != len(other):
        return False
    return all(
        a.shape == b.shape and float(np.abs(a - b).max(initial=0.0)) <= _SAME * float(np.abs(a).max(initial=1e-30))
        for a, b in zip(one, other, strict=True)
        if a.dtype.kind == "f"
    )
