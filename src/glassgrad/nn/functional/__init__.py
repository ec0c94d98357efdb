"""The functions behind the layers, with PyTorch's names: `torch.nn.functional`.

Each family is a file, which is imported here. `__init__.pyi` declares the same functions for type checkers.
"""

from __future__ import annotations

import importlib
from typing import Any

from glassgrad.base.families import FOUND, Families
from glassgrad.errors.missing import lister
from glassgrad.ops.names import PUBLIC, at_home

# Ops that PyTorch keeps here as well.
_OPS = {"one_hot": "glassgrad.ops.index", "pad": "glassgrad.ops.arrange"}
_FAMILIES = FOUND[__name__] = Families(__name__, __path__[0], elsewhere=_OPS)


def _collect() -> dict[str, Any]:
    """Return every function of the families and of the ops."""
    # Functions that are public there keep their docstrings from there.
    importlib.import_module("glassgrad.engine.public")
    found = {name: getattr(importlib.import_module(home), name) for name, home in _FAMILIES.homes.items()}
    return found | {name: PUBLIC[name] for name in _OPS}


_COLLECTED = _collect()
globals().update(_COLLECTED)
at_home(__name__, _COLLECTED)


def __getattr__(name: str) -> Any:
    from glassgrad.errors.missing import missing

    raise missing("glassgrad.nn.functional", name, __all__)


__all__ = list(_COLLECTED)
__dir__ = lister(__name__)
