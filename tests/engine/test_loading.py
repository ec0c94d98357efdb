"""Loading the library leaves collections as they were."""

from __future__ import annotations

import subprocess
import sys

import pytest

from glassgrad import _pauses

PROGRAM = """
import gc, sys
{before}
import glassgrad as gg
gg.tensor([1.0])
print(gc.isenabled(), gc.get_freeze_count() > 0, "pathlib" in sys.modules, gc.get_count()[0] < 5000)
"""


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
