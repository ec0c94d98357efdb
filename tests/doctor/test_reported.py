"""The table of the documentation equals the stored results."""

from __future__ import annotations

import json
from pathlib import Path

from tests.doctor.faults import FAULTS, table


def test_the_page_shows_the_results_that_are_kept() -> None:
    here = Path(__file__)
    kept = [json.loads(line) for line in (here.parent / "reported.jsonl").read_text(encoding="utf-8").splitlines()]
    page = (here.parents[2] / "docs" / "doctor.md").read_text(encoding="utf-8")
    assert "\n".join(table(kept)) in page
    right = {kind: [one["right"] for one in kept if one["kind"] == kind] for kind in ("fault", "healthy")}
    faults, healthy = right["fault"], right["healthy"]
    assert f"That is {sum(faults)} of {len(faults)} faults ({sum(faults) / len(faults):.0%}".replace("%", " %") in page
    assert f"and all of {len(healthy)} healthy runs without an alarm" in page
    assert all(healthy)
    for fault in FAULTS:
        found = [one["right"] for one in kept if one["kind"] == "fault" and one["name"].startswith(f"{fault.name}: ")]
        assert sum(found) >= 0.95 * len(found), fault.name
    seeds = sorted({one["seed"] for one in kept})
    command = f"python -m tests.doctor.faults {kept[0]['half']} {seeds[0]} --seeds {len(seeds)} --table"
    assert command in page
    assert kept[0]["half"] == "reporting"
    planted = {
        (f"{fault.name}: {task}", library) for fault in FAULTS for task in fault.tasks for library in ("ours", "torch")
    }
    assert {(one["name"], one["library"]) for one in kept if one["kind"] == "fault"} == planted
