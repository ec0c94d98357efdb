"""Every lesson runs to its check, and the pages in the documentation come from the current lessons."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from glassgrad.compile.llvm.module.target import host
from glassgrad.lessons import Program, programs
from tests.lessons.rounding import other_roundings, outcome

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
    "backpropagation in c",
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


@pytest.mark.parametrize("number", [13, 16])  # with the trainings that end elsewhere after another rounding
def test_a_check_holds_for_another_rounding(number, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with other_roundings(seed=1):
        printed, failed = outcome(programs()[number - 1], tmp_path)
    assert not failed
    assert printed


@pytest.mark.slow
@pytest.mark.parametrize("lesson", programs(), ids=lambda lesson: lesson.path.stem)
def test_checks_hold_for_all_roundings(lesson, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for seed in range(8):
        with other_roundings(seed):
            assert outcome(lesson, tmp_path)[1] == "", seed


@pytest.mark.slow
@pytest.mark.parametrize("core", ["Haswell", "Sandybridge", "Nehalem", "Katmai"])
def test_checks_hold_for_the_products_of_other_processors(core):
    """OpenBLAS has a way to add up for each kind of processor; these four run on every one with AVX2."""
    if "+avx2" not in host().features.split(","):
        pytest.skip("one of these processors has AVX2, and this one lacks it")
    done = subprocess.run(
        [sys.executable, "-m", "tests.lessons.rounding", "--once"],
        env={**os.environ, "OPENBLAS_CORETYPE": core, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])},
        cwd=ROOT,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split("\n")[:-1] == [f"== {lesson.path.stem}" for lesson in programs()]


def test_a_check_that_fails_is_told(tmp_path):
    path = tmp_path / "17_wrong.py"
    path.write_text('"""A title.\n\nA line.\n"""\n\n# Prose.\n\nx = 1\nassert x == 2\n', encoding="utf-8")
    assert outcome(Program(path), tmp_path) == ("", "line 9: assert x == 2")


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
