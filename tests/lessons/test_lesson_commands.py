"""`glassgrad lesson` and `glassgrad exercise` from a learner's view, in a terminal and as notebooks."""

from __future__ import annotations

import itertools
import json
import linecache
import re
import subprocess
import sys
from pathlib import Path

import pytest

from glassgrad import errors
from glassgrad.cli import run
from glassgrad.lessons import check, exercises, programs
from glassgrad.lessons.checking import LoadError, load
from glassgrad.lessons.limits import TooLongError, limited
from glassgrad.lessons.writing import exercise_text, lesson_notebook, write

SOLUTIONS = Path(__file__).parent / "solutions"


@pytest.fixture
def glassgrad(tmp_path, monkeypatch, capsys):
    """Call the command line in an empty folder; returns the exit status, and what it wrote to both streams."""
    monkeypatch.chdir(tmp_path)

    def call(*arguments):
        capsys.readouterr()
        code = run([str(one) for one in arguments])
        return (code, *capsys.readouterr())

    return call


def solved(number):
    """Write the solution of an exercise over its file, above its last lines, and return the file."""
    (exercise,) = [one for one in exercises() if one.number == number]
    path = Path(f"exercise_{number:02}.py")
    filled = (SOLUTIONS / exercise.starter.path.name).read_text(encoding="utf-8")
    path.write_text(path.read_text(encoding="utf-8").replace("\nif __name__", f"\n{filled}\n\nif __name__"), "utf-8")
    return path


def run_notebook(path, execute=True):
    """Run the cells of a notebook one after the other, as a kernel does: each is a file for whoever reads it."""
    document = json.loads(path.read_text(encoding="utf-8"))
    assert (document["nbformat"], document["nbformat_minor"]) == (4, 5)
    assert len({cell["id"] for cell in document["cells"]}) == len(document["cells"])
    names = {"__name__": "__main__", "cells": len(document["cells"])}
    for cell in document["cells"]:
        assert cell["source"]
        assert cell["metadata"] == {}
        if cell["cell_type"] == "code":
            assert (cell["execution_count"], cell["outputs"]) == (None, [])
            text, file = "".join(cell["source"]) + "\n", f"{path.stem}-{cell['id']}.py"
            linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
            code = compile(text, file, "exec")
            if execute:
                exec(code, names)  # noqa: S102 - running the notebook is the test
    return names


def test_lessons_and_exercises_are_listed(glassgrad):
    code, out, err = glassgrad("lesson")
    assert (code, err) == (0, "")
    for lesson in programs():
        assert f"{lesson.number:>3}  {lesson.title}\n" in out
    code, out, err = glassgrad("exercise")
    assert (code, err) == (0, "")
    assert "  5  The 26 gradients of the names MLP  (29 steps)" in out
    assert len(exercises()) >= 11


def test_a_lesson_is_plain_text_in_a_pipe(glassgrad):
    code, out, _ = glassgrad("lesson", "05")
    assert code == 0
    assert out.startswith("5. The names MLP backward in 26 steps, and then in fewer\n=====")
    assert "    def forward(C, W1, b1" in out
    assert "noqa" not in out
    assert "\x1b" not in out
    assert glassgrad("lesson", "softmax")[1].startswith("3. Softmax")


def test_a_lesson_runs(glassgrad):
    code, out, _ = glassgrad("lesson", 6, "--run")
    assert code == 0
    assert "\n## Sending at once is wrong\nsent at once: -1.8654" in out
    assert "Two orders, both topological, both right.\n" in out
    assert "--figures FOLDER keeps them" in out


def test_a_lesson_keeps_its_figures_and_is_a_notebook_on_request(glassgrad, monkeypatch):
    monkeypatch.setenv("LESSON_FIGURES", "")  # put back afterwards
    code, out, _ = glassgrad("lesson", 1, "--run", "--figures", "drawn", "--notebook", "lesson.ipynb")
    assert code == 0
    assert out.startswith("wrote lesson.ipynb\n")
    assert run_notebook(Path("lesson.ipynb"), execute=False)
    assert "[figure 01_graph]" in out
    assert Path("drawn/01_graph.svg").read_text(encoding="utf-8").startswith("<svg")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["lesson", "99"], "there is no lesson '99'; there are:\n  1  The chain rule on numbers\n"),
        (["lesson", "nonsense"], "there is no lesson 'nonsense'"),
        (["lesson", "by hand"], "could be more than one lesson:\n  2  A linear layer by hand\n  5  The names MLP"),
        (["lesson", "--run"], "--run is for one lesson; name it, as in `glassgrad lesson 5 --run`"),
        (["exercise", "--check"], "--check is for one exercise; name it, as in `glassgrad exercise 5 --check`"),
        (["lesson", "1", "--notebook", "x.txt"], "the name of a notebook ends in .ipynb, given x.txt"),
        (["exercise", "1", "a.py", "--notebook", "b.ipynb"], "a.py and --notebook cannot be given together"),
        (["exercise", "0"], "there is no exercise '0'"),
        (["exercise", "5", "--check"], "no file exercise_05.py to check; `glassgrad exercise 5` writes it"),
        (["exercise", "5", "mine.py", "--check"], "`glassgrad exercise 5 mine.py` writes it"),
        (["exercise", "5", "--answer", "dlogit"], "exercise 5 has no step 'dlogit'; its steps are:\n  dlogprobs\n"),
        (["exercise", "5", "no/folder.py"], "cannot write no/folder.py: No such file"),
    ],
)
def test_what_there_is_not_is_said(glassgrad, arguments, words):
    code, out, err = glassgrad(*arguments)
    assert (code, out) == (2, "")
    assert words in err


def test_an_exercise_is_written_once_and_judged(glassgrad):
    code, out, _ = glassgrad("exercise", 2)
    assert (code, out.splitlines()[-1]) == (0, "glassgrad exercise 2 --check")
    text = Path("exercise_02.py").read_text(encoding="utf-8")
    assert text.count("= ...") == 7
    code, _, err = glassgrad("exercise", 2)
    assert code == 2
    assert "exercise_02.py already exists and was not overwritten" in err
    assert Path("exercise_02.py").read_text(encoding="utf-8") == text

    code, out, _ = glassgrad("exercise", 2, "--check")
    assert code == 1
    assert "  open   dy; dx; dw; db; backward as a whole; the layer; a layer used twice\n" in out
    assert out.endswith("0 of 7 steps right, 7 not done yet.\n")

    path = Path("exercise_02.py")
    path.write_text(text.replace("dy = ...", "dy = 2 * y / y.size").replace("db = ...", "db = dy"), encoding="utf-8")
    code, out, _ = glassgrad("exercise", 2, "--check")
    assert code == 1
    line = path.read_text(encoding="utf-8").splitlines().index("    db = dy") + 1
    assert "  right  dy\n  open   dx; dw\n  WRONG  db\n" in out
    assert f"         line {line}: db = dy\n" in out
    assert "sum(" not in out  # the answer
    assert out.endswith('glassgrad exercise 2 --answer "db"\n')

    path.write_text(text, encoding="utf-8")
    solved(2)
    code, out, _ = glassgrad("exercise", 2, "--check")
    assert (code, out.splitlines()[-1]) == (0, "All 7 steps are right.")


def test_an_answer_is_shown_when_it_is_asked_for(glassgrad):
    code, out, _ = glassgrad("exercise", 5, "--answer", "dC")
    assert code == 0
    assert out.startswith('dC: lesson 5, "Backwards"\n')
    assert "    np.add.at(dC, contexts, demb)\n" in out
    assert "first simplification" not in out


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (
            "import numpy as np\n",
            "import numpy as np\n1 / 0\n",
            "line 10: 1 / 0\nZeroDivisionError: division by zero\n",
        ),
        ("import numpy as np\n", "import numpy as np)\n", "line 9: import numpy as np)\nSyntaxError: unmatched ')'\n"),
        ("import numpy as np\n", "raise SystemExit\n", "line 9: raise SystemExit\nSystemExit\n"),
    ],
)
def test_an_error_is_the_line_of_the_learner_and_the_message(glassgrad, old, new, words):
    glassgrad("exercise", 2)
    path = Path("exercise_02.py")
    path.write_text(path.read_text(encoding="utf-8").replace(old, new, 1), encoding="utf-8")
    code, out, err = glassgrad("exercise", 2, "--check")
    lines = re.sub(r"line \d+", "line N", words)
    assert (code, err) == (1, "")
    assert re.sub(r"line \d+", "line N", out) == f"exercise_02.py cannot be run:\n{lines}"


def test_an_error_in_one_step_does_not_hide_the_others(glassgrad):
    glassgrad("exercise", 8)
    path = solved(8)
    text = path.read_text(encoding="utf-8")
    text = text.replace("    return 2 / curvature", "    return 2 / (curvature - curvature)")
    path.write_text(text.replace("def whole(product", "def old(product"), encoding="utf-8")
    code, out, _ = glassgrad("exercise", 8, "--check")
    line = text.splitlines().index("    return 2 / (curvature - curvature)") + 1
    assert code == 1
    assert f"  ERROR  the largest rate\n         line {line}: return 2 / (curvature - curvature)\n" in out
    assert "  ERROR  the whole matrix\n         whole is not there any more" in out
    assert out.count("  right  ") == 3


def test_what_does_not_end_is_ended(tmp_path):
    path = tmp_path / "endless.py"
    path.write_text("x = 0\nwhile True:\n    x += 1\n", encoding="utf-8")
    with pytest.raises(LoadError, match=r"line [23]: .*\nThis does not come to an end"):
        load(path, limit=0.2)
    with pytest.raises(TooLongError), limited(0.1):
        any(number < 0 for number in itertools.count())
    with limited(0.05):
        done = True
    assert done


def test_the_file_judges_itself(glassgrad):
    glassgrad("exercise", 1)
    process = subprocess.run([sys.executable, "exercise_01.py"], capture_output=True, text=True, check=False)
    assert process.returncode == 1
    assert process.stdout.endswith("0 of 9 steps right, 9 not done yet.\n")


def test_a_number_without_an_exercise_is_said():
    with pytest.raises(errors.InputError, match="no exercise 99"):
        check(99)


@pytest.mark.parametrize("lesson", programs(), ids=lambda lesson: lesson.path.stem)
def test_a_lesson_runs_as_a_notebook(tmp_path, lesson):
    path = tmp_path / "lesson.ipynb"
    write(path, lesson_notebook(lesson))
    # All of them run in test_lessons.py; here it is the cells that matter, for which the quickest will do.
    assert run_notebook(path, execute=lesson.number in {1, 6, 10})["cells"] == len(lesson.cells) + 1


@pytest.mark.parametrize("exercise", exercises(), ids=lambda exercise: exercise.starter.path.stem)
def test_an_exercise_runs_as_a_notebook(tmp_path, capsys, exercise):
    path = tmp_path / "mine.ipynb"
    write(path, exercise_text(exercise, path))
    assert run_notebook(path)["passed"] is False
    assert f"0 of {len(exercise.steps)} steps right" in capsys.readouterr().out


def test_a_notebook_is_judged_by_the_command_and_within(glassgrad, capsys):
    path = Path("mine.ipynb")
    assert glassgrad("exercise", 1, path)[1].splitlines()[-1] == "glassgrad exercise 1 --check mine.ipynb"
    document = json.loads(path.read_text(encoding="utf-8"))
    code = [cell for cell in document["cells"] if cell["cell_type"] == "code"]
    code[-1]["source"] = [(SOLUTIONS / "01_chain_rule.py").read_text(encoding="utf-8"), *code[-1]["source"]]
    code[0]["source"].insert(0, "%matplotlib inline\n")
    path.write_text(json.dumps(document), encoding="utf-8")
    code_of, out, _ = glassgrad("exercise", 1, "--check", "--notebook", path)
    assert (code_of, out.splitlines()[-1]) == (0, "All 9 steps are right.")
    code[0]["source"] = ["\n", "1 / 0\n"]
    path.write_text(json.dumps(document), encoding="utf-8")
    assert "cell 1, line 2: 1 / 0\nZeroDivisionError" in glassgrad("exercise", 1, "--check", path)[1]
    path.write_text("no notebook", encoding="utf-8")
    assert "it is neither a notebook" in glassgrad("exercise", 1, "--check", path)[2]
