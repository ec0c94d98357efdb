"""The verifier of graphs, which runs after tracing and between passes, so that a faulty pass is found at once.

It checks that every value is defined once and before its use; that shapes and dtypes of results are those of the
primitives for their operands; and that an update has its input's type, with at most one update per input.
"""

from __future__ import annotations

import numpy as np

from glassgrad import errors
from glassgrad.compile.ir.graph import Graph, Instr, Var, type_text
from glassgrad.ops.core import PRIMITIVES


def verify(graph: Graph, *, types: bool = True) -> Graph:
    """Return the graph if it is well-formed.

    Raises:
        GraphError: names the first malformed instruction and its fault.
    """
    defined: set[Var] = set()
    for var in graph.inputs:
        _define(var, defined, "input")
    for var, value in graph.constants:
        _define(var, defined, "constant")
        found = np.asarray(value)
        if found.shape != var.shape or found.dtype != var.dtype:
            raise _fail("constant", f"holds {found.dtype}{list(found.shape)}, declared as {type_text(var)}")
    for number, instr in enumerate(graph.instrs):
        _verify_form(number, instr, defined)
        if types:
            _verify_types(number, instr)
    for out in graph.outputs:
        if isinstance(out, Var) and out not in defined:
            raise _fail("return", f"{out} is never defined")
    _verify_updates(graph, defined)
    return graph


def _fail(what: str, problem: str, where: object = None) -> Exception:
    return errors.GRAPH_MALFORMED(what=what, problem=problem, where=f" ({where})" if where is not None else "")


def _define(var: Var, defined: set[Var], what: str) -> None:
    if var in defined:
        raise _fail(what, f"{var} is defined twice")
    defined.add(var)


def _verify_form(number: int, instr: Instr, defined: set[Var]) -> None:
    for operand in instr.reads():
        if operand not in defined:
            raise _fail(_named(number, instr), f"{operand} is used before it is defined", instr.where)
    for var in instr.outputs:
        if var in defined:
            raise _fail(_named(number, instr), f"{var} is defined twice")
        defined.add(var)
    if instr.op not in PRIMITIVES:
        raise _fail(_named(number, instr), "there is no such primitive", instr.where)


def _named(number: int, instr: Instr) -> str:
    return f"instruction {number}, {instr.op}"


def _verify_types(number: int, instr: Instr) -> None:
    what, primitive = _named(number, instr), PRIMITIVES[instr.op]
    with np.errstate(all="ignore"):  # only the types matter, of computations on placeholders
        found = primitive.abstract(*instr.inputs, **instr.params)
    wanted = found if primitive.multiple else (found,)
    if len(wanted) != len(instr.outputs):
        raise _fail(what, f"has {len(instr.outputs)} results, the primitive gives {len(wanted)}", instr.where)
    for var, aval in zip(instr.outputs, wanted, strict=True):
        if tuple(aval.shape) != var.shape or np.dtype(aval.dtype) != var.dtype:
            given = f"{np.dtype(aval.dtype)}{list(aval.shape)}"
            raise _fail(what, f"declares {type_text(var)}, the primitive gives {given}", instr.where)


def _verify_updates(graph: Graph, defined: set[Var]) -> None:
    inputs, replaced = set(graph.inputs), set[Var]()
    for target, value in graph.updates:
        if target not in inputs:
            raise _fail("update", f"{target} is no input")
        if target in replaced:
            raise _fail("update", f"{target} is replaced twice")
        if value not in defined:
            raise _fail("update", f"{value} is never defined")
        if value.shape != target.shape or value.dtype != target.dtype:
            raise _fail("update", f"{type_text(target)} is replaced by {type_text(value)}")
        replaced.add(target)
