"""The reasons for differences from PyTorch in dtypes other than float64; `opinfo.REASONS` has those of float64.

`LACKING` has the entries of PyTorch's table that are not ops here, with the reasons.
"""

from __future__ import annotations

PROMOTION = ("dtype float64, PyTorch's float32", "dtype float16, PyTorch's float32")
PROMOTION_REASON = "Integers and booleans meet floats as in NumPy: docs/adr/005."
_LIMITS = "The limits, or factors, are floats: the result is promoted as in NumPy, where PyTorch keeps the integers."
_TIES = "Which of equal elements comes first is not determined."
_EDGES = "Refused: edges of bins in no order, of which nothing can be counted."
_HYBRID = "Refused: a matrix of which some dimensions are dense."

KNOWN: dict[str, dict[str, str]] = {
    "float32": {
        "logcumsumexp": "The gradients differ by 1e-3 in single precision, and agree in double.",
        "to_sparse": _HYBRID, "histogramdd": _EDGES,
    },
    "int64": {
        "masked.logsumexp": "PyTorch gives integers, rounded towards 0; here the result is a float.",
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

_INNER = "PyTorch's own backward passes call it; the op in front of it has a derivative here."
_SAVED = "The kernel behind {0}, which also returns what its backward pass saves: {0} is the op."
_KERNEL = "A kernel that a function of PyTorch's chooses; scaled_dot_product_attention and softmax are the ops."
_GPU = "It compiles code for a GPU."
_NARROW = "It multiplies matrices of 8-bit floats, which NumPy has not."
_COMPRESSED = "Its results are compressed sparse matrices; sparse tensors hold coordinates here."
_PACKED = "SciPy has no function that solves with LAPACK's packed form; linalg.solve, eigh and cholesky are there."
_SEGMENTS = "A function without a public name; segment_sum and scatter_reduce sum over parts."

# Entries of PyTorch's table that are no ops here; the page of all ops shows them. A test holds the list.
LACKING: dict[str, str] = {
    **dict.fromkeys(("_softmax_backward_data", "max_pool2d_with_indices_backward", "native_dropout_backward"), _INNER),
    "native_layer_norm": _SAVED.format("layer_norm"),
    "native_group_norm": _SAVED.format("group_norm"),
    **dict.fromkeys(
        ("native_batch_norm", "_native_batch_norm_legit", "_batch_norm_with_update"), _SAVED.format("batch_norm")
    ),
    **dict.fromkeys(
        (
            "torch.ops.aten._safe_softmax.default",
            "torch.ops.aten._flash_attention_forward",
            "torch.ops.aten._efficient_attention_forward",
        ),
        _KERNEL,
    ),
    **{
        f"jiterator_{kind}": _GPU
        for kind in (
            "unary",
            "binary",
            "4inputs_with_extra_args",
            "binary_return_by_ref",
            "2inputs_2outputs",
        )
    },
    **dict.fromkeys(("torch._scaled_mm_v2", "torch._scaled_mm"), _NARROW),
    **dict.fromkeys(("sparse.sampled_addmm", "sparse.mm (reduce)"), _COMPRESSED),
    **dict.fromkeys(("linalg.ldl_factor", "linalg.ldl_factor_ex", "linalg.ldl_solve"), _PACKED),
    **dict.fromkeys(("_segment_reduce (lengths)", "_segment_reduce (offsets)"), _SEGMENTS),
    "_unsafe_masked_index": "A function without a public name; where and indexing do the same.",
    "_unsafe_masked_index_put_accumulate": "A function without a public name; index_put accumulates.",
    "_chunk_cat": "A function without a public name; chunk and cat do the same.",
    "_upsample_bilinear2d_aa": "A function without a public name: interpolate with antialias, which is refused.",
    "__rdiv__": "An operator of Python 2.",
    "slice": "A function without a public name; x[a:b] and slice_copy do the same.",
    "chalf": "NumPy has no complex numbers of two half floats.",
    "hash_tensor": "What it returns is defined by PyTorch's implementation alone.",
}
