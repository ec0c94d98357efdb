"""Guides and lessons as notebooks for download, made from the pages as they are.

An example of a page becomes cells, one for each result that the page shows, with that result as its output; the rest
of the page is prose. Links to other pages lose their target, which a file on somebody's disk cannot reach.
"""

from __future__ import annotations

import ast
import base64
import contextlib
import doctest
import io
import json
import linecache
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from glassgrad.lessons import programs
from glassgrad.lessons.notebook import notebook
from glassgrad.lessons.program import CODE, PROSE, Cell
from glassgrad.lessons.writing import lesson_notebook

DOCS = Path(__file__).resolve().parents[1]
GUIDES = ("quickstart", "data", "training", "autograd")
FOLDER = "files/notebooks"
_FENCE = re.compile(r"^```(?P<info>\S[^\n]*)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"(?<!!)\[([^\]]+)\]\((?!\w+:)[^()\s]+\)")
_PICTURE = re.compile(r"!\[([^\]]*)\]\((?!\w+:)([^()\s]+)\)")
_TYPES = {".png": "image/png", ".svg": "image/svg+xml"}


@dataclass(frozen=True)
class Shown:
    """A piece of a page: prose, or code and what the page shows as its result."""

    kind: str
    text: str
    result: str = ""

    @property
    def raises(self) -> bool:
        """Whether the page shows an error."""
        return self.result.startswith("Traceback")


def pieces(page: str) -> Iterator[Shown]:
    """Yield the prose and the code of a page, in order."""
    end = 0
    for fence in _FENCE.finditer(page):
        if ">>> " in fence["body"]:
            yield from _prose(page[end : fence.start()])
            yield from _code(fence["body"])
            end = fence.end()
    yield from _prose(page[end:])


def _prose(text: str) -> Iterator[Shown]:
    if text.strip():
        yield Shown(PROSE, text.strip("\n"))


def _code(body: str) -> Iterator[Shown]:
    """Yield the statements of an example up to each result."""
    waiting = ""
    for example in doctest.DocTestParser().get_examples(body):
        waiting += example.source
        if example.want:
            yield Shown(CODE, waiting.rstrip("\n"), example.want.rstrip("\n"))
            waiting = ""
    if waiting:
        yield Shown(CODE, waiting.rstrip("\n"))


def run(piece: Shown, name: str, scope: dict[str, Any]) -> str:
    """Run a cell as a notebook does, and return what it shows: printed text and the value of its last expression."""
    linecache.cache[name] = (len(piece.text), None, piece.text.splitlines(keepends=True), name)
    body = ast.parse(piece.text, name).body
    last = body.pop() if body and isinstance(body[-1], ast.Expr) else None
    with contextlib.redirect_stdout(io.StringIO()) as out:
        exec(compile(ast.Module(body, []), name, "exec"), scope)  # noqa: S102 - a page of this repository
        if last is not None:
            value = eval(compile(ast.Expression(last.value), name, "eval"), scope)  # noqa: S307 - as above
            if value is not None:
                print(repr(value))
    return out.getvalue()


def of_guide(name: str) -> str:
    """Return a guide as a notebook of format 4.5."""
    shown = list(pieces((DOCS / f"{name}.md").read_text(encoding="utf-8")))
    document = json.loads(notebook(Cell(one.kind, _LINK.sub(r"\1", one.text), 1) for one in shown))
    for cell, piece in zip(document["cells"], shown, strict=True):
        if piece.kind == PROSE:
            _attach(cell)
        elif piece.raises:
            cell["metadata"]["tags"] = ["raises-exception"]  # running all cells goes on behind it
        elif piece.result:
            text = (piece.result + "\n").splitlines(keepends=True)
            cell["outputs"] = [{"output_type": "stream", "name": "stdout", "text": text}]
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def _attach(cell: dict[str, Any]) -> None:
    """Put the pictures of a cell into the notebook."""
    text = "".join(cell["source"])
    for _, place in _PICTURE.findall(text):
        file = DOCS / place
        data = base64.b64encode(file.read_bytes()).decode()
        cell.setdefault("attachments", {})[file.name] = {_TYPES[file.suffix]: data}
    attached = _PICTURE.sub(lambda match: f"![{match[1]}](attachment:{Path(match[2]).name})", text)
    cell["source"] = attached.splitlines(keepends=True)


def files() -> dict[str, str]:
    """Return all notebooks by their places in the site."""
    lessons = {f"{FOLDER}/{one.path.stem}.ipynb": lesson_notebook(one) for one in programs()}
    return {f"{FOLDER}/{name}.ipynb": of_guide(name) for name in GUIDES} | lessons


def with_link(name: str, text: str) -> str:
    """Return a page with a link to its notebook below its title, if it has one."""
    stem = name.removeprefix("lessons/")
    if name not in GUIDES and stem not in {one.path.stem for one in programs()}:
        return text
    title, _, rest = text.partition("\n")
    place = "../" * name.count("/") + f"{FOLDER}/{stem}.ipynb"
    return f"{title}\n\n[This page as a notebook]({place})\n{rest}"


__all__ = ["FOLDER", "GUIDES", "Shown", "files", "of_guide", "pieces", "run", "with_link"]
