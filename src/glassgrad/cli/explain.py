"""`glassgrad explain`."""

from __future__ import annotations

import ast
import importlib.util
import inspect
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
            metavar="NAME=VALUE...", help="Its arguments: numbers or nested lists of numbers, as in Python."
        ),
    ] = None,
    style: Annotated[Format, typer.Option("--format", help="How to write it.")] = Format.text,
) -> int:
    """Show the forward and the backward pass of a function step by step."""
    from glassgrad.explanation import draw
    from glassgrad.explanation import explain as explained

    function = _function(target)
    arguments = _arguments(function, target, values or [])
    if style is Format.svg:
        print(draw(function, **arguments).svg, end="")
        return 0
    explanation = explained(function, **arguments)
    written = {Format.text: explanation.__str__, Format.html: explanation.page}
    print(written[style]() if style in written else getattr(explanation, style.value)())
    return 0


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
