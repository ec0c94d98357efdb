"""Primitives without native code, each with its reason; the host computes them between two parts of the step.

tests/compile/llvm/test_registry_native.py compiles every primitive and compares this table with the result.
"""

from __future__ import annotations

_SHAPE = "the shape of the result depends on numbers"
_LAPACK = "LAPACK computes it, through NumPy or SciPy"
_POCKETFFT = "NumPy's FFT computes it, in complex numbers"
_SCIPY = "only SciPy has approximations of it, not the C library or the table here"
_SORTING = "a sort with NumPy's order of NaN and of ties, which no loop nest can express"
_SORTED_PLACES = "a search whose places and counts the numbers decide"
_SPARSE = "SciPy computes it, row by row of its compressed form"
_DIVISORS = "a loop whose length the numbers decide"
_BITS = "the bytes of a number under another dtype: NumPy reads them"
_INNER = "it belongs to the tape and never stands in a graph"

_REASONS = {
    _SHAPE: "nonzero unique unique_consecutive bincount",
    _LAPACK: """
        inv pinv solve solve_triangular cofactor det slogdet eig cholesky qr eigh svd qr_complete matrix_exp
        lu_pivots lu lu_info cholesky_info reflectors
    """,
    _POCKETFFT: "fft rfft rfft_back",
    _SCIPY: """
        erfcx erfinv log_ndtr ndtri digamma polygamma i0 i0e i1 i1e gammainc gammaincc betainc
        bessel_j0 bessel_j1 bessel_y0 bessel_y1 modified_bessel_k0 modified_bessel_k1
        scaled_modified_bessel_k0 scaled_modified_bessel_k1 airy_ai airy_slope zeta
    """,
    _SORTING: "argsort topk kth mode searchsorted isin",
    _SORTED_PLACES: "histogram pivot_rows",
    _SPARSE: "sparse_product",
    _DIVISORS: "gcd lcm",
    _BITS: "view_bits frexp",
    _INNER: "pick",
}

WITHOUT_CODE: dict[str, str] = {name: reason for reason, names in _REASONS.items() for name in names.split()}
"""Primitive -> the reason why it has no native code."""

PARTLY: dict[str, str] = {
    "conv2d": "in float32 and float64, without negative padding, and up to a size of the columns",
    "conv2d_input": "in float32 and float64, without negative borders, and up to a size of the columns",
}
"""Primitive -> the calls for which it has native code; the host computes the others."""
