"""Every primitive of the registry as C against its own NumPy forward: samples, and edges of elementwise ops."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import glassgrad as gg
from glassgrad.compile.c.abilities import WITHOUT_C
from glassgrad.compile.c.running import CStep
from glassgrad.compile.ir.graph import Graph, GraphBuilder, Instr
from glassgrad.compile.llvm.without_code import WITHOUT_CODE
from glassgrad.ops.core import REGISTRY, Elementwise
from tests.compile.c.conftest import needs_compiler
from tests.compile.graphs import agree
from tests.ops.cases import cases, params_of

pytestmark = needs_compiler

AT_ONCE = 40  # calls in one program, since a compiler takes long to start
_SHAPE_FROM_VALUES = {"nonzero", "unique", "unique_consecutive", "bincount"}
CASES = [
    case
    for case in cases(differentiable=False)
    if case.prim.name not in _SHAPE_FROM_VALUES | WITHOUT_C.keys() | WITHOUT_CODE.keys()
]
EDGED = [
    prim
    for prim in REGISTRY.values()
    if isinstance(prim, Elementwise) and prim.edge and prim.name not in WITHOUT_C.keys() | WITHOUT_CODE.keys()
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


def chunks(found: list) -> Iterator:
    for first in range(0, len(found), AT_ONCE):
        yield pytest.param(found[first : first + AT_ONCE], id=f"{first}-{first + AT_ONCE}")


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


def test_nine_of_ten_native_ops_have_c():
    native = {name for name in REGISTRY if name not in WITHOUT_CODE}
    assert len(native - WITHOUT_C.keys()) >= 0.9 * len(native)
    assert all(WITHOUT_C.values())


@pytest.mark.parametrize("name", [name for name in WITHOUT_C if name in REGISTRY])
def test_what_has_no_c_is_refused(name):
    prim = REGISTRY[name]
    case = next(case for case in cases(differentiable=False) if case.prim is prim)
    graph, _, _ = program([(prim, *case.draw(dtype=np.float32))])
    with pytest.raises(gg.errors.CompileError):
        CStep(graph)
