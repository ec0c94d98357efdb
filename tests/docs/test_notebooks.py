"""The guides that are also notebooks: their cells run as in a notebook, and show the output of the pages.

So tests/docs/test_examples.py leaves them out.
"""

from __future__ import annotations

import doctest
import importlib
import json
import sys
import traceback
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

import glassgrad as gg
from glassgrad.lessons import programs
from tests.docs.test_examples import FLAGS, NOTEBOOKS

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def notebooks() -> Iterator[ModuleType]:
    sys.path.insert(0, str(ROOT / "docs"))
    try:
        yield importlib.import_module("sitegen.notebooks")
    finally:
        sys.path.remove(str(ROOT / "docs"))


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_guide_runs_as_a_notebook(notebooks: ModuleType, name: str, tmp_path: Path, monkeypatch) -> None:
    text = (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8")
    pieces = [piece for piece in notebooks.pieces(text) if piece.kind == "code"]
    assert sum(piece.text.count("\n") + 1 for piece in pieces) >= text.count(">>> ")
    monkeypatch.chdir(tmp_path)
    scope = {"__name__": "__main__"}
    gg.manual_seed(0)
    wrong = []
    for number, piece in enumerate(pieces):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                found = notebooks.run(piece, f"<cell {number}>", scope)
            except Exception as error:
                if not piece.raises:
                    raise
                found = "".join(traceback.format_exception_only(error))
                (example,) = doctest.DocTestParser().get_examples(f">>> 1\n{piece.result}\n")
                wanted = example.exc_msg or ""
            else:
                wanted = piece.result + "\n" if piece.result else ""
        if not doctest.OutputChecker().check_output(wanted, found, FLAGS):
            wrong.append((piece.text, wanted, found))
    assert wrong == []


def test_files_are_notebooks_and_pages_lead_to_them(notebooks: ModuleType) -> None:
    assert tuple(notebooks.GUIDES) == NOTEBOOKS
    files = notebooks.files()
    assert len(files) == len(NOTEBOOKS) + len(programs())
    for place, text in files.items():
        document = json.loads(text)
        assert (document["nbformat"], document["nbformat_minor"]) == (4, 5)
        assert {cell["cell_type"] for cell in document["cells"]} == {"markdown", "code"}, place
        assert "](data.md)" not in text
    made = json.loads(files["files/notebooks/quickstart.ipynb"])["cells"]
    assert any("raises-exception" in cell["metadata"].get("tags", ()) for cell in made)
    assert any("tensor([0.1413, 0.212 ])" in str(cell.get("outputs")) for cell in made)
    assert "(files/notebooks/quickstart.ipynb)" in notebooks.with_link("quickstart", "# Quickstart\n")
    assert "(../files/notebooks/01_chain_rule.ipynb)" in notebooks.with_link("lessons/01_chain_rule", "# One\n")
    assert notebooks.with_link("models", "# Models\n") == "# Models\n"


def test_a_wrong_result_is_seen(notebooks: ModuleType) -> None:
    (prose, code) = notebooks.pieces("# Title\n\n```python\n>>> a = 6\n>>> a * 7\n41\n```\n")
    assert (prose.text, code.text, code.result) == ("# Title", "a = 6\na * 7", "41")
    assert notebooks.run(code, "<cell>", {}) == "42\n"
