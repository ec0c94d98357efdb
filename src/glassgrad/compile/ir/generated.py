"""Python text that the compiler has written, as functions: the one place that executes it."""

from __future__ import annotations

import linecache
from typing import Any


def executed(source: str, file: str, space: dict[str, Any], *, shown: bool = False) -> dict[str, Any]:
    """Execute a module's text; return its globals.

    Args:
        source: the text, which this package has written.
        file: the name that frames of its functions have.
        space: the globals that it begins with; its own are added.
        shown: let tracebacks show its lines.
    """
    if shown:
        linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    exec(compile(source, file, "exec"), space)  # noqa: S102 - no text of anybody else's gets here
    return space


__all__ = ["executed"]
