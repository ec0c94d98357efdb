"""What was read as text: for people, as JSON, and in the form that GitHub shows beside a change."""

from __future__ import annotations

import json
from collections.abc import Iterator

from glassgrad.doctor.reading.lint import Reading, Remark
from glassgrad.doctor.reading.rule import name_of, words


def text(found: Reading) -> Iterator[str]:
    """Yield the lines for people: the place and the name first, as compilers write them."""
    for one in found.remarks:
        yield f"{one.file}:{one.line}:{one.column}: {one.severity} {one.name}: {one.what}"
        yield f"    -> {one.advice}"
        if one.remedy:
            yield f"       {one.remedy}"
    count, scripts = len(found.remarks), found.scripts
    told = f"{count} finding{'s' * (count != 1)}" if count else "no findings"
    yield f"{told} in {scripts} script{'s' * (scripts != 1)}"


def as_json(found: Reading) -> Iterator[str]:
    """Yield one JSON object with the findings and the files that could not be read."""
    remarks = [{"name": one.name, **_fields(one)} for one in found.remarks]
    unreadable = [vars(one) for one in found.unreadable]
    yield json.dumps({"findings": remarks, "unreadable": unreadable, "scripts": found.scripts}, indent=1)


def _fields(one: Remark) -> dict[str, object]:
    named = ["title", "severity", "path", "cell", "line", "column", "what", "advice", "remedy"]
    return {name: getattr(one, name) for name in named if name != "cell" or one.cell}


def github(found: Reading) -> Iterator[str]:
    """Yield a line for each finding that GitHub's runner turns into a note at the line."""
    levels = {"error": "error", "warning": "warning", "info": "notice"}
    for one in found.remarks:
        place = f"file={_escaped(one.path, True)},line={one.line},col={one.column},title={_escaped(one.name, True)}"
        yield f"::{levels[one.severity]} {place}::{_escaped(f'{one.what}. {one.advice}')}"
    for bad in found.unreadable:
        yield f"::error file={_escaped(bad.path, True)},line={bad.line},col={bad.column}::{_escaped(bad.reason)}"


def _escaped(value: str, is_property: bool = False) -> str:
    for char in "%\r\n" + (":," if is_property else ""):
        value = value.replace(char, f"%{ord(char):02X}")
    return value


def rules() -> Iterator[str]:
    """Yield the names of all rules with their severity."""
    for title, said in words().items():
        yield f"{said.severity:<8} {name_of(title)}"


FORMATS = {"text": text, "json": as_json, "github": github}
