"""Files and functions stay short: read from the source."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MAX_FILE = 500
MAX_FUNCTION = 60
FOLDERS = ("src", "tests", "benchmarks", "examples", "tools", "docs")


def python_files() -> list[Path]:
    return [file for folder in FOLDERS for file in sorted((ROOT / folder).rglob("*.py"))]


def statements(node: ast.AST) -> Iterator[ast.AST]:
    """All statements below a node; expressions hold none."""
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.expr):
            yield child
            yield from statements(child)


def function_lengths(file: Path) -> Iterator[tuple[str, int, int]]:
    """Name, line and length of every function, its docstring and decorators not counted."""
    for node in statements(ast.parse(file.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        length = (node.end_lineno or node.lineno) - node.lineno + 1
        if ast.get_docstring(node, clean=False) is not None:
            length -= (node.body[0].end_lineno or 0) - node.body[0].lineno + 1
        yield node.name, node.lineno, length


def test_files_are_short() -> None:
    lengths = {file.relative_to(ROOT): len(file.read_text(encoding="utf-8").splitlines()) for file in python_files()}
    assert len(lengths) > 10
    long = {str(file): length for file, length in lengths.items() if length > MAX_FILE}
    assert not long, f"over {MAX_FILE} lines, split them: {long}"


def test_functions_are_short() -> None:
    long = [
        f"{file.relative_to(ROOT)}:{line} {name} has {length} lines"
        for file in python_files()
        for name, line, length in function_lengths(file)
        if length > MAX_FUNCTION
    ]
    assert not long, f"over {MAX_FUNCTION} lines:\n" + "\n".join(long)


def test_a_long_function_is_seen(tmp_path: Path) -> None:
    file = tmp_path / "long.py"
    file.write_text("def f():\n    '''Two\n    lines.'''\n" + "    x = 1\n" * 61)
    assert list(function_lengths(file)) == [("f", 1, 62)]
