"""PyTorch's names, NumPy's arrays, and a backward pass you can read.

Every part is imported on first use: the engine (`engine/public.py`) when one of its names is read, `nn`, `optim`,
`func` and the rest likewise. So `glassgrad.scalar` and `glassgrad.manual` run without the engine.
"""

from __future__ import annotations

import importlib
import sys
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType
from typing import Any

from glassgrad._version import __version__ as __version__

# Functions that are public here but live in a subpackage that the engine does not import.
_ELSEWHERE = {
    name: package
    for package, names in {
        "compile": ["backward_source"],
        "doctor": ["GradientMonitor", "compute_gradient_norms", "debug_training"],
        "explanation": ["draw", "explain"],
        "func": ["vmap"],
        "report": [
            "plot_activations",
            "plot_gradient_flow",
            "plot_gradient_histograms",
            "plot_statistics",
            "plot_total_norm",
            "visualize_gradient_flow",
        ],
        "sparse": ["sparse_coo_tensor", "spmm"],
    }.items()
    for name in names
}

# PyTorch modules that are tables in `compat` and can still be imported by their names.
_HOMES = {f"glassgrad.{name}": name for name in ("backends", "cuda", "multiprocessing")}


class _Homes:
    """Finds and loads these tables for `import glassgrad.cuda`; the import system uses the entry in sys.modules."""

    @staticmethod
    def find_spec(name: str, _path: object = None, _target: object = None) -> ModuleSpec | None:
        return ModuleSpec(name, _Homes) if name in _HOMES else None  # type: ignore[arg-type]  # it loads without state

    @staticmethod
    def create_module(_spec: ModuleSpec) -> None:
        """Return None, so that the import system makes the module; it requires this method."""

    @staticmethod
    def exec_module(module: ModuleType) -> None:
        sys.modules[module.__name__] = importlib.import_module("glassgrad.compat").NAMES[_HOMES[module.__name__]]


# Internal packages and the command line; programs do not import them.
_INNER = {"base", "cli", "engine", "ops", "tasks"}


def _modules() -> list[str]:
    import pkgutil  # only for messages and `dir`

    found = [module.name for module in pkgutil.iter_modules(sys.modules[__name__].__path__)]
    return [name for name in found if not name.startswith("_") and name not in _INNER] + [*_HOMES.values()]


def _compat_names() -> dict[str, Any]:
    """Return PyTorch's names that are not in the engine."""
    names = importlib.import_module("glassgrad.compat").NAMES
    return {name: value for name, value in names.items() if not name.startswith("_")}


class _Front(ModuleType):
    """The package as a module that resolves its names on first use."""

    def __getattr__(self, name: str) -> Any:
        if name == "__all__":
            return sorted(importlib.import_module("glassgrad.engine.public").NAMES)
        if name.startswith("__"):
            raise AttributeError(f"module 'glassgrad' has no attribute {name!r}")
        if find_spec(f"glassgrad.{name}") is not None:
            return importlib.import_module(f"glassgrad.{name}")
        if name == "bfloat16":  # imports a package and prepares the ops, so the engine must be loaded first
            importlib.import_module("glassgrad.engine.public")
            return importlib.import_module("glassgrad.ops.narrow").bfloat16()
        if name in _ELSEWHERE:
            return getattr(importlib.import_module(f"glassgrad.{_ELSEWHERE[name]}"), name)
        names = importlib.import_module("glassgrad.engine.public").NAMES
        self.__dict__.update(names)
        if name in names:
            return names[name]
        compat = importlib.import_module("glassgrad.compat")
        if name in compat.NAMES:
            return compat.NAMES[name]
        known = [*names, *compat.NAMES, *_modules()]
        raise importlib.import_module("glassgrad.errors.missing").missing("glassgrad", name, known, compat.INSTEAD)

    def __reduce__(self) -> tuple[Any, ...]:
        # Python copies and pickles only plain modules by name.
        return importlib.import_module, (self.__name__,)

    def __dir__(self) -> list[str]:
        names = importlib.import_module("glassgrad.engine.public").NAMES
        own = [name for name in self.__dict__ if name.startswith("__")]
        return sorted({*own, *names, *_compat_names(), *_modules(), *_ELSEWHERE, "bfloat16"})


sys.modules[__name__].__class__ = _Front
sys.meta_path.append(_Homes)
