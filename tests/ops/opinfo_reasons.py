"""Where ops differ from PyTorch in other dtypes than float64, and why; `opinfo.REASONS` has those of float64."""

from __future__ import annotations

PROMOTION = ("dtype float64, PyTorch's float32", "dtype float16, PyTorch's float32")
PROMOTION_REASON = "Integers and booleans meet floats as in NumPy: docs/adr/005."
_LIMITS = "The limits, or factors, are floats: the result is promoted as in NumPy, where PyTorch keeps the integers."
_TIES = "Which of equal elements comes first is not determined."
_HYBRID = "Refused: a matrix of which some dimensions are dense."

KNOWN: dict[str, dict[str, str]] = {
    "float32": {
        "logcumsumexp": "The gradients differ by 1e-3 in single precision, and agree in double.",
        "to_sparse": _HYBRID,
    },
    "int64": {
        "addmv": _LIMITS, "addbmm": _LIMITS, "baddbmm": _LIMITS,
        "kthvalue": _TIES, "topk": _TIES, "mode": _TIES,
        "__rpow__": "Negative whole powers of integers are refused, as in NumPy.",
        "to_sparse": _HYBRID,
    },
    "bool": {
        "addr": _LIMITS, "mode": _TIES, "sort": _TIES,
        "argsort": _TIES, "to_sparse": _HYBRID, "square": "NumPy's square of a boolean is an int8.",
    },
    "complex128": {
        "istft": "In these samples PyTorch's gradient of the window is 0; ours agrees with finite differences.",
        "to_sparse": _HYBRID,
    },
}  # fmt: skip  # a table
