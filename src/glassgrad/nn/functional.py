"""The functions behind the layers, with PyTorch's names: `torch.nn.functional`.

They live in one file a family, `functional_*.py`; here they come together. `functional.pyi` says the same to a
type checker.
"""

from __future__ import annotations

import importlib
from typing import Any

from glassgrad.ops.names import PUBLIC, at_home

_FAMILIES = ("activation", "attention", "classes", "conv", "ctc", "distance", "dropout", "losses", "norm", "products")
# Ops that PyTorch keeps here as well.
_OPS = ("pad", "one_hot")


def _collect() -> dict[str, Any]:
    """Return every function of the families and of the ops."""
    found: dict[str, Any] = {}
    for family in _FAMILIES:
        module = importlib.import_module(f"glassgrad.nn.functional_{family}")
        found.update({name: getattr(module, name) for name in module.__all__})
    return found | {name: PUBLIC[name] for name in _OPS}


_COLLECTED = _collect()
globals().update(_COLLECTED)
at_home(__name__, _COLLECTED)


def __getattr__(name: str) -> Any:
    from glassgrad.errors.missing import missing

    raise missing("glassgrad.nn.functional", name, __all__)


__all__ = list(_COLLECTED)
