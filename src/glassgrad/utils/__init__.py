"""PyTorch's `torch.utils`: data sets and loaders, checkpoints with recomputation, a writer for TensorBoard."""

from __future__ import annotations

import importlib
from typing import Any

from glassgrad.errors.missing import lister

_MODULES = {
    "data": "glassgrad.utils.data",
    "checkpoint": "glassgrad.utils.checkpoint",
    "tensorboard": "glassgrad.utils.tensorboard",
}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(_MODULES[name])
    from glassgrad.errors.missing import missing

    raise missing("glassgrad.utils", name, _MODULES)


__all__ = ["checkpoint", "data", "tensorboard"]
__dir__ = lister(__name__)
