"""`torch.utils.checkpoint`: recompute instead of store. The module is callable, as the function `checkpoint`."""

from __future__ import annotations

import sys
from types import ModuleType

from glassgrad.errors.missing import lister
from glassgrad.func.checkpoint import checkpoint, checkpoint_sequential


class _Callable(ModuleType):
    """Makes the name `glassgrad.checkpoint` the function and the module at once."""

    __call__ = staticmethod(checkpoint)


sys.modules[__name__].__class__ = _Callable

__all__ = ["checkpoint", "checkpoint_sequential"]
__dir__ = lister(__name__)
