"""Write the list of public names with their parameters and defaults: `python tools/promise.py`.

The list is `tests/golden/public_names.txt`, one name a line: docs/stability.md promises every line of it until the next
major version, and `tests/repo/test_promise.py` compares it with the library. New names, and new optional parameters
behind the old ones, are added without a question. A line that would break a program is written only with `--breaking`,
which belongs to a major version or to a deprecation whose time has come.
"""

from __future__ import annotations

import argparse
import enum
import functools
import importlib
import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "docs"), str(ROOT)]  # the site's list of public names; run as a program, this file's own

from sitegen import public_names  # noqa: E402 - found by the line above

LIST = ROOT / "tests" / "golden" / "public_names.txt"
HEAD = "# The public names: `python tools/promise.py` writes this file; docs/stability.md says what it promises.\n"
_PLAIN = (bool, int, float, complex, str, bytes, type(None))


class Change(NamedTuple):
    """What became of the lines of a list: those a program notices, and those it does not."""

    broken: list[str]
    grown: list[str]


@functools.cache
def lines() -> list[str]:
    """Return the lines of the library as it is here; modules whose extra is not installed are missing."""
    found: set[str] = set()
    for module in public_names.modules():
        holder = importlib.import_module(module)
        for name in public_names.listed(holder):
            found.update(_lines(f"{module}.{name}", getattr(holder, name)))
    return sorted(found)


def _lines(full: str, value: Any) -> Iterator[str]:
    if inspect.ismodule(value):
        function = getattr(value, full.rpartition(".")[2], None) if callable(value) else None
        if function is None:  # its own names are listed; of PyTorch's modules, that they are there
            yield f"{full}: module"
            return
        value = function  # `gg.compile(step)` is `gg.compile.compile(step)`
    if inspect.isclass(value):
        yield full + _made_with(value)
        yield from (f"{full}.{name}{text}" for name, text in _members(value))
    elif callable(value):
        yield full + _signature(value)
    else:
        yield f"{full}: {_constant(value)}"


def _made_with(kind: type) -> str:
    """Return how instances are made; Python's own classes below enums and exceptions differ between its versions."""
    if issubclass(kind, enum.Enum):
        return "(value)"
    own = any("__init__" in vars(one) or "__new__" in vars(one) for one in kind.__mro__ if _is_ours(one))
    return "(*args)" if issubclass(kind, BaseException) and not own else _signature(kind)


def _is_ours(kind: type) -> bool:
    return kind.__module__.partition(".")[0] == "glassgrad"


def _members(kind: type) -> Iterator[tuple[str, str]]:
    """Yield the public members that a class defines itself, or takes from a private class of ours."""
    for name in sorted(dir(kind)):
        if name.startswith("_"):
            continue
        owner = next((one for one in kind.__mro__ if name in vars(one)), None)
        if owner is None or not _is_ours(owner) or (owner is not kind and not owner.__name__.startswith("_")):
            continue
        value = inspect.getattr_static(kind, name)
        plain = getattr(value, "__func__", value)  # of class methods and static methods
        yield name, _signature(plain, bound=not isinstance(value, staticmethod)) if callable(plain) else ""


def _signature(value: Any, *, bound: bool = False) -> str:
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError):  # written in C, without a description
        return "(...)"
    parameters = list(signature.parameters.values())
    if (
        bound
        and parameters
        and parameters[0].kind in {parameters[0].POSITIONAL_ONLY, parameters[0].POSITIONAL_OR_KEYWORD}
    ):
        parameters = parameters[1:]
    shown = [
        one.replace(annotation=one.empty, default=one.default if one.default is one.empty else _Shown(one.default))
        for one in parameters
    ]
    return str(inspect.Signature(shown, __validate_parameters__=False))


class _Shown:
    """A default as its text in the list: the same in every process and under every Python."""

    def __init__(self, value: object) -> None:
        self._text = _constant(value)

    def __repr__(self) -> str:
        return self._text


def _constant(value: Any) -> str:
    if isinstance(value, tuple | list) and type(value) in {tuple, list}:
        inner = ", ".join(map(_constant, value))
        return f"[{inner}]" if isinstance(value, list) else f"({inner}{',' * (len(value) == 1)})"
    if isinstance(value, enum.Enum):
        return f"{type(value).__name__}.{value.name}"
    if type(value) in _PLAIN or isinstance(value, np.dtype):
        return repr(value)
    named = getattr(value, "__qualname__", None)
    return named if isinstance(named, str) else f"<{type(value).__name__}>"


def kept() -> list[str]:
    """Return the lines of the list in the repository."""
    return [line for line in LIST.read_text(encoding="utf-8").splitlines() if line and not line.startswith("#")]


def compared(before: list[str], after: list[str]) -> Change:
    """Tell the lines whose change breaks a program from those that only add to what there was."""
    old, new = ({_name(line): line for line in text} for text in (before, after))
    broken = []
    for name, line in old.items():
        if name not in new:
            broken.append(f"{line}  is gone")
        elif new[name] != line and not fits(line, new[name]):
            broken.append(f"{line}  is now {new[name]}")
    return Change(broken, [line for name, line in new.items() if old.get(name) != line])


def _name(line: str) -> str:
    return re.split(r"[(:]", line, maxsplit=1)[0]


def fits(before: str, after: str) -> bool:
    """Tell whether every call by an earlier signature means the same by a later one.

    Example:
        >>> fits("f(x, dim=None)", "f(x, dim=None, keepdim=False)"), fits("f(x, dim=None)", "f(x, dim=0)")
        (True, False)
    """
    if "(" not in before or "(" not in after:
        return before == after
    one, other = _parts(before), _parts(after)
    start = one.positional == other.positional[: len(one.positional)]
    by_name = {*other.by_name, *other.positional[len(one.positional) :]} if one.star is None else set(other.by_name)
    optional = all("=" in text for text in {*other.positional, *other.by_name} - {*one.positional, *one.by_name})
    same_stars = one.star in {None, other.star} and one.keywords in {None, other.keywords}
    return start and set(one.by_name) <= by_name and optional and same_stars


class _Parts(NamedTuple):
    positional: list[str]
    by_name: list[str]
    star: str | None
    keywords: str | None


def _parts(line: str) -> _Parts:
    found = _Parts([], [], None, None)
    behind = False
    for text in _split(line[line.index("(") + 1 : line.rindex(")")]):
        if text.startswith("**"):
            found = found._replace(keywords=text)
        elif text.startswith("*"):
            behind = True
            found = found._replace(star=text if len(text) > 1 else found.star)
        elif text != "/":
            (found.by_name if behind else found.positional).append(text)
    return found


def _split(text: str) -> list[str]:
    """Split parameters at the commas outside of brackets and texts."""
    found, depth, quoted = [""], 0, ""
    for sign in text:
        if quoted:
            quoted = "" if sign == quoted else quoted
        elif sign in "'\"":
            quoted = sign
        depth += (sign in "([{") - (sign in ")]}") if not quoted else 0
        if sign == "," and not depth and not quoted:
            found.append("")
        else:
            found[-1] += sign
    return [part.strip() for part in found if part.strip()]


def main() -> None:
    """Compare the list with the library, say what changes, and write it unless that breaks a program."""
    parser = argparse.ArgumentParser(description="Write tests/golden/public_names.txt.")
    parser.add_argument("--breaking", action="store_true", help="write lines, too, that break a program")
    wanted = parser.parse_args().breaking
    now = lines()
    change = compared(kept() if LIST.exists() else [], now)
    print(f"{len(now):,} names; {len(change.grown)} lines new or longer; {len(change.broken)} break a program")
    for line in change.broken:
        print("  " + line)
    if change.broken and not wanted:
        sys.exit(
            "Nothing was written. Keep the old form, or deprecate it first; --breaking writes the list all the same."
        )
    LIST.write_text(HEAD + "\n".join(now) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
