"""Programs as files: the text, a notebook, and a page that shows the same without Python."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from pathlib import Path

from glassgrad import errors
from glassgrad._version import __version__
from glassgrad.lessons.notebook import notebook
from glassgrad.lessons.playground import gallery
from glassgrad.lessons.playground.events import PANES
from glassgrad.lessons.playground.runner import Event, Runner
from glassgrad.lessons.program import CODE, Cell, Program
from glassgrad.lessons.writing import lesson_notebook

PAGE = Path(__file__).parent / "page"
_PARTS = ("formulas.js", "playground.js", "playground.css")


def kept() -> Path:
    """Return the file that holds the latest text, whatever it was opened from."""
    return Path.home() / ".glassgrad" / "playground.py"


def opened(file: Path | None) -> str:
    """Return the text to begin with: that of a file, the one that was kept, or the first example.

    Raises:
        InputError: the file cannot be read.
    """
    path = kept() if file is None else file
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return gallery.text_of(str(gallery.listed()[0]["name"])) if file is None else ""
    except (OSError, UnicodeDecodeError) as error:
        raise errors.PLAYGROUND_FILE(path=path, reason=getattr(error, "strerror", None) or error) from None


def save(text: str, file: Path | None) -> Path:
    """Write a text to its file, atomically; without a file, to the one that holds the latest text.

    Raises:
        InputError: the file cannot be written.
    """
    from glassgrad.data.atomic import write_atomically

    path = kept() if file is None else file
    try:
        if file is None:
            path.parent.mkdir(exist_ok=True)
        write_atomically(path, text.encode())
    except OSError as error:
        raise errors.PLAYGROUND_FILE(path=path, reason=error.strerror or error) from None
    return path


def exported(text: str, kind: str, runner: Runner, panes: Iterable[str] = PANES) -> tuple[str, bytes]:
    """Return a program as a file and its type: "py", "ipynb", or "html", for which it is run.

    Raises:
        InputError: another kind, or the page was not built.
    """
    if kind == "py":
        return "text/x-python; charset=utf-8", text.encode()
    if kind == "ipynb":
        return "application/x-ipynb+json", as_notebook(text).encode()
    if kind == "html":
        return "text/html; charset=utf-8", as_page(recording(text, runner.run(text, [*panes], 0))).encode()
    raise errors.PLAYGROUND_EXPORT(given=kind)


def as_notebook(text: str) -> str:
    """Return a program as a notebook; comments at the left margin become text, as in lessons.

    Example:
        >>> import json
        >>> json.loads(as_notebook("x = 1"))["cells"][-1]["source"]
        ['x = 1']
    """
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return notebook([Cell(CODE, text, 1)])
    whole = Program(Path("00_playground.py"))
    told = text if ast.get_docstring(tree) else f'"""A program from the playground."""\n{text}'
    vars(whole).update(written=told, text=told)  # no file has it
    return lesson_notebook(whole)


def recording(text: str, events: Iterable[Event]) -> dict[str, object]:
    """Return what a page needs that shows a run without running anything; a loop is shown by what it leaves."""
    told = [event for event in events if event["event"] in {"output", "error", "pane", "stopped"}]
    return {"text": text, "version": __version__, "events": told}


def as_page(data: dict[str, object]) -> str:
    """Return the page as one file that holds a recording.

    Raises:
        InputError: the page was not built.
    """
    from glassgrad.base.drawing.frame import framed_page

    try:
        formulas, script, style = ((PAGE / name).read_text(encoding="utf-8") for name in _PARTS)
    except OSError as error:
        raise errors.PLAYGROUND_FILE(path=PAGE / "playground.html", reason=error.strerror or error) from None
    return framed_page("glassgrad playground", data, formulas + script, style, styles=True)
