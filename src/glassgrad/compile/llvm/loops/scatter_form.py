"""What a scatter adds or writes, and where: the form that the emitters read.

Values are visited in NumPy's order, so repeated indices have the same result as there, bit for bit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from glassgrad.compile.ir.graph import Instr, Var
from glassgrad.compile.llvm.loops.gathers import window_counts
from glassgrad.compile.llvm.loops.routes import Route, axis_routes, spec_routes
from glassgrad.compile.llvm.module.ir import kind_of


@dataclass(frozen=True)
class Scatter:
    """One scatter: `routes` of the result's axes, shapes, and the operation at each index.

    `how` names the op that combines a value with the previous one; without it, the value overwrites. `base` tells
    whether the result starts as a copy of an operand instead of zeros.
    """

    routes: tuple[Route, ...]
    shape: tuple[int, ...]
    values: tuple[int, ...]
    kind: str
    how: str
    base: bool = False
    index_kinds: tuple[str, ...] = ()
    index_shapes: tuple[tuple[int, ...], ...] = ()

    def leaves(self, route: Route) -> bool:
        """Tell whether an index can be outside of the result; its value is then dropped."""
        ends = [step * (self.values[dim] - 1) for dim, step in route.terms]
        low, high = (route.start + sum(pick(0, end) for end in ends) for pick in (min, max))
        return route.array is None and not 0 <= low <= high < route.extent


def scatter_of(instr: Instr) -> Scatter | None:
    """Describe an instruction that adds or writes at indices; None if it has another form."""
    kind = kind_of(instr.output.dtype)
    describe = SCATTERS.get(instr.op)
    return None if kind is None or describe is None else describe(instr, kind)


def _by_index(instr: Instr, kind: str) -> Scatter | None:
    """Describe put_add, or at_set, whose first operand is the array to write to."""
    base = instr.op == "at_set"
    value, *operands = instr.inputs[base:]
    arrays = [operand for operand in operands if isinstance(operand, Var)]
    if not isinstance(value, Var) or not arrays:
        return None
    routes, shape = spec_routes(instr, arrays, instr.output.shape)
    if value.shape != shape:
        return None
    return Scatter(routes, instr.output.shape, value.shape, kind, "" if base else "add", base, *_described(arrays))


def _described(arrays: Sequence[Var]) -> tuple[tuple[str, ...], tuple[tuple[int, ...], ...]]:
    return tuple(kind_of(array.dtype) or "" for array in arrays), tuple(array.shape for array in arrays)


def _along(instr: Instr, kind: str) -> Scatter | None:
    """Describe put_along_add, or put_along_axis and scatter_extreme, which start from an array."""
    base = instr.op != "put_along_add"
    value, index = instr.inputs[base:]
    if not isinstance(value, Var) or not isinstance(index, Var) or value.shape != index.shape:
        return None
    how = {"put_along_add": "add", "put_along_axis": ""}.get(instr.op)
    if how is None:
        how = "maximum" if instr.params["largest"] else "minimum"
    routes = axis_routes(instr, index, instr.output.shape)
    return Scatter(routes, instr.output.shape, value.shape, kind, how, base, *_described([index]))


def _overlap_add(instr: Instr, kind: str) -> Scatter | None:
    axis, values = instr.params["axis"], _shape_of(instr)
    windows = ((axis, instr.params["step"]), (len(values) - 1, 1))
    routes = tuple(
        Route(extent, windows if place == axis else ((place, 1),)) for place, extent in enumerate(instr.output.shape)
    )
    return Scatter(routes, instr.output.shape, values, kind, "add")


def _add_strided(instr: Instr, kind: str) -> Scatter | None:
    """Describe an addition at flat indices of an array."""
    terms = tuple((dim, step) for dim, step in enumerate(instr.params["stride"]) if step)
    size = math.prod(instr.params["shape"])
    return Scatter((Route(size, terms, instr.params["offset"]),), (size,), _shape_of(instr), kind, "add")


def _columns(instr: Instr, kind: str) -> Scatter | None:
    """Describe col2im: (image, channel, position in the window, window); values on the border are dropped."""
    p, (images, channels, *size) = instr.params, instr.output.shape
    inside = tuple(
        Route(extent, ((2 + a, p["dilation"][a]), (4 + a, p["stride"][a])), -p["padding"][a][0])
        for a, extent in enumerate(size)
    )
    routes = (Route(images, ((0, 1),)), Route(channels, ((1, 1),)), *inside)
    return Scatter(
        routes, instr.output.shape, (images, channels, *p["kernel"], *window_counts(instr, size)), kind, "add"
    )


def _shape_of(instr: Instr) -> tuple[int, ...]:
    value = instr.inputs[0]
    assert isinstance(value, Var)
    return value.shape


SCATTERS: dict[str, Callable[[Instr, str], Scatter | None]] = {
    "put_add": _by_index,
    "at_set": _by_index,
    "put_along_add": _along,
    "put_along_axis": _along,
    "scatter_extreme": _along,
    "overlap_add": _overlap_add,
    "add_strided": _add_strided,
    "col2im": _columns,
}
