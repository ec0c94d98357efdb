"""The table of operations: every reason belongs to a case, every bar is checked, every primitive has a call."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks import ops
from benchmarks.op_cases import FIXED, REASONS, SIDES, SIZED

CASES = {case.name: case for case in (*SIZED, *ops.unwritten(), *FIXED)}


def test_every_reason_belongs_to_a_case_and_a_size() -> None:
    assert set(REASONS) <= set(CASES)
    assert {size for reasons in REASONS.values() for size in reasons} <= {*SIDES, 0}
    assert all(len(reason) > 40 for reasons in REASONS.values() for reason in reasons.values())


def medians(ratio: float) -> dict[str, float]:
    return {"glassgrad": ratio, "PyTorch": 1.0}


def test_a_slow_operation_shows_its_reason_or_that_it_has_none() -> None:
    found = {("reshape", 1_000_000): medians(20.0), ("exp", 1_000_000): medians(5.0), ("sin", 1_000_000): medians(1.0)}
    lines = ops.summary(found)
    assert f"  - reshape: {REASONS['reshape'][1_000_000]}" in lines
    assert "  - exp: no reason is written: missed" in lines
    assert not any(line.startswith("  - sin") for line in lines)


@pytest.mark.parametrize(("ratio", "verdict"), [(1.4, "met"), (1.6, "missed")])
def test_the_convolution_has_a_bar_of_its_own(ratio: float, verdict: str) -> None:
    name = next(case.name for case in FIXED if case.limit is not None)
    assert name.startswith("conv2d")
    assert any(line.startswith(f"- {name}") and verdict in line for line in ops.summary({(name, 0): medians(ratio)}))


@pytest.mark.parametrize("name", [case.name for case in ops.unwritten()])
def test_every_primitive_of_the_table_can_be_called(name: str) -> None:
    case = CASES[name]
    inputs, constants = ops.draw(case, 1)
    results = ops.tensor_library("glassgrad")(case, inputs, constants)()
    assert len(results) == 1 + case.inputs
    assert all(np.isfinite(one.numpy()).all() for one in results)


class Clock:
    """A peer whose turns take a second each, by a clock of its own."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now, self.turns = 0.0, 0
        monkeypatch.setattr(ops.time, "monotonic", lambda: self.now)

    def ask(self, **request: object) -> dict[str, object]:
        if request["do"] == "prepare":
            return {"prints": [[1.0, 1.0]]}
        self.now, self.turns = self.now + 1, self.turns + 1
        return {"seconds": float(self.turns)}


@pytest.mark.parametrize(("until", "turns"), [(0.0, 1), (3.5, 3), (100.0, 5)])
def test_rounds_end_in_time_and_there_is_one_at_least(
    monkeypatch: pytest.MonkeyPatch, until: float, turns: int
) -> None:
    clock = Clock(monkeypatch)
    medians = ops.time_case({"glassgrad": clock}, SIZED[0], 1, 5, [], until)
    assert clock.turns == turns
    assert medians == {"glassgrad": (turns + 1) / 2}
