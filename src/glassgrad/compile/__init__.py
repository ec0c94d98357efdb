"""The compiler: a training step traced into one program, planned, and emitted as native code or as NumPy source.

The module is callable: ``glassgrad.compile(step)`` is `glassgrad.compile.api.compile`.

Its names are loaded on first use, because the first large op of eager mode needs a few modules from here to load its
kernel and would otherwise wait for the whole compiler.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

import glassgrad.engine  # noqa: F401 -- fills the table of ops, which every room here reads
from glassgrad.base.families import Families
from glassgrad.errors.missing import lister

if TYPE_CHECKING:
    from glassgrad.compile.api import Compiled, compile
    from glassgrad.compile.source.readable import backward_source

__all__ = ["Compiled", "backward_source", "compile"]
__dir__ = lister(__name__)

__getattr__ = Families(
    __name__,
    __path__[0],
    files="api",
    elsewhere={
        "Compiled": "glassgrad.compile.api",
        "backward_source": "glassgrad.compile.source.readable",
        "compile": "glassgrad.compile.api",
    },
).get

_HINTS = ("fullgraph", "dynamic", "mode", "options")  # they tune PyTorch's compiler


class _CallableModule(ModuleType):
    """Makes the name `glassgrad.compile` both the function and the package."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if kwargs.pop("disable", False) and args:
            return args[0]
        for name in _HINTS:
            kwargs.pop(name, None)
        if kwargs.get("backend") == "inductor":
            kwargs["backend"] = "auto"
        return importlib.import_module("glassgrad.compile.api").compile(*args, **kwargs)


sys.modules[__name__].__class__ = _CallableModule
