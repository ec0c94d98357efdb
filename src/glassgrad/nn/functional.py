"""The functions behind the layers, with PyTorch's names: `torch.nn.functional`.

They live in one file a family, `functional_*.py`; here they come together. `functional.pyi` says the same to a
type checker.
"""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from glassgrad.ops import elementwise as ew
from glassgrad.ops.core import Array
from glassgrad.ops.fused import linear_p
from glassgrad.ops.index import embedding as _embedding

_FAMILIES = ("activation", "attention", "classes", "conv", "distance", "dropout", "losses", "norm")
# Ops that PyTorch keeps here as well.
_OPS = {
    "arrange": ("pad",),
    "index": ("one_hot",),
}  # fmt: skip


def linear(input: Array, weight: Array, bias: Array | None = None) -> Array:
    """x wT + b: input (..., in), weight (out, in), bias (out,) to (..., out)."""
    return linear_p(input, weight) if bias is None else linear_p(input, weight, bias)


def embedding(input: Array, weight: Array, padding_idx: int | None = None) -> Array:
    """Rows of `weight` at the integers `input`; the row `padding_idx` gets no gradient."""
    if padding_idx is not None:
        row = padding_idx % weight.shape[0]
        kept = np.arange(weight.shape[0])[:, None] != row
        weight = ew.where(kept, weight, weight.detach())
    return _embedding(input, weight)


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


__all__ = ["embedding", "linear", *_COLLECTED]  # noqa: PLE0604
