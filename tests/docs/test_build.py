"""The pages generated from the code: nothing is missing, and the table of ops makes no false claim."""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import glassgrad as gg
from glassgrad import errors
from glassgrad.ops.core import REGISTRY, Elementwise, Fused

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def assemble() -> Iterator[ModuleType]:
    sys.path.insert(0, str(ROOT / "docs"))
    try:
        yield importlib.import_module("sitegen.assemble")
    finally:
        sys.path.remove(str(ROOT / "docs"))


@pytest.fixture(scope="module")
def made(assemble: ModuleType) -> dict[str, str]:
    return {name: page() for name, page in assemble.MADE.items()}


def test_every_primitive_and_public_function_is_in_the_table(made: dict[str, str], assemble: ModuleType) -> None:
    from glassgrad.ops import names

    text = made["ops"]
    rows = assemble.optable.public_ops()
    named = {name for row in rows for name in (row.name, *row.aliases)}
    assert set(names.PUBLIC) <= named
    shown = set(re.findall(r"<td><a id='[^']*'></a><b>([^<]+)</b>", text))
    behind = {part.name for row in rows if row.kind != "composed" for part in row.parts}
    assert set(REGISTRY) - {"pick"} <= shown | behind
    silent = [row.name for row in rows if not row.formula]
    assert not silent, f"no formula and no docstring: {silent}"


def test_every_layer_loss_optimizer_and_schedule_is_listed(made: dict[str, str]) -> None:
    from glassgrad import nn, optim

    text = made["layers"]
    listed = set(re.findall(r"<td><a id='[^']*'></a><b>([^<]+)</b>", text))
    named = {*nn.__all__, *optim.__all__, *optim.lr_scheduler.__all__}
    others = {"Buffer", "Parameter", "Summary", "get_optimizer", "summary"}
    others |= {"data_parallel", "functional", "init", "lr_scheduler", "parallel", "parameter", "swa_utils", "utils"}
    assert named - listed == others
    assert {"xavier_uniform_", "orthogonal_"} <= listed
    assert "<td></td>" not in text, "a class without a docstring"
    assert "agree</span>" in text


def test_the_table_says_what_becomes_of_complex_numbers(made: dict[str, str], assemble: ModuleType) -> None:
    rows = {row.name: row for row in assemble.optable.public_ops()}
    text = made["ops"]
    z = gg.tensor([[1 + 2j, 3j], [0.5j, 1 - 1j]])
    for name in ("exp", "sin", "matmul", "softmax", "relu", "erf", "norm", "cumsum"):
        function = getattr(gg, name)
        try:
            # Softmax takes complex numbers only with a real dtype, as PyTorch's does.
            function(z, *{"matmul": (z,), "softmax": (0, gg.float64), "cumsum": (0,)}.get(name, ()))
        except errors.KindError:
            taken = False
        else:
            taken = True
        assert rows[name].takes_complex == taken, name
        shown = text.partition(f"<b>{name}</b>")[2].partition("</tr>")[0]
        assert f"<td>{'right' if taken else 'refused'}</td>" in shown


def test_composed_functions_name_their_parts(assemble: ModuleType) -> None:
    rows = {row.name: row for row in assemble.optable.public_ops()}
    assert {part.name for part in rows["addcmul"].parts} == {"multiply", "add"} or rows["addcmul"].parts
    assert "var" in {part.name for part in rows["std"].parts}
    assert rows["tanh"].kind == "elementwise"
    assert rows["tanh"].derivative == "1 - y**2"
    assert rows["tanh"].torch
    assert rows["gammaln"].torch, "found under PyTorch's name lgamma"


def covered() -> dict[str, set[str]]:
    """Return for each sign the primitives that its test really runs."""
    import tests.func.test_registry_transforms as transforms
    import tests.ops.test_dtypes_registry as dtypes
    import tests.ops.test_primitives as primitives

    pytest.importorskip("torch", reason="the edges are compared with PyTorch's")
    import tests.ops.test_edges_registry as edges

    def of(cases: Any) -> set[str]:
        return {case.prim.name for case in cases}

    return {
        "D": of(primitives.ALL), "L": of(primitives.ALL), "F": of(transforms.DIFFERENTIABLE),
        "2": of(transforms.DIFFERENTIABLE), "V": of(transforms.ALL),
        "E": {prim.name for prim in edges.entries()}, "B": {prim.name for prim in dtypes.SEVERAL},
        "N": {prim.name for prim in dtypes.UFUNCS},
        "=": {case.prim.name for case in primitives.ALL if isinstance(case.prim, Fused)},
    }  # fmt: skip  # a table


def test_signs_are_true(assemble: ModuleType) -> None:
    from sitegen import coverage

    tested = covered()
    assert set(tested) == {check.sign for check in coverage.CHECKS}
    for prim in REGISTRY.values():
        claimed = set(coverage.signs(prim))
        assert claimed == {sign for sign, names in tested.items() if prim.name in names}, prim.name


def test_the_tests_that_are_named_exist(assemble: ModuleType) -> None:
    from sitegen import coverage

    for check in coverage.CHECKS:
        file, _, function = check.test.partition("::")
        assert f"def {function}(" in (ROOT / file).read_text(encoding="utf-8"), check.test


def test_all_messages_are_listed(made: dict[str, str]) -> None:
    from glassgrad import errors
    from glassgrad.errors.kinds import Message

    text = made["messages"]
    listed = set(re.findall(r"<code>([A-Z][A-Z0-9_]+)</code>", text.replace("<wbr>", "")))
    errors.__dir__()  # loads the files of all areas
    entries = {name for name, value in vars(errors).items() if isinstance(value, Message)}
    assert len(entries) > 300
    assert entries <= listed


def test_every_differentiable_elementwise_op_is_verified_by_every_means() -> None:
    sys.path.insert(0, str(ROOT / "docs"))
    from sitegen import coverage

    for prim in REGISTRY.values():
        if isinstance(prim, Elementwise) and prim.differentiable:
            assert set("DF2VLE") <= set(coverage.signs(prim)), prim.name
