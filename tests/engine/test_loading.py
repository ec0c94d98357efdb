"""Loading the library: classes made in little time behave as dataclasses do, and collections go on as they were."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from dataclasses import field
from typing import Any

import pytest

from glassgrad import _pauses, _records

PROGRAM = """
import gc, sys
{before}
import glassgrad as gg
gg.tensor([1.0])
print(gc.isenabled(), gc.get_freeze_count() > 0, "pathlib" in sys.modules, gc.get_count()[0] < 5000)
"""


def made_by(dataclass: Any) -> list[Any]:
    class Point:
        x: int
        name: str = field(default="p", compare=False)
        hidden: int = field(default=0, repr=False)

    class Open:
        x: int

    class Alone:
        x: int

    class Own:
        x: int

        def __repr__(self) -> str:
            return "mine"

        def __hash__(self) -> int:
            return 7

    kinds: list[tuple[type, dict[str, bool]]] = [
        (Point, {"frozen": True}), (Open, {}), (Alone, {"eq": False, "slots": True}), (Own, {"frozen": True}),
    ]  # fmt: skip  # a table
    return [dataclass(**options)(kind) for kind, options in kinds]


def test_records_compare_hash_and_print_as_dataclasses_do() -> None:
    """Python's own dataclasses are the oracle."""
    found = []
    for dataclass in (_records.dataclass, dataclasses.dataclass):
        point, plain, alone, own = made_by(dataclass)
        one, other = point(1), point(1, "q", 0)
        found.append([
            one == other, one == point(2), one == point(1, hidden=3), one != (1, "p", 0), hash(one) == hash(other),
            hash(one) == hash(point(2)), repr(one), plain(1) == plain(1), plain.__hash__, repr(plain(1)),
            alone(1) == alone(1), hasattr(alone(1), "__dict__"), hash(alone(1)) == hash(alone(1)), repr(own(1)),
            hash(own(1)), own(1) == own(1), repr(dataclasses.replace(one, x=3)), dataclasses.asdict(one),
        ])  # fmt: skip  # a table
    assert found[0] == found[1]


@pytest.mark.parametrize(("before", "enabled", "frozen"), [("", "True", "False"), ("gc.disable()", "False", "False"),
                                                           ("gc.freeze()", "True", "True")])  # fmt: skip  # a table
def test_loading_leaves_collections_as_they_were(before: str, enabled: str, frozen: str) -> None:
    program = PROGRAM.format(before=before)
    said = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout.split()
    assert said[:2] == [enabled, frozen]
    assert said[2] == "False"  # it takes longer to import than the table that it was used for
    if before == "":
        assert said[3] == "True"  # what was loaded is old


def test_a_module_that_fails_to_load_leaves_collections_on() -> None:
    import gc

    assert gc.isenabled()
    with pytest.raises(ModuleNotFoundError):
        _pauses.load("glassgrad.nothing_of_that_name")
    assert gc.isenabled()
