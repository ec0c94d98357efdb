"""The compiler: a training step traced into one program, planned, and emitted as native code or as NumPy source.

The module is callable: ``glassgrad.compile(step)`` is `glassgrad.compile.api.compile`.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

from glassgrad.compile.api import Compiled, compile
from glassgrad.compile.source.readable import backward_source
from glassgrad.errors.missing import lister

__all__ = ["Compiled", "backward_source", "compile"]
__dir__ = lister(__name__)


_HINTS = ("fullgraph", "dynamic", "mode", "options")  # they tune PyTorch's compiler


class _CallableModule(ModuleType):
    """Lets the name `glassgrad.compile` be the function and the package at once."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if kwargs.pop("disable", False) and args:
            return args[0]
        for name in _HINTS:
            kwargs.pop(name, None)
        if kwargs.get("backend") == "inductor":
            kwargs["backend"] = "auto"
        return compile(*args, **kwargs)


sys.modules[__name__].__class__ = _CallableModule
