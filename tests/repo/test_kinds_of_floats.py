"""Code that checks the kind of a float includes bfloat16, which NumPy calls "V" (docs/adr/031)."""

from __future__ import annotations

import re
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2] / "src" / "glassgrad"
ROOMS = ("engine", "ops", "nn", "optim", "func", "compile/front", "compile/ir")
ASKED = re.compile(r"""\.kind (?:not in|in|==|!=) "(\w+)\"""")
# Lines that ask for NumPy's own floats, and what they do with the others.
NUMPYS = {"is_bfloat16(": "asks for it beside", "wide_ones": "the floats beside it"}


def without(text: str) -> list[str]:
    """Return the lines that ask for floats, and leave bfloat16 out."""
    found = []
    for line in text.splitlines():
        kinds = [kind for kind in ASKED.findall(line) if "f" in kind and "V" not in kind]
        if kinds and not any(mark in line for mark in NUMPYS):
            found.append(line.strip())
    return found


def test_bfloat16_is_a_float() -> None:
    found = {
        str(path.relative_to(SOURCE)): lines
        for room in ROOMS
        for path in (SOURCE / room).rglob("*.py")
        if (lines := without(path.read_text(encoding="utf-8")))
    }
    assert not found, 'write `in "fV"`'


def test_the_search_finds_what_it_should() -> None:
    assert without('if x.dtype.kind == "f":') == ['if x.dtype.kind == "f":']
    assert without('    return dtype.kind not in "fc"') == ['return dtype.kind not in "fc"']
    assert not without('if x.dtype.kind in "fcV" or y.dtype.kind == "c" or z.kind in "iu":')
