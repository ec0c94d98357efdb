"""Record the cost of each test: `make test ARGS="-p tests.cpu_times --cpu-times FILE"`.

A line of FILE contains the processor seconds, children included, of a test's setup, call and teardown, and its name;
the collection of each worker has a separate line. Processor seconds do not depend on other work of the machine.
`python tests/cpu_times.py FILE` adds them up.
"""

from __future__ import annotations

import os
import sys
import time
from collections import defaultdict
from collections.abc import Generator
from pathlib import Path

import pytest

_PHASES = ("setup", "call", "teardown")
_spent: dict[str, dict[str, float]] = defaultdict(dict)


def _now() -> float:
    return time.process_time() + sum(os.times()[2:4])  # and of children that have ended


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--cpu-times", metavar="FILE", help="write the processor seconds of every test to FILE")


def _write(config: pytest.Config, line: str) -> None:
    if path := config.option.cpu_times:
        with Path(path).open("a", encoding="utf-8") as file:  # short lines appended by several workers stay whole
            file.write(line + "\n")


def pytest_collection_finish(session: pytest.Session) -> None:
    if session.items and (session.config.option.numprocesses == 0 or hasattr(session.config, "workerinput")):
        _write(session.config, f"{_now():.3f}\t0\t0\tcollection {os.environ.get('PYTEST_XDIST_WORKER', 'alone')}")


def _timed(item: pytest.Item, phase: str) -> Generator[None, object, object]:
    before = _now()
    try:
        return (yield)
    finally:
        _spent[item.nodeid][phase] = _now() - before


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None, object, object]:
    return (yield from _timed(item, "setup"))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    return (yield from _timed(item, "call"))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, object, object]:
    try:
        return (yield from _timed(item, "teardown"))
    finally:
        spent = _spent.pop(item.nodeid)
        _write(item.config, "\t".join(f"{spent.get(phase, 0.0):.3f}" for phase in _PHASES) + f"\t{item.nodeid}")


def pytest_sessionfinish(session: pytest.Session) -> None:
    _write(session.config, f"{_now():.3f}\t0\t0\tprocess {os.environ.get('PYTEST_XDIST_WORKER', 'controller')}")


def summary(path: Path, rows: int = 40) -> str:
    """Return the sums of a file of times: of everything, and of the dearest files and tests (without parameters)."""
    files: dict[str, float] = defaultdict(float)
    tests: dict[str, float] = defaultdict(float)
    cases: dict[str, int] = defaultdict(int)
    others = []
    for line in path.read_text(encoding="utf-8").splitlines():
        *spent, name = line.split("\t", 3)
        if "::" not in name:
            others.append(f"{float(spent[0]):9.1f}  {name}")
            continue
        seconds, test = sum(map(float, spent)), name.split("[")[0]
        files[name.split("::")[0]] += seconds
        tests[test] += seconds
        cases[test] += 1
    lines = [f"{sum(files.values()):9.1f}  {sum(cases.values())} tests", *others]
    for table in (files, tests):
        lines.append("")
        for name, seconds in sorted(table.items(), key=lambda pair: -pair[1])[:rows]:
            lines.append(f"{seconds:9.1f}  {name}" + (f"  ({cases[name]})" if name in cases else ""))
    return "\n".join(lines)


if __name__ == "__main__":
    print(summary(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 40))
