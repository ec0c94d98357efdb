"""Descriptions of arguments that many functions and classes share, written once and added to their docstrings.

`arguments.txt` holds one line for each argument. A line applies to all names of the modules at the head of its section;
below ``@ name ...`` it applies only to those names and takes precedence. A docstring's own description of an argument
is kept. Names of errors follow an exclamation mark, always below ``@``.

`returns.txt` describes return values in the same way, with a section of shapes and one of dtypes for each module.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from types import CodeType, FunctionType
from typing import Any

FILE = f"{__file__.removesuffix('documents.py')}arguments.txt"
RETURNS = f"{__file__.removesuffix('documents.py')}returns.txt"
_END = re.compile("(?:Example|Examples|Returns|Raises):\n")
# Shapes of arguments before those of the result, and descriptions of arguments whose shape is given nowhere else.
_GIVEN = re.compile(r"((?:\([^()]*\)(?:, | and )?)+) (?:to|gives?) ")
_ANY = (
    "a tensor of any shape; a NumPy array gives an array.|a tensor; the formula says which shapes.|the operands: .*|"
    "the second operand: .*|a matrix .*|matrices, .*|points, .*|tensors of shapes that broadcast.|the weights; .*|"
    "the right-hand side, .*"
)
_ELEMENTWISE = {("x",): "that of `x`", ("x", "other"): "the one that `x` and `other` broadcast to"}
_SECTIONS = ("Args", "Called", "Returns", "Raises", "Attributes", "Example", "Examples")


@cache
def table() -> dict[str, dict[str, str]]:
    """Return the descriptions of arguments: by the module or ``module.name``, then by the argument."""
    found: dict[str, dict[str, str]] = {}
    modules: list[str] = []
    places: list[str] = []
    with open(FILE, encoding="utf-8") as file:  # noqa: PTH123 - `pathlib` takes longer to import than this to read
        text = file.read()
    for line in text.splitlines():
        if line.startswith("["):
            modules = places = line.strip("[]").split()
        elif line.startswith("@"):
            places = [f"{module}.{name}" for module in modules for name in line[1:].split()]
        elif line and not line.startswith("#"):
            names, _, told = line.partition(": ")
            for place in places:
                found.setdefault(place, {}).update(dict.fromkeys(names.split(", "), told))
    return found


@cache
def results() -> dict[str, tuple[str, str]]:
    """Return the shape and dtype of return values, by ``module.name``; an empty string means unknown."""
    found: dict[str, list[str]] = {}
    kind, module = "", ""
    with open(RETURNS, encoding="utf-8") as file:  # noqa: PTH123 - as in `table`
        lines = file.read().splitlines()
    for line in lines:
        if line.startswith("["):
            kind, module = line.strip("[]").split()
        elif line and not line.startswith("#"):
            names, _, told = line.partition(": ")
            for name in names.split():
                found.setdefault(f"{module}.{name}", ["", ""])[kind == "dtype"] = told
    return {name: (shape, dtype) for name, (shape, dtype) in found.items()}


def described(text: str) -> set[str]:
    """Return the names that a docstring describes: under `Args`, or in backticks above the other sections."""
    if "`" not in text and "Args:" not in text:
        return set()  # most functions of the op table; their docstrings are made when the library is loaded
    head = _END.split(text, maxsplit=1)[0]
    names = set(re.findall(r"\w+", " ".join(head.replace("``", "`").split("`")[1::2])))
    if "Args:" in head or "Attributes:" in head:
        for item in re.findall(r"^ +([*\w][\w, *]*):(?= )", head, re.MULTILINE):
            names.update(re.findall(r"\w+", item))
    return names


def complete_all(module: str, names: Mapping[str, Any]) -> None:
    """Complete the docstrings of a module's functions and classes."""
    for name, value in names.items():
        if name[0] != "_" and getattr(value, "__module__", "").startswith("glassgrad"):
            complete(module, name, value)
            say_result(module, name, value) if module == "glassgrad" else say_type(value)


def complete(module: str, name: str, value: Any, facts: Mapping[str, str] | None = None) -> None:
    """Describe in the docstring of a public function or class the arguments that it does not describe yet.

    Args:
        module: the public module, which selects the section of the file.
        name: its name there.
        value: the function or class; anything else is left alone.
        facts: descriptions of its arguments that take precedence over the file.
    """
    text = value.__doc__
    code = _code(value) if text else None
    if code is None:
        return
    told = table()
    own, shared, general = facts or told.get(f"{module}.{name}", {}), told.get(module, {}), told["*"]
    known = described(text)
    found = [
        (one, own.get(one) or shared.get(one) or general.get(one)) for one in _parameters(value) if one not in known
    ]
    lines = [f"{one}: {about}" for one, about in found if about]
    if lines:
        text = value.__doc__ = put(text, "Args", lines)
    if "->" in own:
        text = value.__doc__ = put(text, "Called", [f"shape: {own['->']}.", f"dtype: {own['=>']}."])
    raised = [f"{one[1:]}: {about}" for one, about in own.items() if one[0] == "!"] if own else []
    if raised and raised[0] not in text:
        value.__doc__ = put(text, "Raises", raised)


def say_result(module: str, name: str, value: Any) -> None:
    """Add the shape and dtype (or the type) of the result to a docstring without a `Returns` section."""
    text = value.__doc__
    if not isinstance(value, FunctionType) or not text or "Returns:\n" in text:
        return
    names = _parameters(value)
    if name.endswith("_"):
        lines = [f"`{names[0]}` itself, with its shape and its dtype."]
    else:
        shape, dtype = results().get(f"{module}.{name}", ("", ""))
        if not shape and getattr(getattr(value, "primitive", None), "kind", "") == "elementwise":
            shape = _ELEMENTWISE.get(names, "")
        if not shape:
            if module.partition(".")[2] in {"", "sparse"}:
                say_type(value)
            return
        text = _narrowed(text, names, shape)
        lines = [f"shape: {shape}.", *([f"dtype: {dtype}."] if dtype else [])]
    value.__doc__ = put(text, "Returns", lines)


def _narrowed(text: str, names: Sequence[str], shape: str) -> str:
    """Return a docstring in which arguments described as any tensor get the shape that the result's shape refers to."""
    given = _GIVEN.match(shape)
    for name, one in zip(names, re.findall(r"\([^()]*\)", given[1]) if given else [], strict=False):
        text = re.sub(rf"^( +{name}): (?:{_ANY})$", rf"\1: a tensor {one}.", text, flags=re.MULTILINE)
    return text


def say_type(value: Any) -> None:
    """Add the type of the result, if it has a name, to a docstring without a `Returns` section."""
    if isinstance(value, FunctionType) and value.__doc__ and "Returns:\n" not in value.__doc__:
        kind = value.__annotations__.get("return", "None")
        if kind not in {"None", "Any"}:
            value.__doc__ = put(value.__doc__, "Returns", [f"`{kind if '[' in kind else kind.rpartition('.')[2]}`."])


def _code(value: Any) -> CodeType | None:
    """Return the code that receives a caller's arguments: the undecorated function, or `__init__` of a class."""
    if isinstance(value, type):
        value = value.__init__  # type: ignore[misc]  # looked at, not called
    while hasattr(value, "__wrapped__"):
        value = value.__wrapped__
    return getattr(value, "__code__", None)


def _parameters(value: Any) -> tuple[str, ...]:
    """Return the names of the arguments of a function or class."""
    code = _code(value)
    return (
        ()
        if code is None
        else code.co_varnames[: code.co_argcount + code.co_kwonlyargcount + (code.co_flags & 0xC).bit_count()]
    )


def put(text: str, head: str, lines: list[str]) -> str:
    """Put lines into a section; insert the section in its usual position if it is missing."""
    begin = text.find(f"{head}:\n")
    if begin >= 0:
        inner = " " * (begin - text.rfind("\n", 0, begin) + 3)
        end = text.find("\n\n", begin)
        end = len(text.rstrip()) if end < 0 else end
        return "".join([text[:end], *(f"\n{inner}{line}" for line in lines), text[end:]])
    later = _SECTIONS[_SECTIONS.index(head) + 1 :]
    places = [place for place in (text.find(f"{other}:\n") for other in later) if place >= 0]
    if places:
        place = min(places)
        margin = " " * (place - text.rfind("\n", 0, place) - 1)
        return f"{text[:place]}{_section(head, lines, margin)}\n\n{margin}{text[place:]}"
    rest = text.rstrip().partition("\n")[2].strip("\n")
    margin = " " * (len(rest) - len(rest.lstrip()) or 4)
    return f"{text.rstrip()}\n\n{margin}{_section(head, lines, margin)}\n{margin}"


def _section(head: str, lines: list[str], margin: str) -> str:
    return f"\n{margin}    ".join([f"{head}:", *lines])


__all__ = ["complete", "complete_all", "described", "put", "results", "say_result", "say_type", "table"]
