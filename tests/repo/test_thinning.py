"""The tables of which the suite runs a part: each name belongs to a test, and every op keeps a case."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.cpu_times import summary
from tests.thinning import LATER, LONG, NONE_OF, ONE_OF, covering, divisor, left_out

TESTS = Path(__file__).resolve().parent.parent


@pytest.mark.parametrize("where", [*ONE_OF, *sorted(LONG | LATER)])
def test_what_is_named_exists(where: str) -> None:
    file, _, test = where.partition("::")
    assert f"def {test}(" in (TESTS / file).read_text(encoding="utf-8") if test else (TESTS / file).is_file()
    assert divisor(where) > 1 or where in LONG | LATER
    assert where not in LONG & LATER


@pytest.mark.parametrize("where", NONE_OF)
def test_of_a_file_that_is_left_out_every_test_is_slow(where: str) -> None:
    assert "\npytestmark = pytest.mark.slow" in (TESTS / where).read_text(encoding="utf-8")


def item(test: str, op: str, number: int) -> Any:
    case = SimpleNamespace(prim=SimpleNamespace(name=op))
    return SimpleNamespace(nodeid=f"tests/{test}[{op}-{number}]", callspec=SimpleNamespace(params={"case": case}))


def test_every_op_keeps_its_first_case_and_every_third_one_after_it() -> None:
    test = "ops/test_dtypes_registry.py::test_ops"
    items = [item(test, op, number) for op in ("exp", "dot") for number in range(4)]
    assert [one.nodeid.split("[")[1] for one in left_out(items)] == ["exp-1]", "exp-2]", "dot-1]", "dot-2]"]
    assert left_out([item("ops/test_other.py::test_other", "exp", number) for number in range(4)]) == []
    long = [SimpleNamespace(nodeid=f"tests/{where}") for where in sorted(LONG | LATER)]
    assert left_out(long) == long


def test_what_stays_of_a_product_has_each_value_of_each_axis() -> None:
    axes = ("abcde", (1, 2), (None, True, 0.5))
    combinations = covering(*axes)
    assert len({one.values for one in combinations}) == 30
    kept = [one.values for one in combinations if not one.marks]
    assert len(kept) == 5
    for number, axis in enumerate(axes):
        assert {values[number] for values in kept} == set(axis)


def test_times_are_added_up_by_file_and_by_test(tmp_path: Path) -> None:
    times = {"a.py::test_a[1]": "0.5\t1\t0", "a.py::test_a[2::3]": "0\t2\t0.25", "collection gw0": "9\t0\t0"}
    (tmp_path / "times").write_text("".join(f"{spent}\t{name}\n" for name, spent in times.items()))
    lines = [line.split() for line in summary(tmp_path / "times").splitlines()]
    assert lines[:2] == [["3.8", "2", "tests"], ["9.0", "collection", "gw0"]]
    assert lines[2:] == [[], ["3.8", "a.py"], [], ["3.8", "a.py::test_a", "(2)"]]


def test_what_names_no_backend_is_a_numpy_program_here(numpy_target: None, request: pytest.FixtureRequest) -> None:
    from glassgrad.compile import backends

    if not request.config.getoption("--native"):
        assert backends.chosen("auto") == "numpy"
    assert backends.chosen("numpy") == "numpy"
