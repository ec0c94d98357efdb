"""Processes that a program starts while glassgrad stands in for PyTorch: it does so in them as well.

A forked process inherits it. One that is started anew ("spawn", "forkserver") first reads what `multiprocessing` has
prepared for it, and then imports the program, which imports torch; an entry of the former stands in.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from multiprocessing import spawn
from pathlib import Path
from typing import Any

_KEY = "glassgrad"


class _Standing:
    """Unpickled in a new process, calls `as_torch`; glassgrad is found there where it was found here."""

    def __reduce__(self) -> tuple[Any, ...]:
        home = str(Path(sys.modules["glassgrad"].__file__ or "").parents[1])
        code = f"import sys\nsys.path.insert(0, {home!r})\nfrom glassgrad.compat import as_torch\nas_torch()"
        return exec, (code,)


def preparing() -> Callable[[str], dict[str, Any]]:
    """Return a function for `multiprocessing.spawn.get_preparation_data` that stands in, around the present one."""
    before = spawn.get_preparation_data

    def data(name: str) -> dict[str, Any]:
        return {_KEY: _Standing(), **before(name)}

    return data


__all__ = ["preparing"]
