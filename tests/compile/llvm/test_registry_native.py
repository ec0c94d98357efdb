"""Every primitive of the registry, compiled by itself, against its NumPy forward: samples and edge values."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

import glassgrad as gg
from glassgrad.compile.ir.graph import GraphBuilder
from glassgrad.compile.ir.passes import decompose
from glassgrad.compile.llvm.code_form import forms_of, native_code
from glassgrad.compile.llvm.module.step import StepModule
from glassgrad.compile.llvm.without_code import PARTLY, WITHOUT_CODE
from glassgrad.compile.stages import planned
from glassgrad.ops.core import REGISTRY, Elementwise
from tests.compile.graphs import agree, lower
from tests.ops.cases import cases, params_of

# Results whose shape depends on values cannot be compiled by anyone.
_SHAPE_FROM_VALUES = {"nonzero", "unique", "unique_consecutive", "bincount"}
CASES = [case for case in cases(differentiable=False) if case.prim.name not in _SHAPE_FROM_VALUES]


def _run(prim, args, params):
    """Return (compiled results, eager results) of one call."""
    builder = GraphBuilder()
    operands = [builder.input(arg.shape, arg.dtype) if isinstance(arg, np.ndarray) else arg for arg in args]
    with np.errstate(all="ignore"):
        want = prim.compute(tuple(args), params)
    parts = [np.asarray(part) for part in (want if isinstance(want, tuple) else (want,))]
    from glassgrad.compile.ir.graph import Instr

    outs = tuple(builder.var(part.shape, part.dtype) for part in parts)
    builder.instrs.append(Instr(prim.name, tuple(operands), outs, params))
    step = lower(decompose(builder.build(outs)), threads=1)
    arrays = [arg.copy() for arg in args if isinstance(arg, np.ndarray)]
    return step(*arrays), parts, step


@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["f4", "f8"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_samples(case, dtype):
    args, params = case.draw(dtype=dtype)
    got, want, _ = _run(case.prim, args, params)
    for one, other in zip(got, want, strict=True):
        agree(one, other)


EDGED = [prim for prim in REGISTRY.values() if isinstance(prim, Elementwise) and prim.edge]


@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["f4", "f8"])
@pytest.mark.parametrize("prim", EDGED, ids=lambda prim: prim.name)
def test_edges(prim, dtype):
    """NaN and Inf come out where NumPy has them, for every pair of edge values."""
    with np.errstate(all="ignore"):
        edge = np.array(prim.edge, dtype)
    grids = np.meshgrid(*[edge] * prim.arity, indexing="ij")
    args = [np.ascontiguousarray(grid.reshape(-1)) for grid in grids]
    if prim.name == "where":
        args[0] = args[0] > 0
    got, want, _ = _run(prim, args, params_of(prim))
    agree(got[0], want[0])


@pytest.mark.parametrize("prim", REGISTRY.values(), ids=lambda prim: prim.name)
def test_every_primitive_has_native_code_or_a_reason(prim):
    forms = forms_of(prim)
    assert forms, f"{prim.name} has no native code: derive it from its forward or add a reason to without_code.py"
    assert "host" not in forms or forms == ["host"], f"{prim.name} has native code and a reason against it: {forms}"
    assert native_code(prim).removeprefix("none: ")


def test_the_reasons_are_of_primitives_that_exist():
    assert WITHOUT_CODE.keys() | PARTLY.keys() <= REGISTRY.keys()


# The shapes of an elementwise op make no difference to its code.
ONE_OF_EACH = [case for case in CASES if case.number == 0 or not isinstance(case.prim, Elementwise)]


AT_ONCE = 12


@pytest.mark.parametrize("first", range(0, len(ONE_OF_EACH), AT_ONCE))
def test_no_call_of_the_host_is_silent(first):
    """What is traced and planned goes to the host only where the table says so, and always there."""
    some = ONE_OF_EACH[first : first + AT_ONCE]
    given = [case.draw(dtype=np.float32) for case in some]

    def results(*leaves):
        left = iter(leaves)
        return [
            case.prim(*(next(left) if isinstance(arg, np.ndarray) else arg for arg in args), **params)
            for case, (args, params) in zip(some, given, strict=True)
        ]

    step = gg.compile(results, backend="numpy")  # `planned` is what is looked at
    step(*[gg.tensor(arg) for args, _ in given for arg in args if isinstance(arg, np.ndarray)])
    plan = planned(step.traced, 1).plan
    code = StepModule(plan, 1).code
    solid = [kernel for kernel in plan.kernels if code[kernel].solid is not None]
    hosted = Counter(instr.op for kernel in solid if code[kernel].solid.label == "host" for instr in kernel.instrs)
    assert hosted.keys() <= WITHOUT_CODE.keys() | PARTLY.keys()
    for name, count in Counter(case.prim.name for case in some if case.prim.name in WITHOUT_CODE).items():
        assert hosted[name] >= count, f"{name} has native code after all: take its reason away"
