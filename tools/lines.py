"""Print the number of lines of code in a tree of Python files, by package and in total.

A line counts if it contains a token of code. Docstrings, comments and blank lines do not count; every line of a longer
string counts, unless the string is a docstring.

    python tools/lines.py                  # src/glassgrad, by package
    python tools/lines.py --depth 2 src/glassgrad/compile
"""

from __future__ import annotations

import argparse
import ast
import io
import tokenize
from collections import Counter
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[1] / "src" / "glassgrad"
_NO_CODE = frozenset(
    {
        tokenize.COMMENT,
        tokenize.NL,
        tokenize.NEWLINE,
        tokenize.INDENT,
        tokenize.DEDENT,
        tokenize.ENCODING,
        tokenize.ENDMARKER,
    }
)


def lines_of(text: str) -> int:
    """Return the number of lines of a program that contain code."""
    docstrings = set(_docstrings(ast.parse(text)))
    found: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in _NO_CODE and token.start not in docstrings:
            found.update(range(token.start[0], token.end[0] + 1))
    return len(found)


def _docstrings(tree: ast.Module) -> list[tuple[int, int]]:
    """Return the positions of docstrings: of modules, classes and functions, and below attributes."""
    bodies = [node.body for node in ast.walk(tree) if isinstance(node, ast.Module | ast.ClassDef)]
    bodies += [node.body[:1] for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    return [
        (one.lineno, one.col_offset)
        for body in bodies
        for one in body
        if isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant) and isinstance(one.value.value, str)
    ]


def by_package(root: Path, depth: int = 1) -> Counter[str]:
    """Return the lines of code below a folder, by the first `depth` parts of a file's path without its suffix."""
    found: Counter[str] = Counter()
    for file in sorted(root.rglob("*.py")):
        parts = file.relative_to(root).with_suffix("").parts[:depth]
        found["/".join(parts)] += lines_of(file.read_text(encoding="utf-8"))
    return found


def main() -> None:
    """Print a table, the largest package first."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, default=SOURCE)
    parser.add_argument("--depth", type=int, default=1, help="parts of a path that make a row (default 1)")
    given = parser.parse_args()
    found = by_package(given.folder, given.depth)
    for name, count in found.most_common():
        print(f"{count:8,}  {name}")
    print(f"{found.total():8,}  in total")


if __name__ == "__main__":
    main()
