"""`glassgrad explain FILE.py:function`."""

from __future__ import annotations

import pytest

SOURCE = """
import glassgrad as gg

def f(x, y=3.0):
    return 3 * x**2 + x * y + 5 * y**2

def norm(w):
    return (w * w).sum()

def vector(x):
    return x * 2

def mistaken(x):
    return look(x * 2)

def look(x):
    raise KeyError("a mistake of my own")
"""


@pytest.fixture
def source(folder):
    (folder / "example.py").write_text(SOURCE, encoding="utf-8")
    return "example.py"


def test_a_function_is_explained_at_a_point(glassgrad, source):
    result = glassgrad("explain", f"{source}:f", "x=2.0")
    assert (result.code, result.err) == (0, "")
    lines = result.out.splitlines()
    assert lines[0] == "Forward of f"
    assert any(line.split()[:5] == ["v1", "x", "**", "2", "4"] for line in lines)
    assert any("example.py:5" in line for line in lines)
    assert [line.split() for line in lines if line.startswith(("x ", "y "))] == [["x", "2", "15"], ["y", "3", "32"]]


@pytest.mark.parametrize(
    ("style", "start"),
    [("markdown", "**Forward of `f`**"), ("latex", r"\paragraph{Forward}"), ("html", "<!doctype html>")],
)
def test_other_formats(glassgrad, source, style, start):
    result = glassgrad("explain", f"{source}:f", "x=2.0", "y=1", "--format", style)
    assert result.code == 0
    assert result.out.startswith(start)


def test_lists_are_arrays(glassgrad, source):
    result = glassgrad("explain", f"{source}:norm", "w=[1, 2.5]")
    assert result.code == 0
    assert "w      [1. , 2.5]  [2., 5.]" in result.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["example.py"], "expected FILE.py:FUNCTION"),
        (["nothing.py:f", "x=1"], "expected FILE.py:FUNCTION"),
        (["example.py:g"], "defines no function 'g'; expected one of: f, norm, vector"),
        (["example.py:f"], "needs values for x; give them as in: x=2.0"),
        (["example.py:f", "z=1"], "'z=1' is not an argument of example.py:f; expected NAME=VALUE with one of: x, y"),
        (["example.py:f", "x=abc"], "x=abc is neither a number nor a list of numbers"),
        (["example.py:vector", "x=[1,2]"], "the function returned shape (2,)"),
    ],
)
def test_what_cannot_be_explained(glassgrad, source, arguments, message):
    result = glassgrad("explain", *arguments)
    assert result.code in {1, 2}
    assert message in result.err
    assert result.out == ""


@pytest.fixture
def own_frames_left_out(monkeypatch):
    monkeypatch.setenv("GLASSGRAD_FULL_TRACEBACK", "0")


@pytest.mark.usefixtures("own_frames_left_out")
def test_an_error_of_the_function_is_the_users_alone(glassgrad, source, folder):
    result = glassgrad("explain", f"{source}:mistaken", "x=2.0")
    assert (result.code, result.out) == (1, "")
    lines = result.err.splitlines()
    assert [line.strip() for line in lines if "File" in line] == [
        f'File "{folder / source}", line 14, in mistaken',
        f'File "{folder / source}", line 17, in look',
    ]
    assert lines[-1] == "KeyError: 'a mistake of my own'"


@pytest.mark.parametrize(
    ("text", "last"),
    [("def f(x:\n  return 1\n", "SyntaxError: "), ("import nothing_of_that_name\n", "ModuleNotFoundError: ")],
)
@pytest.mark.usefixtures("own_frames_left_out")
def test_a_file_that_cannot_be_imported_says_why(glassgrad, folder, text, last):
    (folder / "broken.py").write_text(text, encoding="utf-8")
    result = glassgrad("explain", "broken.py:f", "x=2.0")
    assert (result.code, result.out) == (1, "")
    assert result.err.splitlines()[-1].startswith(last)
    assert "glassgrad/cli" not in result.err
    assert "importlib" not in result.err
