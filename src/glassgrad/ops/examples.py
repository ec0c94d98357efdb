"""Examples for the functions of the op table, whose docstrings are made at run time, and for related functions.

`examples.txt` holds a call and its result for each of them. `python tools/examples.py` runs the calls and writes the
results; a test compares them.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import FunctionType
from typing import Any

from glassgrad.base import documents

FILE = f"{__file__.removesuffix('.py')}.txt"
_SETUP = ">>> import glassgrad as gg"


@cache
def table() -> dict[str, str]:
    """Return the calls and their results by function name, without the prefix `glassgrad.`."""
    with open(FILE, encoding="utf-8") as file:  # noqa: PTH123 - `pathlib` takes longer to import than this to read
        sections = file.read().split("\n\n[")[1:]
    return {name: text.strip("\n") for name, _, text in (section.partition("]\n") for section in sections)}


def show(module: str, functions: Mapping[str, Any]) -> None:
    """Complete the docstrings of a public module's functions with shared arguments, an example and its result."""
    prefix = f"{module}.".removeprefix("glassgrad.")
    for name, function in functions.items():
        if not isinstance(function, FunctionType) or (function.__module__ == "glassgrad" and module != "glassgrad"):
            continue
        documents.complete(module, name, function)
        example = table().get(prefix + name)
        if example is not None and ">>> " not in (function.__doc__ or ""):
            lines = "\n        ".join([_SETUP, *example.split("\n")])
            function.__doc__ = f"{(function.__doc__ or '').rstrip()}\n\n    Example:\n        {lines}\n    "
        documents.say_result(module, name, function)


__all__ = ["FILE", "show", "table"]
