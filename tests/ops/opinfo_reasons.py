"""Where ops differ from PyTorch in other dtypes than float64, and why; `opinfo.REASONS` has those of float64."""

from __future__ import annotations

PROMOTION = ("dtype float64, PyTorch's float32", "dtype float16, PyTorch's float32")
PROMOTION_REASON = "Integers and booleans meet floats as in NumPy: docs/adr/005."
_LIMITS = "The limits, or factors, are floats: the result is promoted as in NumPy, where PyTorch keeps the integers."
_TIES = "Which of equal elements comes first is not determined."
_INCLUDED = "Without the element itself the sums begin in float64, and stay there."
_NOT_BOOLEAN = "NumPy's function takes no booleans; convert them."
_REFUSED = "Refused: its rules are written for real numbers."
_CAST = "Refused: with a real dtype PyTorch drops the imaginary part."
_TYPES = "Refused: an index of uint8, or one of more dimensions; shapes that only broadcast there."

KNOWN: dict[str, dict[str, str]] = {
    "float32": {
        "logcumsumexp": "The gradients differ by 1e-3 in single precision, and agree in double.",
        "gather": _TYPES, "tensordot": _TYPES,
        "nn.functional.batch_norm": "One dimension of size 0 is refused: the channels are the second one.",
    },
    "int64": {
        "arange": "The count follows from the numbers as floats, as in NumPy; PyTorch makes them integers first.",
        "addmv": _LIMITS, "addbmm": _LIMITS, "baddbmm": _LIMITS, "nn.functional.hardtanh": _LIMITS,
        "nn.functional.relu6": _LIMITS, "heaviside": "The result is a float, as in NumPy.",
        "kthvalue": _TIES, "topk": _TIES, "mode": _TIES,
        "nn.functional.avg_pool3d": "Means of integers come out differently: convert them to floats.",
        "nn.functional.local_response_norm": "A batch of none is refused.",
        "__rpow__": "Negative whole powers of integers are refused, as in NumPy.",
        "bincount": "Whole weights give whole sums, as in NumPy.", "gather": _TYPES, "tensordot": _TYPES,
        **{f"scatter_reduce ({how})": _INCLUDED for how in ("sum", "prod", "mean", "amin", "amax")},
    },
    "bool": {
        "addr": _LIMITS, "heaviside": "The result is a float, as in NumPy.", "mode": _TIES, "sort": _TIES,
        "argsort": _TIES, "square": "NumPy's square of a boolean is an int8.", "gather": _TYPES,
        **dict.fromkeys(("isclose", "sign", "sgn", "angle", "logit"), _NOT_BOOLEAN),
        **{f"scatter_reduce ({how})": _INCLUDED for how in ("sum", "prod", "amin", "amax")},
    },
    "complex128": {
        "istft": "In these samples PyTorch's gradient of the window is 0; ours agrees with finite differences.",
        "gather": _TYPES, "tensordot": _TYPES,
        **dict.fromkeys(
            ("ldexp", "logaddexp", "lu_unpack", "lu", "lu_solve", "matrix_exp", "linalg.matrix_exp", "exp2", "sigmoid",
             "nn.functional.rms_norm", "nn.functional.silu (complex)", "logsumexp", "logcumsumexp", "special.logsumexp",
             "nn.functional.feature_alpha_dropout (without_train)", "linalg.lu_factor", "linalg.lu_factor_ex",
             "linalg.lu", "linalg.lu_solve"), _REFUSED,
        ),
        **dict.fromkeys(
            ("softmax (with_dtype)", "nn.functional.softmin (with_dtype)", "log_softmax (with_dtype)"), _CAST
        ),
    },
}  # fmt: skip  # a table
