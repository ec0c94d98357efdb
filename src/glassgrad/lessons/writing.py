"""Write lessons and exercises to the learner's files, never over an existing one."""

from __future__ import annotations

import re
from pathlib import Path

from glassgrad import errors
from glassgrad.lessons.exercise import Exercise
from glassgrad.lessons.notebook import notebook
from glassgrad.lessons.program import CODE, PROSE, Cell, Program, for_readers

__all__ = ["exercise_text", "file_of", "lesson_notebook", "write"]


def file_of(exercise: Exercise) -> Path:
    """Return the file that an exercise is written to unless another is named."""
    return Path(f"exercise_{exercise.number:02}.py")


def named(exercise: Exercise, path: Path) -> str:
    """Return the name of a file for commands; empty if it is their default."""
    return "" if path == file_of(exercise) else f" {path}"


def exercise_text(exercise: Exercise, path: Path) -> str:
    """Return the starter as a program or, for a file that ends in .ipynb, as a notebook."""
    starter, number = exercise.starter, exercise.number
    ask = f"`glassgrad exercise {number} --check{named(exercise, path)}` judges every step, however many are filled in."
    if path.suffix == ".ipynb":
        head = Cell(
            PROSE, f"# {starter.title}\n\n{starter.summary}\n\n`check({number})` in the last cell judges every step.", 1
        )
        last = Cell(CODE, f"from glassgrad.lessons import check\n\npassed = check({number})", 1)
        return notebook([head, *_by_definition(starter), last])
    text = for_readers(starter.text)
    end = text.index('"""', 3) + 3
    run = f"""

if __name__ == "__main__":
    from glassgrad.lessons import check

    raise SystemExit(not check({number}))
"""
    return f"{text[:end]}\n\n# {ask}{text[end:].rstrip()}\n{run}"


def _by_definition(program: Program) -> list[Cell]:
    """Return the cells of a program, with a separate cell for each function to fill in."""
    cells = []
    for cell in program.cells:
        if cell.kind == PROSE:
            cells.append(cell)
            continue
        parts = re.split(r"\n\n\n(?=def |class |@|\w)", cell.text.strip("\n"))
        cells += [Cell(CODE, part.strip("\n"), cell.line) for part in parts if part.strip()]
    return cells


def lesson_notebook(program: Program) -> str:
    """Return a lesson as a notebook."""
    return notebook([Cell(PROSE, f"# {program.title}\n\n{program.summary}".rstrip(), 1), *program.cells])


def write(path: Path, text: str) -> None:
    """Write a new file.

    Raises:
        InputError: the file exists already, or it cannot be written.
    """
    try:
        with path.open("x", encoding="utf-8", newline="\n") as file:
            file.write(text)
    except FileExistsError:
        raise errors.LESSON_FILE_EXISTS(path=path) from None
    except OSError as error:
        raise errors.LESSON_NOT_WRITTEN(path=path, reason=error.strerror) from None
