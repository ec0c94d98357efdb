"""Reductions, shared by all losses."""

from __future__ import annotations

from glassgrad.ops.core import Array, bad_option
from glassgrad.ops.reduce import mean, sum

_KNOWN = frozenset({"mean", "sum", "none"})


def reduction_of(reduction: str, size_average: bool | None, reduce: bool | None, op: str) -> str:
    """Return the reduction, which may come from PyTorch's older options; raise on an unknown one."""
    if size_average is not None or reduce is not None:
        if reduce is False:
            return "none"
        return "sum" if size_average is False else "mean"
    if reduction not in _KNOWN:
        expected = "'mean', 'sum' or 'none'"
        raise bad_option(op, "reduction", reduction, expected)
    return reduction


def reduce_loss(losses: Array, reduction: str) -> Array:
    """Apply `reduction`: "mean", "sum" or "none"."""
    if reduction == "none":
        return losses
    return mean(losses) if reduction_of(reduction, None, None, "loss") == "mean" else sum(losses)
