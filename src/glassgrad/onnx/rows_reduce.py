"""Rows of reductions, scans, sorting and products of matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from glassgrad.onnx.rows_elementwise import Row, direct
from glassgrad.onnx.rows_shape import transposed
from glassgrad.onnx.traced import Step
from glassgrad.onnx.writer import Value, Writer


def _reduced(kind: str) -> Row:
    def row(w: Writer, step: Step, x: Value, *, axis: Any, keepdims: bool, **_rest: Any) -> Value:
        x = w.cast(x, step.out.dtype)
        axes = tuple(range(x.ndim)) if axis is None else axis if isinstance(axis, tuple) else (axis,)
        if not axes:
            return x
        return w.op(kind, x, w.ints(*axes), shape=step.out.shape, keepdims=int(keepdims))

    return row


def _truth(kind: str) -> Row:
    reduced = _reduced(kind)

    def row(w: Writer, step: Step, x: Value, **params: Any) -> Value:
        numbers = w.cast(w.cast(x, np.bool_), np.int32)
        like = Step(step.op, (), (type(step.out)(step.out.shape, np.dtype(np.int32)),))
        return w.cast(reduced(w, like, numbers, **params), np.bool_)

    return row


def _place(kind: str) -> Row:
    def row(w: Writer, step: Step, x: Value, *, axis: Any, keepdims: bool = False) -> Value:
        if x.dtype == np.bool_:
            x = w.cast(x, np.int32)
        if axis is None:
            flat = w.op("Reshape", x, w.ints(-1))
            found = w.op(kind, flat, dtype=np.int64, axis=0, keepdims=0, shape=())
            return w.op("Reshape", found, w.ints(*step.out.shape), shape=step.out.shape) if step.out.shape else found
        return w.op(kind, x, dtype=np.int64, shape=step.out.shape, axis=axis, keepdims=int(keepdims))

    return row


def _along(kind: str) -> Row:
    return lambda w, step, x, *, axis: w.op(kind, x, shape=step.out.shape, axis=axis)


def _cumsum(w: Writer, step: Step, x: Value, *, axis: int, reverse: bool) -> Value:
    return w.op(
        "CumSum", w.cast(x, step.out.dtype), w.constant(np.int64(axis)), shape=step.out.shape, reverse=int(reverse)
    )


def _sorted(w: Writer, step: Step, x: Value, *, k: Any, axis: int, largest: bool) -> Value:
    """The sorted positions; equal elements keep their order."""
    x = w.cast(x, np.int32) if x.dtype == np.bool_ else x
    outputs = [(x.dtype, step.out.shape), (np.int64, step.out.shape)]
    return w.ops("TopK", [x, w.ints(k)], outputs, axis=axis, largest=int(largest), sorted=1)[1]


def _argsort(w: Writer, step: Step, x: Value, *, axis: int, descending: bool, stable: bool = True) -> Value:
    return _sorted(w, step, x, k=(x.shape or (1,))[axis], axis=axis, largest=descending)


def _topk(w: Writer, step: Step, x: Value, *, k: Any, axis: int, largest: bool, ordered: bool) -> Value:
    return _sorted(w, step, x, k=k, axis=axis, largest=largest)


def _kth(w: Writer, step: Step, x: Value, *, k: int, axis: int, **_or_nan: Any) -> Value:
    """The position of NaN is undefined, as in ONNX."""
    first = _sorted(w, step, x, k=k + 1, axis=axis, largest=False)
    return w.op("Slice", first, w.ints(k), w.ints(k + 1), w.ints(axis), shape=step.out.shape)


def _searchsorted(w: Writer, step: Step, edges: Value, x: Value, *, right: bool) -> Value:
    """The number of edges below x; edges may have leading axes like those of x."""
    edges, x = w.alike((edges, x))
    beside = w.op("Unsqueeze", x, w.ints(-1))
    if edges.ndim > 1:
        edges = w.op("Unsqueeze", edges, w.ints(-2))
    below = w.op("LessOrEqual" if right else "Less", edges, beside, dtype=np.bool_)
    return w.op("ReduceSum", w.cast(below, np.int64), w.ints(-1), shape=step.out.shape, keepdims=0)


def _linear(w: Writer, step: Step, x: Value, weight: Value, bias: Value | None = None) -> Value:
    operands = w.alike([x, weight, *([] if bias is None else [bias])], step.out.dtype)
    x, weight = operands[:2]
    if x.ndim == 2:
        return w.op("Gemm", *operands, shape=step.out.shape, transB=1)
    y = w.op("MatMul", x, transposed(w, weight, (1, 0)), shape=step.out.shape)
    return y if bias is None else w.op("Add", y, operands[2], shape=step.out.shape)


def _layer_norm(w: Writer, step: Step, x: Value, *parts: Value, dims: int, eps: float) -> Value:
    sizes = w.fixed((x.shape or ())[-dims:])
    scale = parts[0] if parts else w.constant(np.ones(sizes, x.dtype))
    operands = w.alike([x, scale, *parts[1:]], step.out.dtype)
    return w.op("LayerNormalization", *operands, shape=step.out.shape, axis=-dims, epsilon=float(eps))


REDUCE: dict[str, Row] = {
    "sum": _reduced("ReduceSum"),
    "max": _reduced("ReduceMax"),
    "min": _reduced("ReduceMin"),
    "prod": _reduced("ReduceProd"),
    "logsumexp": _reduced("ReduceLogSumExp"),
    "all": _truth("ReduceMin"),
    "any": _truth("ReduceMax"),
    "argmax": _place("ArgMax"),
    "argmin": _place("ArgMin"),
    "softmax": _along("Softmax"),
    "log_softmax": _along("LogSoftmax"),
    "cumsum": _cumsum,
    "argsort": _argsort,
    "topk": _topk,
    "kth": _kth,
    "searchsorted": _searchsorted,
    "matmul": direct("MatMul"),
    "linear": _linear,
    "layer_norm": _layer_norm,
    "det": direct("Det"),
}
