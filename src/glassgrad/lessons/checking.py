"""Judge a learner's answers step by step, and separate errors in their code from wrong results."""

from __future__ import annotations

import json
import linecache
import sys
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from glassgrad import errors
from glassgrad.lessons.exercise import OPEN, Exercise, Names, Step, first_hint
from glassgrad.lessons.gaps import is_open
from glassgrad.lessons.limits import TooLongError, limited
from glassgrad.lessons.program import execute

__all__ = ["ERROR", "LIMIT", "NOT_YET", "RIGHT", "WRONG", "LoadError", "Outcome", "is_loading", "judge", "load"]

RIGHT, WRONG, ERROR, NOT_YET = "right", "wrong", "error", "open"
LIMIT = 5.0  # seconds for one step; a right answer takes a fraction of a second

_LOADING: list[Path] = []  # files being run: a call of `check` in one of them does nothing


@dataclass(frozen=True)
class Outcome:
    """The result of one step: its state, and a hint or an error message."""

    step: str
    state: str
    text: str = ""


def is_loading() -> bool:
    """Tell whether a learner's program is being run by `load`."""
    return bool(_LOADING)


class LoadError(Exception):
    """The learner's program cannot be run; the message names their line."""


class EndlessError(LoadError):
    """The learner's program does not come to an end."""


def load(path: Path, limit: float = LIMIT) -> Names:
    """Run a learner's program, a Python file or a notebook, and return its names.

    Raises:
        LoadError: it fails; the message is the line and the error.
    """
    names: Names = {"__name__": "exercise", "__file__": str(path)}
    sys.path.insert(0, str(path.resolve().parent))
    _LOADING.append(path)
    try:
        for file, text in _pieces(path):
            try:
                code = compile(text, file, "exec")
            except (SyntaxError, ValueError) as error:
                raise LoadError(_of_syntax(error, file)) from None
            with _reported({file}), limited(limit):
                execute(code, names)
    finally:
        _LOADING.remove(path)
        sys.path.remove(str(path.resolve().parent))
    return names


def _pieces(path: Path) -> Iterator[tuple[str, str]]:
    """Yield the name and the text of each piece of a program; a notebook has one for each cell of code."""
    try:
        text = path.read_text(encoding="utf-8")
        if path.suffix != ".ipynb":
            linecache.checkcache(str(path))
            yield str(path), text
            return
        cells = [cell for cell in json.loads(text)["cells"] if cell["cell_type"] == "code"]
    except OSError as error:
        raise errors.EXERCISE_UNREADABLE(path=path, reason=error.strerror) from None
    except (ValueError, KeyError, TypeError):
        raise errors.EXERCISE_UNREADABLE(path=path, reason="it is neither a notebook nor text in UTF-8") from None
    for number, cell in enumerate(cells, start=1):
        source = "".join(cell["source"])
        source = "\n".join("" if line.lstrip().startswith(("%", "!")) else line for line in source.splitlines()) + "\n"
        file = f"{path}, cell {number}"
        linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
        yield file, source


@contextmanager
def _reported(files: set[str]) -> Iterator[None]:
    """Turn any exception of a learner's code into a LoadError that names their line; an interrupt passes through."""
    try:
        yield
    except (KeyboardInterrupt, LoadError):
        raise
    except TooLongError as error:
        raise EndlessError(f"{_line_of(error, files)}This does not come to an end, and was stopped.") from None
    except errors.GlassgradError as error:
        raise LoadError(f"{_line_of(error, files)}{error}") from None
    except BaseException as error:  # noqa: BLE001 - a learner's program may raise anything, SystemExit too
        place = _line_of(error, files) or "What it returns cannot be judged.\n"
        raise LoadError(f"{place}{_said(error)}") from None


def _of_syntax(error: SyntaxError | ValueError, file: str) -> str:
    if not isinstance(error, SyntaxError):
        return str(error)
    return f"{_place(file, error.lineno or 1)}: {(error.text or '').strip()}\n{type(error).__name__}: {error.msg}"


def _place(file: str, line: int) -> str:
    _, comma, cell = file.partition(", cell ")
    return f"cell {cell}, line {line}" if comma else f"line {line}"


def _line_of(error: BaseException, files: set[str]) -> str:
    """Return the learner's last line on the way to an error, and its text; nothing if there is none."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename in files]
    if not frames:
        return ""
    return f"{_place(frames[-1].filename, frames[-1].lineno or 1)}: {frames[-1].line}\n"


def _said(error: BaseException) -> str:
    name = type(error).__name__
    return f"{name}: {error}" if str(error) else name


def judge(exercise: Exercise, names: Names, limit: float = LIMIT, only: Step | None = None) -> Iterator[Outcome]:
    """Judge the steps of an exercise, or one of them; each is judged independently of the others.

    Example:
        >>> from glassgrad.lessons.exercise import exercises
        >>> first = exercises()[0]
        >>> {outcome.state for outcome in judge(first, first.given)}  # nothing is filled in
        {'open'}
    """
    endless: set[str] = set()  # names whose call did not end: not called again
    for step in exercise.steps if only is None else (only,):
        again = endless.intersection(step.takes)
        if again:
            yield Outcome(step.name, ERROR, f"Not tried: {', '.join(sorted(again))} did not come to an end above.")
            continue
        try:
            yield _outcome(step, exercise, names, limit)
        except EndlessError as error:
            endless.update(name for name in step.takes if name != "given")
            yield Outcome(step.name, ERROR, str(error))


def _outcome(step: Step, exercise: Exercise, names: Names, limit: float) -> Outcome:
    needed = dict.fromkeys(one.partition(".")[0] for one in (*step.takes, *step.gaps) if one != "given")
    gone = [name for name in needed if name not in names]
    if gone:
        return Outcome(step.name, ERROR, f"{gone[0]} is not there any more; the exercise needs something of that name.")
    left = [text for name in step.gaps if (text := is_open(name, names, exercise.given)) is not None]
    if left:
        return Outcome(step.name, NOT_YET, max(left))
    arguments = {name: exercise.given if name == "given" else names[name] for name in step.takes}
    files = {str(names.get("__file__", "")), *(code.co_filename for code in _codes(names))}
    try:
        with _reported(files), limited(limit), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a wrong attempt may divide by zero; only its result is judged
            hint = first_hint(step.judge(**arguments))
    except EndlessError:
        raise
    except LoadError as error:
        return Outcome(step.name, ERROR, str(error))
    if hint == OPEN:
        return Outcome(step.name, NOT_YET)
    return Outcome(step.name, RIGHT) if hint is None else Outcome(step.name, WRONG, hint)


def _codes(names: Names) -> Iterator[Any]:
    for thing in list(names.values()):
        code = getattr(thing, "__code__", None)
        if code is not None and getattr(thing, "__globals__", None) is names:
            yield code
