"""PyTorch's `torch.utils`: data sets and loaders, and checkpoints that recompute."""

from __future__ import annotations

import importlib
from typing import Any

from glassgrad.errors.missing import lister

_MODULES = {"data": "glassgrad.utils.data", "checkpoint": "glassgrad.utils.checkpoint"}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(_MODULES[name])
    from glassgrad.errors.missing import missing

    raise missing("glassgrad.utils", name, _MODULES)


__all__ = ["checkpoint", "data"]
__dir__ = lister(__name__)
