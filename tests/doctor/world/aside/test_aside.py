"""The form of the programs that are kept aside; what the doctor says to them is no part of it."""

from __future__ import annotations

import ast
import hashlib
import re

import pytest

from tests.doctor.world import building
from tests.doctor.world.aside import PROGRAMS
from tests.doctor.world.program import HEADS, MARK, Program
from tools.sources import ROOT, text_of

NAMES = [program.name for program in PROGRAMS]
ADDRESSES = [address for program in PROGRAMS for address in program.source.split()]
FINDINGS = set(re.findall(r"^### (.+)$", text_of(ROOT / "docs" / "findings.md"), re.MULTILINE))


def test_there_are_a_hundred() -> None:
    assert len(PROGRAMS) >= 100
    assert len(set(NAMES)) == len(NAMES)


def test_each_has_an_address_of_this_half_and_no_other_has_it() -> None:
    assert all(program.source for program in PROGRAMS)
    assert len(set(ADDRESSES)) == len(ADDRESSES)
    for address in ADDRESSES:
        assert re.fullmatch(r"https://[\w.-]+/\S+", address), address
        assert hashlib.sha256(address.encode()).hexdigest()[0] in "89abcdef", address


def test_no_address_is_in_the_building_half() -> None:
    folder = ROOT / "tests" / "doctor" / "world" / "building"
    assert folder.joinpath("__init__.py").samefile(building.__file__)
    texts = "".join(text_of(file) for file in sorted(folder.glob("*.py")))
    assert [address for address in ADDRESSES if f'{address}"' in texts or f"{address} " in texts] == []


@pytest.mark.parametrize("library", HEADS)
@pytest.mark.parametrize("program", PROGRAMS, ids=NAMES)
def test_both_scripts_are_python_with_marked_lines(program: Program, library: str) -> None:
    fault, lines = program.faulty(library)
    twin = program.healthy(library)
    assert ast.dump(ast.parse(fault)) != ast.dump(ast.parse(twin))
    assert lines
    assert all(fault.splitlines()[line - 1].strip() for line in lines)
    assert MARK.strip() not in fault + twin
    assert len(fault.splitlines()) - len(HEADS[library].splitlines()) <= 42


@pytest.mark.parametrize("program", PROGRAMS, ids=NAMES)
def test_the_accepted_findings_have_titles(program: Program) -> None:
    assert set(program.rules) <= FINDINGS
