"""`lint`: files, notebooks and folders, selections, comments that silence, and the forms of the listing."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from glassgrad import errors
from glassgrad.doctor.reading import listing
from glassgrad.doctor.reading.lint import Reading, lint, names
from glassgrad.doctor.reading.rule import words

FAULT = "import torch\nloss = torch.ones(1)\nloss.backward\n"
HEALTHY = "import torch\n"


def written(folder: Path, text: str, name: str = "train.py") -> str:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return str(path)


def notebook(*cells: str | list[str]) -> str:
    made = [{"cell_type": "markdown", "source": ["# a title"]}]
    made += [{"cell_type": "code", "source": cell} for cell in cells]
    return json.dumps({"cells": made})


def told(found: Reading) -> list[tuple[str, int]]:
    return [(one.name, one.line) for one in found.remarks]


def test_a_remark_has_place_words_and_remedy(tmp_path: Path) -> None:
    path = written(tmp_path, FAULT)
    (one,) = lint([path]).remarks
    assert (one.file, one.line, one.column, one.cell) == (path, 3, 1, 0)
    assert (one.name, one.severity, one.remedy) == ("method-not-called", "error", "loss.backward()")
    assert one.what == "loss.backward names a method and does not call it"


def test_exit_codes(tmp_path: Path) -> None:
    good, bad, broken = (
        written(tmp_path, text, f"{name}.py")
        for name, text in {"good": HEALTHY, "bad": FAULT, "broken": "def f(:\n"}.items()
    )
    assert [lint(paths).code for paths in ([good], [good, bad], [bad, broken])] == [0, 1, 2]


def test_a_file_with_a_syntax_error_is_named_with_its_line_and_the_others_are_read(tmp_path: Path) -> None:
    broken = written(tmp_path, "import torch\nx = (1\n", "broken.py")
    found = lint([broken, written(tmp_path, FAULT)])
    assert found.scripts == 1
    assert told(found) == [("method-not-called", 3)]
    assert str(found.unreadable[0]).startswith(f"{broken}:2:5: not readable as Python: ")


@pytest.mark.parametrize("text", ["\0", "# coding: nothing\n", "x = " + "(" * 2000])
def test_what_is_no_program_is_unreadable(text: str, tmp_path: Path) -> None:
    found = lint([written(tmp_path, text)])
    assert (found.code, found.scripts, len(found.unreadable)) == (2, 0, 1)


def test_an_expression_of_a_thousand_terms_is_no_error_of_ours(tmp_path: Path) -> None:
    terms = " + ".join(["x"] * 960)
    text = f"import torch\nfor x in y:\n    optimizer.zero_grad()\n    loss.backward()\n    z = {terms}\n"
    found = lint([written(tmp_path, text), written(tmp_path, FAULT, "other.py")])
    assert told(found) == [("method-not-called", 3)]
    assert "nested too deeply" in str(found.unreadable[0])


def test_folders_are_searched_without_hidden_ones_and_each_file_is_read_once(tmp_path: Path) -> None:
    for name in ("a.py", "inner/b.py", ".hidden/c.py", "__pycache__/d.py", "venv/e.py"):
        written(tmp_path, FAULT, name)
    written(tmp_path, notebook(FAULT), "inner/f.ipynb")
    written(tmp_path, "loss.backward", "notes.txt")
    found = lint([str(tmp_path), str(tmp_path / "a.py")])
    assert [Path(one.path).name for one in found.remarks] == ["a.py", "b.py", "f.ipynb"]
    assert found.scripts == 3


def test_cells_of_notebooks_are_one_program(tmp_path: Path) -> None:
    cells = ["%matplotlib inline\nimport torch\n!pip list\n", ["loss = torch.ones(1)\n", "loss?\n", "loss.backward"]]
    path = written(tmp_path, notebook("%%bash\nif ls; then\n", *cells), "book.ipynb")
    (one,) = lint([path]).remarks
    assert (one.cell, one.line, one.file) == (4, 3, f"{path}:cell 4")
    broken = lint([written(tmp_path, notebook("import torch", "x = 1\nx = ("), "broken.ipynb")])
    assert ":cell 3:2:" in str(broken.unreadable[0])


@pytest.mark.parametrize("text", ["[]", "{}", '{"cells": ', "null"])
def test_what_is_no_notebook_is_unreadable(text: str, tmp_path: Path) -> None:
    found = lint([written(tmp_path, text, "book.ipynb")])
    assert (found.code, len(found.unreadable)) == (2, 1)


def test_paths_that_cannot_be_read_are_errors(tmp_path: Path) -> None:
    with pytest.raises(errors.InputError, match="there is no file or folder nowhere"):
        lint(["nowhere"])
    with pytest.raises(errors.InputError, match="is no script: its name ends neither in"):
        lint([written(tmp_path, "", "notes.txt")])


def test_rules_are_selected_and_ignored_by_name(tmp_path: Path) -> None:
    path = written(tmp_path, f"{FAULT}torch.no_grad()\n")
    both = ["method-not-called", "no_grad-without-a-block"]
    assert [name for name, _ in told(lint([path]))] == both
    assert [name for name, _ in told(lint([path], select=both[:1]))] == both[:1]
    assert [name for name, _ in told(lint([path], ignore=both[:1]))] == both[1:]
    assert told(lint([path], both, both)) == []
    with pytest.raises(errors.InputError, match=r"no rule is called 'softmax-twise'. Did you mean softmax-twice"):
        lint([path], select=["softmax-twise"])


# --- comments ---


@pytest.mark.parametrize(
    "text",
    [
        "loss.backward  # glassgrad: allow method-not-called because it is shown\n",
        "# glassgrad: allow method-not-called because it is shown\n\n# a word\nloss.backward\n",
        "# glassgrad: allow method-not-called, no_grad-without-a-block because it is so\nloss.step; torch.no_grad()\n",
        "loss.cpu(  # glassgrad: allow method-not-called because the statement goes on\n).backward\n",
    ],
)
def test_a_comment_with_a_reason_silences_a_rule(text: str, tmp_path: Path) -> None:
    assert told(lint([written(tmp_path, f"import torch\n{text}")])) == []


@pytest.mark.parametrize(
    ("comment", "expected"),
    [
        ("allow method-not-called", [("allow-without-a-reason", 3)]),
        ("allow method-not-called because", [("allow-without-a-reason", 3)]),
        ("allow softmax-twice because it is so", [("method-not-called", 3), ("allow-without-an-effect", 3)]),
        ("allow softmax-thrice because it is so", [("method-not-called", 3), ("allow-without-an-effect", 3)]),
        ("allow because it is so", [("method-not-called", 3), ("allow-without-an-effect", 3)]),
    ],
)
def test_a_comment_without_reason_or_effect_is_reported(comment: str, expected: list[object], tmp_path: Path) -> None:
    text = FAULT.replace("loss.backward", f"loss.backward  # glassgrad: {comment}")
    assert told(lint([written(tmp_path, text)])) == expected


def test_a_comment_for_a_rule_that_is_not_applied_is_not_reported(tmp_path: Path) -> None:
    path = written(tmp_path, "import torch\nx = 1  # glassgrad: allow softmax-twice because it was so\n")
    assert told(lint([path])) == [("allow-without-an-effect", 2)]
    assert told(lint([path], ignore=["softmax-twice"])) == []


def test_words_in_texts_are_no_comments(tmp_path: Path) -> None:
    text = FAULT + 'x = "# glassgrad: allow method-not-called because no"\n'
    assert told(lint([written(tmp_path, text)])) == [("method-not-called", 3)]


# --- listings ---


def test_the_text_names_place_rule_and_remedy(tmp_path: Path) -> None:
    path = written(tmp_path, FAULT)
    lines = list(listing.text(lint([path])))
    assert lines[0].startswith(f"{path}:3:1: error method-not-called: ")
    assert lines[-2:] == ["       loss.backward()", "1 finding in 1 script"]
    assert list(listing.text(lint([written(tmp_path, HEALTHY)]))) == ["no findings in 1 script"]


def test_json_holds_everything(tmp_path: Path) -> None:
    paths = [written(tmp_path, FAULT), written(tmp_path, "x = (", "broken.py")]
    found = json.loads("\n".join(listing.as_json(lint(paths))))
    assert found["scripts"] == 1
    assert found["unreadable"][0]["path"] == paths[1]
    (one,) = found["findings"]
    assert (one["name"], one["line"], one["column"], one["severity"]) == ("method-not-called", 3, 1, "error")
    assert set(one) == {*["name", "title", "severity", "path", "line", "column", "what", "advice", "remedy"]}


def test_the_form_of_github_is_one_escaped_line_each(tmp_path: Path) -> None:
    path = written(tmp_path, FAULT, "a,b.py")
    (line,) = listing.github(lint([path]))
    place = f"file={path.replace(',', '%2C')},line=3,col=1,title=method-not-called"
    assert line == f"::error {place}::loss.backward names a method and does not call it. Add the brackets."


def test_the_page_of_findings_lists_what_is_read() -> None:
    page = (Path(__file__).parents[3] / "docs" / "findings.md").read_text(encoding="utf-8")
    headings = re.findall(r"^### (.+)$", page, re.MULTILINE)
    assert [title for title in words() if headings.count(title) != 1] == []
    assert len(names()) == len(set(names()))


def test_neither_numpy_nor_the_engine_is_loaded() -> None:
    program = (
        "import sys, glassgrad.doctor.reading.listing, glassgrad.doctor.reading.lint as reading; reading.lint([]);"
        "print(*[name for name in sys.modules if name.startswith(('numpy', 'glassgrad.engine', 'torch'))])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.split()) == (0, []), done.stderr
