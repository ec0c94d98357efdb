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
from glassgrad.ops.fused import cross_entropy_p, linear_p
from glassgrad.ops.index import embedding as _embedding

_FAMILIES = ("activation", "attention", "dropout", "norm")
# Ops that PyTorch keeps here as well.
_OPS = {
    "arrange": ("pad",),
    "index": ("one_hot",),
    "spatial": (
        "adaptive_avg_pool1d", "adaptive_avg_pool2d", "avg_pool1d", "avg_pool2d", "conv1d", "conv2d",
        "conv_transpose1d", "conv_transpose2d", "interpolate", "max_pool1d", "max_pool2d", "pixel_shuffle",
    ),
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


def cross_entropy(
    input: Array,
    target: Array,
    weight: Any = None,
    ignore_index: int = -100,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Array:
    """-log softmax(input)[target], input (N, C) or (N, C, ...) or (C,), target of class indices.

    Raises:
        ArgumentError: a label outside 0..C-1.
    """
    ndim = len(input.shape)
    if ndim == 1:
        y = cross_entropy(input[None], target[None], weight, ignore_index, reduction, label_smoothing)
        return y[0] if reduction == "none" else y
    if ndim > 2:
        order = (0, *range(2, ndim), 1)
        flat = input.permute(order).reshape(-1, input.shape[1])
        y = cross_entropy(flat, target.reshape(-1), weight, ignore_index, reduction, label_smoothing)
        return y.reshape(target.shape) if reduction == "none" else y
    return cross_entropy_p(input, target, reduction=reduction, ignore_index=ignore_index)


def nll_loss(
    input: Array,
    target: Array,
    weight: Any = None,
    ignore_index: int = -100,
    reduction: str = "mean",
) -> Array:
    """-input[target] for log-probabilities `input` (N, C)."""
    picked = input.gather(1, target.reshape(-1, 1)).reshape(-1)
    return reduce_loss(-picked, reduction)


def mse_loss(input: Array, target: Array, reduction: str = "mean") -> Array:
    """(input - target)**2, averaged."""
    return reduce_loss(ew.square(input - target), reduction)


def reduce_loss(losses: Array, reduction: str) -> Array:
    """Apply `reduction`: "mean", "sum" or "none"."""
    if reduction == "none":
        return losses
    if reduction not in ("mean", "sum"):
        raise ValueError(f"reduction={reduction!r} is not possible; expected 'mean', 'sum' or 'none'")
    return losses.mean() if reduction == "mean" else losses.sum()


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


__all__ = ["cross_entropy", "embedding", "linear", "mse_loss", "nll_loss", "reduce_loss", *_COLLECTED]  # noqa: PLE0604
