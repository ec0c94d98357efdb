"""`glassgrad explain`."""

from __future__ import annotations

import ast
import importlib.util
import inspect
import os
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer


class Format(StrEnum):
    """How an explanation is written: tables, a page with the graph and the tables, or a picture of the graph."""

    text = "text"
    markdown = "markdown"
    latex = "latex"
    html = "html"
    svg = "svg"


def explain(
    target: Annotated[str, typer.Argument(metavar="FILE.py:FUNCTION", help="A function that returns one number.")],
    values: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="NAME=VALUE...", help="Its arguments: numbers, or nested lists of numbers as in Python."
        ),
    ] = None,
    style: Annotated[Format, typer.Option("--format", help="How to write it.")] = Format.text,
) -> int:
    """Show the forward and the backward pass of a function step by step."""
    from glassgrad.errors import GlassgradError

    try:
        print(_written(target, values or [], style), end="" if style is Format.svg else "\n")
    except GlassgradError:
        raise
    except Exception as error:
        if not _show_as_users(error, target.rpartition(":")[0]):
            raise
        return 1
    return 0


def _written(target: str, values: list[str], style: Format) -> str:
    from glassgrad.explanation import draw
    from glassgrad.explanation import explain as explained

    function = _function(target)
    arguments = _arguments(function, target, values)
    if style is Format.svg:
        return draw(function, **arguments).svg
    explanation = explained(function, **arguments)
    written: dict[Format, Callable[[], str]] = {Format.text: explanation.__str__, Format.html: explanation.page}
    return str(written[style]() if style in written else getattr(explanation, style.value)())


def _show_as_users(error: Exception, file: str) -> bool:
    """Print an error raised in a user's file, from the file's first frame on; return whether it was one."""
    import traceback

    from glassgrad.errors.tracebacks import trimmed, wanted

    trace = error.__traceback__
    while trace is not None and not _is_same(trace.tb_frame.f_code.co_filename, file):
        trace = trace.tb_next
    unreadable = isinstance(error, SyntaxError) and error.filename is not None and _is_same(error.filename, file)
    if not wanted() or (trace is None and not unreadable):
        return False
    traceback.print_exception(error.with_traceback(trimmed(trace)))
    return True


def _is_same(one: str, other: str) -> bool:
    return os.path.realpath(one) == os.path.realpath(other)


def _function(target: str) -> Callable[..., Any]:
    from glassgrad import errors

    file, _, name = target.rpartition(":")
    path = Path(file)
    if not file or path.suffix != ".py" or not path.is_file():
        raise errors.EXPLAIN_TARGET(target=target)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    function = getattr(module, name, None)
    if not callable(function):
        known = [
            key for key, value in vars(module).items() if inspect.isfunction(value) and value.__module__ == path.stem
        ]
        raise errors.EXPLAIN_FUNCTION(file=file, name=name, known=", ".join(known) or "none")
    found: Callable[..., Any] = function
    return found


def _arguments(function: Callable[..., Any], target: str, values: list[str]) -> dict[str, Any]:
    from glassgrad import errors

    parameters = inspect.signature(function).parameters
    found = {}
    for text in values:
        name, equals, value = text.partition("=")
        if not equals or name not in parameters:
            raise errors.EXPLAIN_ARGUMENT(given=text, target=target, names=", ".join(parameters))
        found[name] = _value(name, value)
    missing = [n for n, p in parameters.items() if n not in found and p.default is inspect.Parameter.empty]
    if missing:
        raise errors.EXPLAIN_MISSING(target=target, names=", ".join(missing), example=f"{missing[0]}=2.0")
    defaults = {name: p.default for name, p in parameters.items() if name not in found}
    return {name: (found | defaults)[name] for name in parameters}


def _value(name: str, text: str) -> Any:
    import numpy as np

    from glassgrad import errors

    try:
        value = ast.literal_eval(text)
        return np.array(value, dtype=np.float64) if isinstance(value, list | tuple) else value
    except (ValueError, SyntaxError) as error:
        raise errors.EXPLAIN_VALUE(name=name, given=text) from error
