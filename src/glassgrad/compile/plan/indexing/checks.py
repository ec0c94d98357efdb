"""Checks of the indices that a program uses: of inputs before it runs, and of computed values while it runs.

Native code clamps indices, so that it never accesses memory outside of an array; these checks raise the errors.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from glassgrad.compile.ir.graph import Graph, Instr, Operand, Var
from glassgrad.compile.ir.passes.rewriter import Rewriter
from glassgrad.compile.ir.passes.rules import fits, pattern
from glassgrad.compile.plan.indexing.bounds import Computed, IndexCheck, wrong_index
from glassgrad.compile.plan.view_chains import only_moves
from glassgrad.ops.core import PRIMITIVES, Array
from glassgrad.ops.places import PLACES, IndexArray, makes_axis, spec_entries


def index_uses(instr: Instr) -> Iterable[tuple[Operand, int, int]]:
    """Iterate over the operands that are indices, with the least allowed value and the extent of the axis."""
    match instr.op:
        case "getitem":
            source = instr.inputs[0]
            shape = source.shape if isinstance(source, Var) else ()
            yield from _of_spec(instr, shape, 1)
        case "put_add":
            yield from _of_spec(instr, instr.output.shape, 1)
        case "at_set":
            yield from _of_spec(instr, instr.output.shape, 2)
        case "take_along_axis":
            source = instr.inputs[0]
            assert isinstance(source, Var)
            yield instr.inputs[1], 0, _extent(source.shape, instr)
        case "put_along_add":
            yield instr.inputs[1], 0, _extent(instr.output.shape, instr)
        case "put_along_axis" | "scatter_extreme":
            yield instr.inputs[2], 0, _extent(instr.output.shape, instr)
        case "one_hot":
            yield instr.inputs[0], 0, instr.params["count"]


def _extent(shape: tuple[int, ...], instr: Instr) -> int:
    return shape[instr.params["axis"]] if shape else 1


def _of_spec(instr: Instr, shape: tuple[int, ...], skip: int) -> Iterable[tuple[Operand, int, int]]:
    arrays = iter(instr.inputs[skip:])
    axis = 0
    for part in spec_entries(instr.params["spec"], shape):
        if makes_axis(part):
            continue
        if isinstance(part, IndexArray):
            yield next(arrays), 0 if part is PLACES else -shape[axis], shape[axis]
        axis += 1


def find_checks(graph: Graph) -> tuple[list[IndexCheck], list[Computed]]:
    """Return the checks of inputs, and the indices that the program computes."""
    producer = graph.producers()
    inputs, constants = set(graph.inputs), dict(graph.constants)
    checks: dict[tuple[Var, int, Var], IndexCheck] = {}
    computed: dict[tuple[Var, int, int], Computed] = {}
    for instr in graph.instrs:
        for operand, low, extent in index_uses(instr):
            if not isinstance(operand, Var) or not operand.size:
                continue
            base, select = _origin(operand, producer)
            counted = _counted_from_either_end(base, extent, producer)
            if counted is not None and counted[0] in inputs and low == 0:
                base, select = counted
                low = -extent
            if np.dtype(np.uint64) in {base.dtype, operand.dtype}:
                low = 0  # native code and NumPy interpret a huge value as a negative one
            chosen = _labels(base, producer)
            if base in inputs:
                check = IndexCheck(base, extent, low, select=select, where=instr.where)
                checks.setdefault((base, extent, operand), check)
            elif chosen is not None and chosen[0] in inputs:
                base, select, spare = chosen
                check = IndexCheck(base, extent, low, spare, select=select, where=instr.where)
                checks.setdefault((base, extent, operand), check)
            elif base in constants:
                _check_constant(np.asarray(constants[base]), low, extent, instr)
            else:
                computed.setdefault((operand, low, extent), Computed(operand, low, extent, instr.where))
    # A wrong label is reported as a label, even if it is used as an index elsewhere.
    return sorted(checks.values(), key=lambda check: check.low < 0), list(computed.values())


def _labels(index: Var, producer: dict[Var, Instr]) -> tuple[Var, Callable[[Array], Array], int] | None:
    """Return (argument, selection, ignored value) behind ``where(labels != ignored, labels, 0)``, which losses write.

    So labels are checked before the step changes anything, instead of as computed values.
    """
    found: dict[str, Any] = {}
    if not fits(_NOT_IGNORED, index, producer.get, found):
        return None
    labels, spare = found["x"], found["n"]
    if not isinstance(labels, Var) or not isinstance(spare, int):
        return None
    if labels.dtype.kind not in "iu" or labels.dtype == np.uint64:
        return None
    base, select = _origin(labels, producer)
    return base, select, spare


def _counted_from_either_end(
    index: Var, extent: int, producer: dict[Var, Instr]
) -> tuple[Var, Callable[[Array], Array]] | None:
    """Return (argument, selection) behind ``where(index < 0, index + extent, index)``, NumPy's negative indices."""
    found: dict[str, Any] = {}
    counted = fits(_FROM_EITHER_END, index, producer.get, found) and found["n"] == extent
    return _origin(found["x"], producer) if counted and isinstance(found["x"], Var) else None


_NOT_IGNORED = pattern("where(not_equal(x, n), x, 0)")
_FROM_EITHER_END = pattern("where(less(x, 0), x + n, x)")


def _check_constant(values: Array, low: int, extent: int, instr: Instr) -> None:
    if values.size and (values.min() < low or values.max() >= extent):
        worst = values.min() if values.min() < low else values.max()
        raise wrong_index(worst, low, extent, "a constant", instr.where)


def _origin(var: Var, producer: dict[Var, Instr]) -> tuple[Var, Callable[[Array], Array]]:
    """Follow views and widening casts to the origin of a Var; also return the function that selects its part."""
    steps: list[Instr] = []
    while (instr := producer.get(var)) is not None and (only_moves(instr) or _widens(instr)):
        steps.append(instr)
        source = instr.inputs[0]
        assert isinstance(source, Var)
        var = source

    def select(array: Array) -> Array:
        for step in reversed(steps):
            array = PRIMITIVES[step.op].evaluate(array, **step.params)
        return array

    return var, select


def _widens(instr: Instr) -> bool:
    """Tell whether an instruction casts integers to a dtype that can represent all of them."""
    source = instr.inputs[0] if instr.op == "astype" else None
    if not isinstance(source, Var) or source.dtype.kind not in "iu" or instr.output.dtype.kind not in "iu":
        return False
    return np.can_cast(source.dtype, instr.output.dtype, "safe")


def with_guards(graph: Graph, computed: list[Computed]) -> Graph:
    """Add an output for every computed index that tells whether all its values are in range.

    If one is not, state keeps its old values.
    """
    if not computed:
        return graph
    rewriter = Rewriter(graph)
    for instr in graph.instrs:
        rewriter.keep(instr)
    flags: list[Operand] = []
    for index in computed:
        var = index.var
        # Small and unsigned types cannot represent the bounds.
        wide = var if var.dtype == np.int64 else rewriter.apply("astype", var, dtype=np.dtype(np.int64))
        low = rewriter.apply("greater_equal", wide, index.low)
        inside = rewriter.apply("logical_and", low, rewriter.apply("less", wide, index.extent))
        axes = tuple(range(var.ndim))
        flags.append(rewriter.apply("all", inside, axis=axes, keepdims=False))
    fine = functools.reduce(lambda a, b: rewriter.apply("logical_and", a, b), flags)
    updates = [(target, rewriter.apply("where", fine, value, target)) for target, value in graph.updates]
    return rewriter.finish((*graph.outputs, *flags), updates)
