"""PyTorch's names, NumPy's arrays, and a backward pass you can read.

Nothing is imported until it is asked for: the engine (`public.py`) with its first name, `nn`, `optim`, `func`
and the rest with theirs. So `glassgrad.scalar` and `glassgrad.manual` run without the engine.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from glassgrad.public import *  # noqa: F403 - for type checkers and editors

__version__ = "0.1.0"

_SUBPACKAGES = frozenset({
    "cli", "compat", "compile", "data", "errors", "fft", "func", "linalg", "manual", "models", "nn", "ops", "optim",
    "optimize", "random", "scalar", "train", "utils", "verify",
})  # fmt: skip


class _Front(ModuleType):
    """The package as a module that finds its names when they are asked for."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(f"module 'glassgrad' has no attribute {name!r}")
        if name in _SUBPACKAGES:
            return importlib.import_module(f"glassgrad.{name}")
        if name == "explain":
            return importlib.import_module("glassgrad.explanation").explain
        names = importlib.import_module("glassgrad.public").NAMES
        self.__dict__.update(names)
        if name in names:
            return names[name]
        raise importlib.import_module("glassgrad.missing").missing("glassgrad", name, [*names, *_SUBPACKAGES])

    def __setattr__(self, name: str, value: Any) -> None:
        # Python binds an imported submodule to its name here; a name that a function has as well stays the function's.
        if isinstance(value, ModuleType) and name in {"device", "tensor", "checkpoint"}:
            return
        super().__setattr__(name, value)

    def __dir__(self) -> list[str]:
        names = importlib.import_module("glassgrad.public").NAMES
        return sorted({*self.__dict__, *names, *_SUBPACKAGES, "explain"})


sys.modules[__name__].__class__ = _Front
