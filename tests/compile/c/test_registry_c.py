"""Every primitive of the registry as C against its own NumPy forward: samples, and edges of elementwise ops."""

from __future__ import annotations

import re

import numpy as np
import pytest

import glassgrad as gg
from glassgrad.compile.c.running import CStep
from glassgrad.compile.c.stages import planned
from glassgrad.compile.ir.graph import Graph, GraphBuilder, Instr
from glassgrad.compile.llvm.without_code import PARTLY, WITHOUT_CODE
from glassgrad.ops.core import REGISTRY, Elementwise
from tests.compile.c.conftest import needs_compiler
from tests.compile.graphs import agree
from tests.ops.cases import cases, params_of
from tools.sources import ROOT

pytestmark = needs_compiler

AT_ONCE = 40  # calls in one program, since a compiler takes long to start
_SHAPE_FROM_VALUES = {"nonzero", "unique", "unique_consecutive", "bincount"}


def has_c(case) -> bool:
    """Tell whether C says a call: fused ops stand in a trace as their parts, others may lack native code."""
    borders = dict(case.prim.samples[case.number].params).get("padding", ()) if case.prim.name in PARTLY else ()
    return case.prim.decompose is None and case.prim.name not in WITHOUT_CODE and np.min(borders, initial=0) >= 0


CASES = [case for case in cases(differentiable=False) if case.prim.name not in _SHAPE_FROM_VALUES and has_c(case)]
EDGED = [
    prim for prim in REGISTRY.values() if isinstance(prim, Elementwise) and prim.edge and prim.name not in WITHOUT_CODE
]


def program(calls) -> tuple[Graph, list[np.ndarray], list[np.ndarray]]:
    """Return one graph of many calls, its arguments, and the results of NumPy."""
    builder, given, want, outputs = GraphBuilder(), [], [], []
    for prim, args, params in calls:
        operands = [builder.input(arg.shape, arg.dtype) if isinstance(arg, np.ndarray) else arg for arg in args]
        given += [arg.copy() for arg in args if isinstance(arg, np.ndarray)]
        with np.errstate(all="ignore"):
            found = prim.compute(tuple(args), params)
        parts = [np.asarray(part) for part in (found if isinstance(found, tuple) else (found,))]
        outs = tuple(builder.var(part.shape, part.dtype) for part in parts)
        builder.instrs.append(Instr(prim.name, tuple(operands), outs, params))
        want += parts
        outputs += outs
    return builder.build(outputs), given, want


def compare(calls) -> None:
    graph, given, want = program(calls)
    for one, other in zip(CStep(graph)(*given), want, strict=True):
        agree(one, other)


def chunks(found: list) -> list:
    starts = range(0, len(found), AT_ONCE)
    return [pytest.param(found[first : first + AT_ONCE], id=f"{first}-{first + AT_ONCE}") for first in starts]


@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["f4", "f8"])
@pytest.mark.parametrize("some", chunks(CASES))
def test_samples(some, dtype):
    compare([(case.prim, *case.draw(dtype=dtype)) for case in some])


@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["f4", "f8"])
@pytest.mark.parametrize("some", chunks(EDGED))
def test_edges(some, dtype):
    calls = []
    for prim in some:
        with np.errstate(all="ignore"):
            edge = np.array(prim.edge, dtype)
        grids = np.meshgrid(*[edge] * prim.arity, indexing="ij")
        args = [np.ascontiguousarray(grid.reshape(-1)) for grid in grids]
        if prim.name == "where":
            args[0] = args[0] > 0
        calls.append((prim, args, params_of(prim)))
    compare(calls)


REFUSED = {
    case.prim.name: case for case in reversed(list(cases(differentiable=False))) if case.prim.name in WITHOUT_CODE
}


@pytest.mark.parametrize("name", sorted(REFUSED.keys() - _SHAPE_FROM_VALUES))
def test_what_has_no_native_code_is_refused(name):
    case = REFUSED[name]
    graph, _, _ = program([(case.prim, *case.draw(dtype=np.float32))])
    with pytest.raises(gg.errors.CompileError, match=name):
        planned(graph)


def test_the_page_lists_what_is_refused():
    """One row of the page for each reason of the table, with exactly its ops."""
    page = (ROOT / "docs" / "c_export.md").read_text(encoding="utf-8").split("## What C cannot say")[1]
    rows = [sorted(re.findall(r"`(\w+)`", row)) for row in re.findall(r"^\| (`[^|]+`) \|", page, re.MULTILINE)]
    reasons = [[name for name, one in WITHOUT_CODE.items() if one == reason] for reason in set(WITHOUT_CODE.values())]
    assert sorted(rows) == sorted(map(sorted, reasons)), "write them in docs/c_export.md"
