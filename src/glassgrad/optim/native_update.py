"""The arithmetic of an update rule as one native loop, for large parameters.

NumPy makes a pass over memory for each operator of a rule: a dozen for AdamW. The record from which `in_place` writes a
function is also a graph: native code reads parameter, gradient and state once and writes them once.
"""

from __future__ import annotations

import ctypes
import functools
import importlib
import struct
from itertools import pairwise
from typing import Any

import numpy as np

from glassgrad.engine.terms import Number, Term
from glassgrad.ops.core import Array, Elementwise
from glassgrad.ops.kernels import native, products
from glassgrad.ops.kernels.ways import Dtype, least
from glassgrad.optim.value import Value

FROM = least("update")  # elements, of one parameter or of all together
CHUNK = 4_000  # elements per kernel call: they stay in the first-level cache
_LEAST = 4  # operators: with fewer, NumPy's passes are as cheap
_PRODUCTS = 16  # multiplications of matrices that take as long as an element
_HEAD = struct.Struct("<q i 4x q q q q i")  # address, axes, shape, strides, base, type, flags
_READ, _WRITEABLE = 0x101, 0x400  # contiguous and aligned


class Update:
    """The computation of a rule, for arrays of one dtype in one shape.

    Equal records make equal updates, so an optimizer can reuse the kernels of another.

    Args:
        arrays: the given values: parameter, gradient, and arrays of state.
        order: the values to compute, in order.
        targets: pairs of a given array and the value to write to it.

    Attributes:
        numbers: variables of the numbers given besides the arrays.
    """

    __name__ = "update"

    def __init__(self, arrays: list[Value], order: list[Value], targets: list[tuple[Value, Value]]) -> None:
        place = {value: at for at, value in enumerate([*arrays, *order])}
        self.numbers = list(dict.fromkeys(str(arg.what) for one in order for arg in one.args if type(arg) is Number))
        self.count = len(arrays)
        # An operand is the place of a value, the name of a number, or a literal.
        self.lines: tuple[tuple[Any, ...], ...] = tuple(
            (value.prim, tuple(_operand(arg, place, self.numbers) for arg in value.args), tuple(value.params.items()))
            for value in order
        )
        self.targets = tuple((place[target], place[new]) for target, new in targets)
        self._loops: dict[tuple[Dtype, int], Any] = {}
        self._hash = hash(self.key)

    @property
    def key(self) -> tuple[object, ...]:
        """The key of the update in the cache."""
        return self.count, len(self.numbers), self.lines, self.targets

    def __eq__(self, other: object) -> bool:
        return type(other) is Update and self.key == other.key

    def __hash__(self) -> int:
        return self._hash

    def __call__(self, *given: Term) -> dict[int, Term]:
        """Compute on terms; return the new value of each written array, by its place."""
        values, numbers = list(given[: self.count]), given[self.count :]
        for prim, operands, params in self.lines:
            taken = {"value": values, "number": numbers}
            args = [what if kind == "literal" else taken[kind][what] for kind, what in operands]
            values.append(prim(*args, **dict(params)))
        return {target: values[new] for target, new in self.targets}

    def loop(self, dtype: Dtype, shares: int) -> Any:
        """Return the native loop over parameters of a dtype; None without native code."""
        known = self._loops.get((dtype, shares))
        if known is None:
            types = (*[((CHUNK,), dtype)] * self.count, *[((), dtype)] * len(self.numbers))
            kernel = native.kernels.find(self, types, (), {}, 1)
            known = self._loops[dtype, shares] = None if kernel is None else kernel.loop(self.count, shares)
        return known


_Entry = tuple[tuple[int, ...], int, tuple[Array, ...]]  # addresses of arrays, elements of each, the arrays


class Batch:
    """The parameters of an optimizer's step that native code will update, in one call per rule.

    It also takes parameters too small for a call of their own, if the previous step has shown that all together are
    large.

    Attributes:
        offered: elements of the parameters that this step has offered.
        few: whether those of the previous step were too few.
    """

    def __init__(self) -> None:
        self._entries: dict[tuple[Update, Dtype, tuple[float, ...]], list[_Entry]] = {}
        self.offered, self.few = 0, True

    def take(self, update: Update, arrays: tuple[Array, ...], numbers: tuple[float, ...]) -> bool:
        """Take a parameter's arrays for `flush`; return False if NumPy has to update it."""
        p = arrays[0]
        size = p.size
        self.offered += size
        if (size < FROM and self.few) or native.kernels.off:
            return False
        addresses, place = [], _data()
        for array in arrays:
            if type(array) is not np.ndarray:
                return False
            address, _, _, _, _, _, flags = _HEAD.unpack(ctypes.string_at(id(array) + place, _HEAD.size))
            if flags & _READ != _READ or not (flags & _WRITEABLE or array is arrays[1]):
                return False
            addresses.append(address)
        order, nbytes = sorted(addresses), p.nbytes
        for before, after in pairwise(order):
            if after - before < nbytes:
                return False
        if update.loop(p.dtype, 1) is None:
            return False
        self._entries.setdefault((update, p.dtype, numbers), []).append((tuple(addresses), size, arrays))
        return True

    def end(self) -> None:
        """Update the parameters taken during a step of the optimizer."""
        self.few, self.offered = self.offered < FROM, 0
        self.flush()

    def flush(self) -> None:
        """Update the parameters taken so far."""
        entries, self._entries = self._entries, {}
        for (update, dtype, numbers), listed in entries.items():
            pairs = [(addresses, size) for addresses, size, _ in listed]
            if _apart(pairs, dtype.itemsize):
                count = products.shares(_PRODUCTS * sum(size for _, size in pairs))
                update.loop(dtype, count).run(pairs, numbers)
            else:  # one after the other, in the given order
                for pair in pairs:
                    update.loop(dtype, 1).run([pair], numbers)


def _apart(entries: list[tuple[tuple[int, ...], int]], itemsize: int) -> bool:
    """Tell whether no array of a parameter shares memory with one of another."""
    starts = np.array([addresses for addresses, _ in entries])
    stops = starts + np.array([[size * itemsize] for _, size in entries])
    order = np.argsort(starts, axis=None)
    after, before = starts.reshape(-1)[order[1:]], np.maximum.accumulate(stops.reshape(-1)[order])[:-1]
    return bool((after >= before).all())


@functools.cache
def _data() -> int:
    """Return the offset of an array object's fields: address, axes, flags."""
    return int(importlib.import_module("glassgrad.compile.native.executable").object_layout()[1])


def _operand(arg: Any, place: dict[Any, int], numbers: list[str]) -> tuple[str, Any]:
    if type(arg) is Number:
        return "number", numbers.index(str(arg.what))
    return ("value", place[arg]) if arg in place else ("literal", float(arg) if isinstance(arg, float) else arg)


def update_of(given: list[Value], order: list[Value], targets: list[tuple[Value, Value]]) -> Update | None:
    """Return the update of a record; None if it is not a loop over elements of one floating dtype."""
    p = given[0]
    if p.dtype.char not in "fd" or len(order) < _LEAST or not all(value.is_like(p) for value in (*given, *order)):
        return None
    if not all(isinstance(value.prim, Elementwise) for value in order) or any(new not in order for _, new in targets):
        return None
    return Update(given, order, targets)


def guarded(
    update: Update | None, batch: Batch, given: list[Value], lines: list[str], names: dict[str, Any], is_small: bool
) -> list[str]:
    """Return lines that run the given ones, unless a batch takes the arrays for native code.

    Small parameters are offered only together with larger ones: on their own they cost less than a call each.
    """
    if update is None:
        return lines
    names["natively"], names["batch"] = functools.partial(batch.take, update), batch
    arrays, numbers = "".join([f"{one.variable}, " for one in given]), "".join([f"{one}, " for one in update.numbers])
    small = "batch.few or " if is_small else ""
    return [f"if {small}not natively(({arrays}), ({numbers})):", *[f"    {line}" for line in lines]]
