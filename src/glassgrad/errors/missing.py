"""The error for names that a module lacks, with the nearest existing name or an alternative."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from glassgrad import errors


def missing(module: str, name: str, known: Iterable[str], instead: Mapping[str, str] | None = None) -> Exception:
    """Return the exception, which names the nearest existing name.

    Args:
        module: the module.
        name: the missing name.
        known: the names that it has.
        instead: what to use instead of certain missing names.
    """
    advice = (instead or {}).get(name) or _advice().get(f"{module.removeprefix('glassgrad')}.{name}".lstrip("."))
    if advice:
        return errors.MISSING_NAME(module=module, name=name, nearest=f"\nNext: {advice}")
    if name.startswith("_"):  # Python's own look-ups; nobody reads their message
        return AttributeError(f"module {module!r} has no attribute {name!r}")
    import difflib

    lower = {one.lower(): one for one in known}
    close = difflib.get_close_matches(name.lower(), lower, n=3, cutoff=0.6)
    nearest = "\nNearest: " + ", ".join(lower[one] for one in close) if close else ""
    return errors.MISSING_NAME(module=module, name=name, nearest=nearest)


@cache
def _advice() -> dict[str, str]:
    """Return the advice of `base/instead.txt` by the names that lack, without "torch."."""
    text = Path(__file__).parents[1].joinpath("base", "instead.txt").read_text(encoding="utf-8")
    parts = (part.partition("\n") for part in re.split(r"^@ ", text, flags=re.MULTILINE)[1:])
    return {name: advice for advice, _, names in parts for name in names.split()}


def getter(module: str, instead: Mapping[str, str] | None = None) -> Callable[[str], Any]:
    """Return a `__getattr__` for a module that raises `missing`."""

    def absent(name: str) -> Any:
        raise missing(module, name, _own(sys.modules[module]), instead)

    return absent


def lister(module: str) -> Callable[[], list[str]]:
    """Return a `__dir__` for a module: its public names, without its own imports."""

    def listed() -> list[str]:
        return sorted(_own(sys.modules[module]))

    return listed


def _own(module: Any) -> list[str]:
    """Return the names that a module offers: its `__all__`, or the names it defines."""
    listed = getattr(module, "__all__", None) if "__all__" in vars(module) else None
    if listed is not None:
        return list(listed)
    return [name for name, value in vars(module).items() if getattr(value, "__module__", None) == module.__name__]


__all__ = ["getter", "lister", "missing"]
