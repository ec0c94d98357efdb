"""Every lesson runs to its check, and the pages in the documentation are made from the lessons as they are."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from glassgrad.lessons import programs

ROOT = Path(__file__).resolve().parents[2]


def tool(name):
    spec = importlib.util.spec_from_file_location(f"tools_{name}", ROOT / "tools" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


BUILD = tool("build_lessons")
TITLES = [
    "chain rule", "linear layer by hand", "log-softmax", "batch norm in one line", "26 steps", "topological order",
    "why reverse mode", "hessian-vector products", "checkpointing", "what clipping does", "five broken training loops",
    "tensor engine in 150 lines", "deep nets did not train", "precision", "find the bug", "watch a gradient",
]  # fmt: skip  # a table


@pytest.mark.parametrize("lesson", programs(), ids=lambda lesson: lesson.path.stem)
def test_lesson_runs_to_its_check(lesson, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    outputs = BUILD.run(lesson, tmp_path)
    checks = [i for i, cell in enumerate(lesson.cells) if cell.kind == "prose" and "## The check" in cell.text]
    assert len(checks) == 1
    assert any("assert" in cell.text for cell in lesson.cells[checks[0] :])
    assert "\n".join(outputs).strip().splitlines()[-1].endswith(".") or "loss before" in outputs[-1]
    for figure in tmp_path.rglob("*.svg"):
        assert ET.parse(figure).getroot().tag.endswith("svg")  # noqa: S314 - our own


@pytest.mark.parametrize("lesson", programs(), ids=lambda lesson: lesson.path.stem)
def test_page_is_made_from_the_lesson_as_it_is(lesson):
    page = ROOT / "docs" / "lessons" / f"{lesson.path.stem}.md"
    text = page.read_text(encoding="utf-8")
    assert BUILD.without_outputs(text) == BUILD.page_of(lesson), "run: python tools/build_lessons.py"
    figures = [line.split("(")[1].rstrip(")") for line in text.splitlines() if line.startswith("![")]
    assert all((page.parent / figure).is_file() for figure in figures)


def test_every_promised_lesson_is_there():
    lessons = programs()
    assert [lesson.number for lesson in lessons] == list(range(1, len(lessons) + 1))
    assert all(lesson.summary.endswith(".") for lesson in lessons)
    for lesson, promised in zip(lessons, TITLES, strict=False):  # later ones may follow
        assert promised in lesson.title.lower()
    index = (ROOT / "docs" / "lessons" / "index.md").read_text(encoding="utf-8")
    assert index == BUILD.index()


def test_the_table_of_wrong_derivations_is_up_to_date():
    wrong = tool("wrong_derivations")
    assert wrong.PAGE.read_text(encoding="utf-8") == wrong.page(), "run: python tools/wrong_derivations.py"
