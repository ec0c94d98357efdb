"""Make the pages of the lessons (docs/lessons) from the files in examples/lessons, with what they print and draw.

A lesson is a program: its docstring is the title, blocks of comments at the left margin are prose in Markdown, the
rest is code. Run it as `python tools/build_lessons.py`.
"""

from __future__ import annotations

import ast
import contextlib
import io
import os
import re
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
LESSONS = ROOT / "examples" / "lessons"
PAGES = ROOT / "docs" / "lessons"


@dataclass(frozen=True)
class Cell:
    """A piece of a lesson: prose, or code that starts at a line of its file."""

    kind: str
    text: str
    line: int


def lessons() -> list[Path]:
    """Return the files of the lessons, in order."""
    return sorted(LESSONS.glob("[0-9][0-9]_*.py"))


def title_of(path: Path) -> str:
    """Return the title: the docstring without its full stop."""
    return (ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or path.stem).rstrip(".")


def cells_of(path: Path) -> list[Cell]:
    """Cut a lesson into prose and code."""
    lines = path.read_text(encoding="utf-8").splitlines()
    body = ast.parse("\n".join(lines)).body
    inside = {  # lines that belong to a statement, where a line that starts with # is no prose
        line for node in body for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }
    start = (body[0].end_lineno or 1) + 1  # behind the docstring
    cells: list[Cell] = []
    for number in range(start, len(lines) + 1):
        text = lines[number - 1]
        kind = "prose" if text.startswith("#") and number not in inside else "code"
        if kind == "prose":
            text = text[2:]
        elif not text and cells and cells[-1].kind == "prose":
            kind, text = "end", ""
        if cells and cells[-1].kind == kind:
            cells[-1] = Cell(kind, f"{cells[-1].text}\n{text}", cells[-1].line)
        else:
            cells.append(Cell(kind, text, number))
    return [cell for cell in cells if cell.kind != "end" and cell.text.strip()]


def run(path: Path, cells: list[Cell]) -> list[str]:
    """Run the code of a lesson and return what each cell printed."""
    before = os.environ.get("LESSON_FIGURES")
    os.environ["LESSON_FIGURES"] = str(PAGES / "figures")
    sys.path.insert(0, str(LESSONS))
    names = {"__name__": "__main__", "__file__": str(path)}
    outputs = []
    try:
        for cell in cells:
            printed = io.StringIO()
            if cell.kind == "code":
                # Empty lines in front keep the numbers of lines right, for tools that read the source.
                code = compile("\n" * (cell.line - 1) + cell.text, str(path), "exec")
                with contextlib.redirect_stdout(printed), np.errstate():
                    exec(code, names)  # noqa: S102 - running the lesson is what it is for
            outputs.append(printed.getvalue())
    finally:
        sys.path.remove(str(LESSONS))
        if before is None:
            del os.environ["LESSON_FIGURES"]
        else:
            os.environ["LESSON_FIGURES"] = before
    return outputs


def page_of(path: Path, outputs: list[str] | None = None) -> str:
    """Return a lesson as Markdown; without outputs, the parts that do not depend on running it."""
    cells = cells_of(path)
    parts = [f"# {title_of(path)}", f"*This page is [a program](../../examples/lessons/{path.name}) that runs.*"]
    for i, cell in enumerate(cells):
        if cell.kind == "prose":
            parts.append(cell.text)
            continue
        code = re.sub(r"  # noqa:[^\n]*", "", cell.text.strip("\n"))
        parts.append(f"```python\n{code}\n```")
        if outputs is not None:
            parts += _shown(outputs[i])
    return "\n\n".join(parts) + "\n"


def _shown(output: str) -> list[str]:
    figures = re.findall(r"^\[figure (\w+)\]$", output, re.MULTILINE)
    text = re.sub(r"^\[figure \w+\]\n", "", output, flags=re.MULTILINE).strip("\n")
    text = text.replace(f"{ROOT}{os.sep}", "")
    shown = [f"```text\n{text}\n```"] if text else []
    return [*shown, *(f"![{name}](figures/{name}.svg)" for name in figures)]


def without_outputs(page: str) -> str:
    """Return a page as `page_of` makes it without running the lesson."""
    page = re.sub(r"```text\n.*?\n```\n\n", "", page + "\n", flags=re.DOTALL)
    return re.sub(r"!\[\w+\]\(figures/\w+\.svg\)\n\n", "", page).rstrip("\n") + "\n"


def index() -> str:
    """Return the list of lessons."""
    lines = [f"{i}. [{title_of(path)}]({path.stem}.md)" for i, path in enumerate(lessons(), start=1)]
    return "\n".join(["# Lessons", "", "Each page is a program that ends with a check.", "", *lines, ""])


def main() -> None:
    """Write all pages."""
    PAGES.mkdir(parents=True, exist_ok=True)
    os.chdir(ROOT)
    for path in lessons():
        (PAGES / f"{path.stem}.md").write_text(page_of(path, run(path, cells_of(path))), encoding="utf-8")
        print(path.stem)
    (PAGES / "index.md").write_text(index(), encoding="utf-8")


if __name__ == "__main__":
    main()
