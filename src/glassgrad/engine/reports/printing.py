"""Print tensors: values, then dtype unless it is a default, then their place on the tape."""

from __future__ import annotations

import numpy as np

from glassgrad.ops.core import Array
from glassgrad.ops.narrow import NARROW

_SILENT = (np.dtype(np.float32), np.dtype(np.int64), np.dtype(np.bool_))


def tensor(x: Array) -> str:
    """Return the text of a Tensor."""
    array = x.array
    kind = type(x).__name__.lower() if type(x).__name__ != "Tensor" else "tensor"
    if not isinstance(array, np.ndarray):
        return f"{kind}({array!r})"
    lead = f"{kind}("
    shown = array.astype(np.float32) if array.dtype.kind == NARROW else array
    values = np.array2string(shown, separator=", ", precision=4, threshold=1000, edgeitems=3, prefix=lead)
    parts = [values]
    if array.size == 0:
        parts.append(f"size={array.shape}")
    if array.dtype not in _SILENT:
        parts.append(f"dtype={array.dtype}")
    if x.node is not None:
        place = x.node.place
        parts.append(f"grad_fn=<{x.node.name} at {place}>")
    elif x.requires_grad:
        parts.append("requires_grad=True")
    return lead + ", ".join(parts) + ")"
