"""Primitives without native code, each with its reason: the host computes them, between two parts of the step.

tests/compile/llvm/test_registry_native.py compiles every primitive and holds this table against what it finds.
"""

from __future__ import annotations

_SHAPE = "the shape of the result depends on numbers"
_LAPACK = "LAPACK computes it, through NumPy or SciPy"
_POCKETFFT = "NumPy's FFT computes it, in complex numbers"
_SCIPY = "SciPy has its approximations; the C library and the table here have none"
_SORTING = "a sort with NumPy's order of NaN and of ties, which no loop nest can express"
_STEPS = "steps that depend on one another or on a search, written for NumPy"
_STRIDES = "an array of overlapping windows; decomposed into gathers only where that is no slower"

_REASONS: dict[str, tuple[str, ...]] = {
    _SHAPE: ("nonzero", "unique", "unique_consecutive", "bincount"),
    _LAPACK: (
        "inv", "pinv", "solve", "solve_triangular", "cofactor", "det", "slogdet", "eig", "cholesky", "qr", "eigh",
        "svd", "qr_complete", "matrix_exp", "lu_pivots", "lu", "lu_info", "cholesky_info",
    ),
    _POCKETFFT: ("fft", "rfft", "rfft_back"),
    _SCIPY: (
        "erfcx", "erfinv", "log_ndtr", "ndtri", "digamma", "polygamma", "i0", "i0e", "i1", "i1e", "gammainc",
        "gammaincc", "betainc", "bessel_j0", "bessel_j1", "bessel_y0", "bessel_y1", "modified_bessel_k0",
        "modified_bessel_k1", "scaled_modified_bessel_k0", "scaled_modified_bessel_k1", "airy_ai", "airy_slope",
    ),
    _SORTING: ("argsort", "topk", "kth", "mode", "searchsorted", "isin"),
    _STEPS: ("histogram", "scatter_extreme", "ctc_loss", "pivot_rows"),
    _STRIDES: (),
}  # fmt: skip  # a table

WITHOUT_CODE: dict[str, str] = {name: reason for reason, names in _REASONS.items() for name in names}
"""Primitive -> why it has no native code."""
