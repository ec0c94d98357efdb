"""Every message a user can meet: one entry each, one file per area.

An entry is a `Message`: the exception type to raise and a template that says what was given, what was expected, where,
and what to do next. Raise it as ``raise errors.NO_GRADIENT_PATH(where=..., ...)``. Nothing here computes anything; the
caller supplies the facts. A new entry goes into the file of its area and is then available as ``errors.NAME``;
`tools/stubs.py` writes all names for type checkers. The files are imported when the first message is needed.
"""

from __future__ import annotations

import importlib
from typing import Any

from glassgrad.errors import kinds
from glassgrad.errors.kinds import Message

globals().update({name: value for name, value in vars(kinds).items() if isinstance(value, type)})


def _load() -> None:
    import pkgutil

    for area in pkgutil.iter_modules(__path__):
        entries = vars(importlib.import_module(f"{__name__}.{area.name}"))
        globals().update({name: value for name, value in entries.items() if isinstance(value, Message | type)})


def __getattr__(name: str) -> Any:
    if not name.startswith("_"):
        _load()
    try:
        return globals()[name]
    except KeyError:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None


def __dir__() -> list[str]:
    """Return the exceptions and warnings, for programs to catch; only the library raises the entries."""
    _load()
    kinds = [(name, value) for name, value in globals().items() if not name.startswith("_")]
    return sorted(name for name, value in kinds if isinstance(value, type) and issubclass(value, Exception))
