"""The code of a notebook as a program: its cells in order, without the lines for the notebook's host."""

from __future__ import annotations

import json
import re
from pathlib import Path

_HOST = re.compile(r"^(\s*)(?:%|!|\?)(.*)$")
_ASSIGNED = re.compile(r"^(\s*[\w, ]+=\s*)[%!].*$")
_OTHER = ("%%bash", "%%sh", "%%html", "%%javascript", "%%writefile", "%%latex")
_ASKED = re.compile(r"^\s*[\w.]+\?{1,2}\s*$")


def cell(text: str) -> str:
    """Return one cell with its host's lines as `pass`; empty for a cell in another language."""
    if text.lstrip().startswith(_OTHER):
        return ""
    lines = []
    for line in text.splitlines():
        if match := _HOST.match(line):
            line = f"{match[1]}pass  # {match[2]}"
        elif match := _ASSIGNED.match(line):
            line = f"{match[1]}[]"
        elif _ASKED.match(line):
            line = "pass"
        lines.append(line)
    return "\n".join(lines)


def program(notebook: Path) -> str:
    """Return the code of all cells."""
    found = json.loads(notebook.read_text(encoding="utf-8"))
    cells = found["cells"] if "cells" in found else [one for sheet in found["worksheets"] for one in sheet["cells"]]
    code = [one.get("source", one.get("input", "")) for one in cells if one["cell_type"] == "code"]
    return "\n\n".join(cell("".join(source)) for source in code) + "\n"
