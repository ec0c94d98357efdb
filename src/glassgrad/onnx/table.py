"""The ONNX form of every primitive: a row, its decomposition, or the reason why there is none.

`form_of` returns which; a test calls it for every primitive.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from glassgrad.base.tables import words
from glassgrad.onnx.rows_elementwise import ELEMENTWISE, Row
from glassgrad.onnx.rows_reduce import REDUCE
from glassgrad.onnx.rows_shape import SHAPE
from glassgrad.onnx.rows_windows import WINDOWS
from glassgrad.onnx.traced import WHOLE, Step
from glassgrad.onnx.writer import Value, Writer
from glassgrad.ops.core import PRIMITIVES

ROWS: dict[str, Row] = {**ELEMENTWISE, **SHAPE, **REDUCE, **WINDOWS}

_SPECIAL = "ONNX has no such special function"
_LINALG = "ONNX has no such operation on matrices"
_COMPLEX = "ONNX has no complex numbers"
_BACKWARD = "it is part of backward passes"
_COUNTED = "the size of its result depends on the numbers"
_SCAN = "ONNX has no such scan"
_REASONS = {
    _SPECIAL: """
        erfcx erfinv log_ndtr ndtri gammaln digamma polygamma zeta i0 i0e i1 i1e gammainc gammaincc betainc bessel_j0
        bessel_j1 bessel_y0 bessel_y1 modified_bessel_k0 modified_bessel_k1 scaled_modified_bessel_k0
        scaled_modified_bessel_k1 airy_ai airy_slope
    """,
    _LINALG: """
        mirror inv pinv solve solve_triangular cofactor slogdet eig cholesky qr eigh svd qr_complete matrix_exp
        lu_pivots pivot_rows lu lu_info cholesky_info
    """,
    _COMPLEX: "view_as_complex view_as_real conj fft rfft rfft_back",
    _BACKWARD: """
        conv2d_weight max_pool2d_scatter max_pool2d_gather sum_spread2d resample_back add_strided lstm_scan_back
        gru_scan_back rnn_scan_back
    """,
    _COUNTED: "nonzero unique unique_consecutive",
    _SCAN: "recurrence cumprod logcumsumexp cummax_index cummin_index",
    "ONNX has no operator that counts equal values": "bincount histogram mode",
    "ONNX has no operator for common divisors, for exponents and for reflections": "gcd lcm frexp reflectors",
    "ONNX shifts unsigned integers only": "left_shift right_shift",
    "ONNX has no operator for the bits of a number": "nextafter signbit view_bits",
    "ONNX knows one process alone": "all_reduce broadcast_from bucket_parts bucket_start bucket_wait",
    "it is a function of SciPy, and ONNX has only its own operators": "opaque",
    "ONNX has no such choice of a branch": "pick",
    "the operators of ONNX take no sparse matrices": "sparse_product",
}
REFUSED = {name: reason for reason, names in _REASONS.items() for name in words(names)}


def form_of(name: str) -> str:
    """Return how a primitive is written: "row", "decomposed" or "refused: the reason"."""
    if name in ROWS:
        return "row"
    if PRIMITIVES[name].decompose is not None and name not in WHOLE:
        return "decomposed"
    return f"refused: {REFUSED[name]}"


def written(w: Writer, step: Step, operands: Sequence[Any]) -> tuple[Value, ...]:
    """Append the nodes of one step and return its results.

    Raises:
        OnnxError: the step has no form in ONNX.
    """
    w.step = step
    if any(slot.dtype.kind == "c" for slot in step.outputs):
        raise w.refused(_COMPLEX)
    if step.op not in ROWS:
        raise w.refused(REFUSED.get(step.op, "no operator is known for it"))
    found = ROWS[step.op](w, step, *operands, **step.params)
    results = found if isinstance(found, tuple) else (found,)
    for value, slot in zip(results, step.outputs, strict=True):
        value.shape = slot.shape
    return results
