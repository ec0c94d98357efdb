"""The Graph itself: its printed form, the inputs of its hash, and malformed graphs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from glassgrad import errors
from glassgrad.compile.ir.graph import Graph, GraphBuilder, Instr
from glassgrad.compile.ir.well_formed import verify
from tests.compile.graphs import Builder


def small(scale=2.0, name="w"):
    b = Builder()
    x, w = b.input(4, 3, name="x"), b.input(3, 2, name=name)
    h = x @ w
    return b.build((h * scale).sum(0), 1.5, updates=[(w, w - 0.1 * w)])


def test_prints_one_typed_line_an_instruction():
    assert str(small()) == (
        "graph step(\n"
        "    x: f32[4, 3],\n"
        "    w: f32[3, 2],\n"
        ") {\n"
        "    v0: f32[4, 2] = matmul(x, w)\n"
        "    v1: f32[4, 2] = multiply(v0, 2.0)\n"
        "    v2: f32[2] = sum(v1, axis=(0,), keepdims=False)\n"
        "    v3: f32[3, 2] = multiply(w, 0.1)\n"
        "    v4: f32[3, 2] = subtract(w, v3)\n"
        "    w <- v4\n"
        "    return v2, 1.5\n"
        "}"
    )


def test_names_are_unique_and_the_users():
    builder = GraphBuilder()
    x = builder.input((2,), np.float32, "h")
    y = builder.apply("exp", [x], (2,), np.float32, name="h")
    z = builder.apply("exp", [y], (2,), np.float32, name="h_2")
    builder.apply("exp", [z], (2,), np.float32, name="h")
    text = str(builder.build([z]))
    defined = [line.split(":")[0].strip() for line in text.splitlines() if ": f32[2]" in line]
    assert len(set(defined)) == 4
    assert defined[0] == "h"


def test_hash_depends_on_the_program_alone():
    assert small().key() == small(name="other").key()
    assert small().key() != small(3.0).key()
    one = replace(small(), name="train")
    assert one.key() == small().key()
    swapped = replace(one, outputs=tuple(reversed(one.outputs)))
    assert swapped.key() != small().key()
    assert replace(small(), updates=()).key() != small().key()


@pytest.mark.parametrize(("one", "other"), [(1, 1.0), (1, True), (0.0, -0.0)])
def test_hash_tells_numbers_of_different_kinds_apart(one, other):
    assert small(one).key() != small(other).key()


@pytest.mark.parametrize(("one", "other"), [(False, 0), (1, 1.0), ((1,), (True,)), ((1, 2), ((1, 2),)), ("1", 1)])
def test_hash_tells_parameters_of_different_kinds_apart(one, other):
    graph = small()

    def having(value):
        first, *rest = graph.instrs
        return replace(graph, instrs=(replace(first, params={"axis": value}), *rest))

    assert having(one).key() == having(one).key()
    assert having(one).key() != having(other).key()


@pytest.mark.parametrize("other", [((2,), np.int32), ((2, 1), np.float32), ((2,), np.float64)])
def test_hash_tells_types_apart(other):
    def reading(shape, dtype):
        builder = GraphBuilder()
        return builder.build([builder.input((2,)), builder.input(shape, dtype)])

    assert reading((2,), np.float32).key() != reading(*other).key()


def test_hash_depends_on_constants():
    def with_constant(value):
        b = Builder()
        return b.build(b.input(3) + b.constant(np.full(3, value, np.float32)))

    assert with_constant(1).key() == with_constant(1).key()
    assert with_constant(1).key() != with_constant(2).key()


def test_a_well_formed_graph_passes():
    graph = small()
    assert verify(graph) is graph


def broken(graph: Graph, what: str) -> Graph:
    first, *rest = graph.instrs
    x, _ = graph.inputs
    match what:
        case "used before it is defined":
            return replace(graph, instrs=(*rest, first))
        case "defined twice":
            return replace(graph, instrs=(first, first, *rest))
        case "no such primitive":
            return replace(graph, instrs=(Instr("frobnicate", first.inputs, first.outputs), *rest))
        case "the primitive gives":
            return replace(graph, instrs=(Instr("exp", (x,), first.outputs), *rest))
        case "is never defined":
            return replace(graph, instrs=())
        case "is no input":
            return replace(graph, updates=((first.output, first.output),))
        case "is replaced twice":
            return replace(graph, updates=graph.updates * 2)
        case "is replaced by":
            return replace(graph, updates=((x, graph.updates[0][1]),))
    raise AssertionError(what)


PROBLEMS = [
    "used before it is defined", "defined twice", "no such primitive", "the primitive gives", "is never defined",
    "is no input", "is replaced twice", "is replaced by",
]  # fmt: skip  # a table


@pytest.mark.parametrize("problem", PROBLEMS)
def test_a_malformed_graph_is_refused_by_name(problem):
    with pytest.raises(errors.GraphError, match=problem):
        verify(broken(small(), problem))


def test_a_constant_of_another_type_is_refused():
    b = Builder()
    graph = b.build(b.input(3) + b.constant(np.ones(3, np.float32)))
    wrong = replace(graph, constants=((graph.constants[0][0], np.ones(3)),))
    with pytest.raises(errors.GraphError, match="holds float64"):
        verify(wrong)
