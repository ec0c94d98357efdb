"""Python's search for unreachable cycles, put off while much is made and little of it dropped.

Such a search goes through all that the process holds. New objects set it off, be they garbage or not: loading the
library and tracing a step make some ten thousand each, and would spend a tenth of their time on searches.
"""

from __future__ import annotations

import functools
import gc
import importlib
import sys
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

Given = ParamSpec("Given")
Result = TypeVar("Result")


def without_collections(function: Callable[Given, Result]) -> Callable[Given, Result]:
    """Let a function run without collections; where the user has turned them off, they stay so."""

    @functools.wraps(function)
    def without(*args: Given.args, **kwargs: Given.kwargs) -> Result:
        enabled = gc.isenabled()
        gc.disable()
        try:
            return function(*args, **kwargs)
        finally:
            if enabled:
                gc.enable()

    return without


def load(name: str) -> Any:
    """Import a module, and those that it imports, without collections.

    What was loaded stays, so it becomes old at once: the next collection would otherwise go through all of it, in a
    tenth of the time that it took to load the engine.
    """
    found = sys.modules.get(name)
    if found is not None and not getattr(found.__spec__, "_initializing", False):
        return found
    enabled = gc.isenabled()
    gc.disable()
    try:
        return importlib.import_module(name)
    finally:
        if enabled:
            if not gc.get_freeze_count():  # else the second of these would undo a freeze of the user
                gc.freeze()
                gc.unfreeze()
            gc.enable()


__all__ = ["load", "without_collections"]
