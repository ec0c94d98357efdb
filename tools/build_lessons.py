"""Make the pages of the lessons (docs/lessons) from their programs, with their output and figures.

Run `python tools/build_lessons.py` for all lessons, or add the numbers of some.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGES = ROOT / "docs" / "lessons"
sys.path.insert(0, str(ROOT / "src"))

from glassgrad.lessons import Program, exercises, programs  # noqa: E402 - found through the path above
from glassgrad.lessons.running import running  # noqa: E402 - as above

_INTRODUCTION = """\
Each page is a program that ends with a check. They come with glassgrad:

```console
$ glassgrad lesson                     # the list
$ glassgrad lesson 5                   # reads one in the terminal; --run runs it, --notebook FILE makes it a notebook
$ glassgrad exercise 5                 # writes exercise_05.py, a program with gaps; --notebook FILE, a notebook
$ glassgrad exercise 5 --check         # judges every step that is filled in, with a hint for what is wrong
$ glassgrad lesson --quiz              # ten questions on all of them; glassgrad lesson 5 --quiz, those on one
```

A check never shows an answer. `glassgrad exercise 5 --answer STEP` does: the part of the lesson that works it out."""


def run(lesson: Program, figures: Path = PAGES / "figures") -> list[str]:
    """Run the code of a lesson and return what each cell printed; its figures go to a folder."""
    before = os.environ.get("LESSON_FIGURES")
    os.environ["LESSON_FIGURES"] = str(figures)
    outputs = []
    try:
        cells = running(lesson)
        next(cells)
        for _ in lesson.cells:
            with contextlib.redirect_stdout(io.StringIO()) as printed:
                next(cells, None)  # the next one comes when this one has run
            outputs.append(printed.getvalue())
    finally:
        if before is None:
            del os.environ["LESSON_FIGURES"]
        else:
            os.environ["LESSON_FIGURES"] = before
    return outputs


def page_of(lesson: Program, outputs: list[str] | None = None) -> str:
    """Return a lesson as Markdown; without outputs, the parts that do not depend on running it."""
    number = lesson.number
    program = f"../../{lesson.path.relative_to(ROOT).as_posix()}"
    ways = f"*This page is [a program]({program}) that runs: `glassgrad lesson {number} --run`.*"
    if number in {exercise.number for exercise in exercises()}:
        ways = f"{ways[:-1]} *There is an exercise to it: `glassgrad exercise {number}`.*".replace(". *", ". ")
    parts = [f"# {lesson.title}", lesson.summary, ways]
    for i, cell in enumerate(lesson.cells):
        if cell.kind == "prose":
            parts.append(cell.text)
            continue
        parts.append(f"```python\n{cell.code}\n```")
        if outputs is not None:
            parts += _shown(outputs[i])
    return "\n\n".join(parts) + "\n"


def _shown(output: str) -> list[str]:
    figures = re.findall(r"^\[figure (\w+)\]$", output, re.MULTILINE)
    text = re.sub(r"^\[figure \w+\]\n", "", output, flags=re.MULTILINE).strip("\n")
    shown = [f"```text\n{text}\n```"] if text else []
    return [*shown, *(f"![{name}](figures/{name}.svg)" for name in figures)]


def without_outputs(page: str) -> str:
    """Return the page that `page_of` makes without running the lesson."""
    page = re.sub(r"```text\n.*?\n```\n\n", "", page + "\n", flags=re.DOTALL)
    return re.sub(r"!\[\w+\]\(figures/\w+\.svg\)\n\n", "", page).rstrip("\n") + "\n"


def index() -> str:
    """Return the list of lessons."""
    there = {exercise.number for exercise in exercises()}
    lines = [
        f"{one.number}. [{one.title}]({one.path.stem}.md){' (with an exercise)' * (one.number in there)}: {one.summary}"
        for one in programs()
    ]
    return "\n".join(["# Lessons", "", _INTRODUCTION, "", *lines, ""])


def main() -> None:
    """Write the pages of the lessons whose numbers are given, or all."""
    PAGES.mkdir(parents=True, exist_ok=True)
    os.chdir(programs()[0].path.parent)  # so that places in the lessons are short
    chosen = set(map(int, sys.argv[1:]))
    for lesson in programs():
        if not chosen or lesson.number in chosen:
            page = page_of(lesson, run(lesson))
            (PAGES / f"{lesson.path.stem}.md").write_text(page, encoding="utf-8", newline="\n")
            print(lesson.path.stem)
    (PAGES / "index.md").write_text(index(), encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
