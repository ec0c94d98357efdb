"""The arithmetic of an update rule as one native loop, for large parameters.

NumPy makes a pass over memory for each operator of a rule, a dozen for AdamW. The record that `in_place` writes a
function from is a graph as well: native code reads parameter, gradient and state once and writes them once.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from glassgrad.engine.terms import Number, Term
from glassgrad.ops.core import Elementwise
from glassgrad.ops.kernels import native
from glassgrad.optim.value import Value

FROM = 48_000  # elements from which a parameter is updated natively
BLOCK = 65_536  # elements at a time, so that few sizes need a kernel of their own
_LEAST = 4  # operators: for fewer, NumPy's passes cost no more than a call for each block


class Update:
    """What a rule computes, for arrays of one dtype in one shape.

    Equal records make equal updates, so that the kernels of one optimizer serve the next.

    Args:
        arrays: the values that are given: parameter, gradient, and arrays of state.
        order: the values to compute, in order.
        targets: pairs of given arrays and the values that are written to them.

    Attributes:
        numbers: variables of the numbers that are given besides the arrays.
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

    @property
    def key(self) -> tuple[Any, ...]:
        """What the update is known by."""
        return self.count, len(self.numbers), self.lines, self.targets

    def __eq__(self, other: object) -> bool:
        return type(other) is Update and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    def __call__(self, *given: Term) -> dict[int, Term]:
        """Compute on terms; return the new value of each array that is written to, by its place."""
        values, numbers = list(given[: self.count]), given[self.count :]
        for prim, operands, params in self.lines:
            taken = {"value": values, "number": numbers}
            args = [what if kind == "literal" else taken[kind][what] for kind, what in operands]
            values.append(prim(*args, **dict(params)))
        return {target: values[new] for target, new in self.targets}

    def run(self, arrays: tuple[Any, ...], numbers: tuple[float, ...]) -> bool:
        """Update arrays in place; return False, with nothing changed, where NumPy has to do it."""
        p = arrays[0]
        if p.size < FROM or native.kernels.off:
            return False
        for array in arrays:
            if not (array.flags.c_contiguous and array.flags.aligned and (array.flags.writeable or array is arrays[1])):
                return False
        if any(np.may_share_memory(p, array) for array in arrays[1:]) or _share(arrays[1:]):
            return False
        flat = [array.reshape(-1) for array in arrays]
        given = tuple([np.asarray(number, p.dtype) for number in numbers])
        blocks = [(start, min(start + BLOCK, p.size)) for start in range(0, p.size, BLOCK)]
        kernels = {stop - start: self._kernel(stop - start, p.dtype) for start, stop in blocks}
        if None in kernels.values():
            return False
        for start, stop in blocks:
            if not kernels[stop - start].into((*[one[start:stop] for one in flat], *given), ()):
                raise AssertionError("arrays that were looked at do not fit")
        return True

    def _kernel(self, size: int, dtype: Any) -> Any:
        types = (*[((size,), dtype)] * self.count, *[((), dtype)] * len(self.numbers))
        return native.kernels.find(self, types, (), {})


def _operand(arg: Any, place: dict[Any, int], numbers: list[str]) -> tuple[str, Any]:
    if type(arg) is Number:
        return "number", numbers.index(str(arg.what))
    return ("value", place[arg]) if arg in place else ("literal", float(arg) if isinstance(arg, float) else arg)


def _share(arrays: tuple[Any, ...]) -> bool:
    return any(np.may_share_memory(one, other) for at, one in enumerate(arrays) for other in arrays[:at])


def update_of(given: list[Value], order: list[Value], targets: list[tuple[Value, Value]]) -> Update | None:
    """Return the update of a record; None for one that is no loop over elements of one floating dtype."""
    p = given[0]
    if p.dtype.char not in "fd" or len(order) < _LEAST or not all(value.is_like(p) for value in (*given, *order)):
        return None
    if not all(isinstance(value.prim, Elementwise) for value in order) or any(new not in order for _, new in targets):
        return None
    return Update(given, order, targets)


def guarded(update: Update | None, given: list[Value], lines: list[str], names: dict[str, Any]) -> list[str]:
    """Return lines that do what others do, but leave it to native code where that takes the arrays."""
    if update is None:
        return lines
    names["natively"] = update.run
    arrays, numbers = "".join([f"{one.variable}, " for one in given]), "".join([f"{one}, " for one in update.numbers])
    return [f"if not natively(({arrays}), ({numbers})):", *[f"    {line}" for line in lines]]
