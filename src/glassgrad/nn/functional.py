"""The functions behind the layers, with PyTorch's names: `torch.nn.functional`.

They live in one file a family, `functional_*.py`; here they come together. `functional.pyi` says the same to a
type checker.
"""

from __future__ import annotations

import importlib
from typing import Any

_FAMILIES = ("activation", "attention", "classes", "conv", "distance", "dropout", "losses", "norm", "products")
# Ops that PyTorch keeps here as well.
_OPS = {
    "arrange": ("pad",),
    "index": ("one_hot",),
}  # fmt: skip


def _collect() -> dict[str, Any]:
    """Return every function of the families and of the ops."""
    sources = {f"glassgrad.nn.functional_{family}": None for family in _FAMILIES}
    found: dict[str, Any] = {}
    for path, names in {**sources, **{f"glassgrad.ops.{name}": names for name, names in _OPS.items()}}.items():
        module = importlib.import_module(path)
        found.update({name: getattr(module, name) for name in names or module.__all__})
    return found


_COLLECTED = _collect()
globals().update(_COLLECTED)


def __getattr__(name: str) -> Any:
    from glassgrad.missing import missing

    raise missing("glassgrad.nn.functional", name, __all__)


__all__ = list(_COLLECTED)
