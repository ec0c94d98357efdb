"""PyTorch's samples of every op again, with one test per op: a failing test names its op.

`test_opinfo.py` checks the same in a few long tests. Here, a sample that was accepted before and is now refused also
fails.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="PyTorch's own samples are what is run here")
pytest.importorskip("expecttest", reason="PyTorch's table of samples imports it")

from tests.ops import opinfo  # noqa: E402 - after the checks above
from tests.ops.test_opinfo import infos, stored  # noqa: E402 - after the checks above

pytestmark = pytest.mark.slow  # the suite has the long tests; these are for the search for mutants, and for looking
SAMPLES = 4


def place(info: Any) -> str:
    """Return the module of our op and its name in PyTorch's table."""
    found = opinfo.ours(info)
    assert found is not None
    module = str(getattr(found[1], "__module__", "")).rpartition(".")[2]
    return f"{module}-{opinfo.title(info)}"


@cache
def written() -> dict[str, Any]:
    return stored()


@pytest.mark.parametrize("info", infos(), ids=place)
def test_one_op(info: Any, single_threaded_torch: None) -> None:
    report = opinfo.examine(info, limit=SAMPLES)
    if report is None:  # PyTorch has no samples of it in float64
        return
    if report.op not in opinfo.REASONS:
        assert report.disagrees == []
    known = written()[report.op]["unsupported"]
    assert set(report.unsupported) <= set(known)
