"""ONNX operators as functions: arithmetic, comparisons, activations, reductions, products.

Inputs are tensors, or NumPy arrays for values known before the model runs (constants, shapes); the library's functions
take both.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

import glassgrad.nn.functional as F
from glassgrad.base.tables import pairs
from glassgrad.onnx.calls import Call, Operator, gg
from glassgrad.ops.core import Array
from glassgrad.ops.narrow import is_bfloat16


def _named(name: str) -> Operator:
    """A function of the library with the same arguments."""
    return lambda call, *xs: getattr(gg, name)(*xs)


def _of(function: Callable[..., Any]) -> Operator:
    return lambda call, *xs: function(*xs)


def _folded(function: Callable[..., Any]) -> Operator:
    """An operator of any number of inputs."""
    return lambda call, *xs: functools.reduce(function, xs)


def _mean(call: Call, *xs: Array) -> Array:
    return functools.reduce(lambda a, b: a + b, xs) / len(xs)


def _div(call: Call, a: Array, b: Array) -> Array:
    if a.dtype.kind in "iu" and b.dtype.kind in "iu":
        return gg.trunc(a / b).astype(a.dtype) if isinstance(a, np.ndarray) else gg.div(a, b, rounding_mode="trunc")
    return a / b


def _cast(call: Call, x: Array, like: Array = None) -> Any:
    from onnx import helper

    dtype = np.dtype(like.dtype if like is not None else helper.tensor_dtype_to_np_dtype(call.attributes["to"]))
    if dtype.kind not in "biuf" and not is_bfloat16(dtype):
        raise call.refused(f"converts to {dtype}")
    return x.astype(dtype) if isinstance(x, np.ndarray) else x.to(dtype)


def _clip(call: Call, x: Array, low: Array = None, high: Array = None) -> Array:
    low, high = call.get("min") if low is None else low, call.get("max") if high is None else high
    low, high = [None if end is None else call.known(end, "bounds").item() for end in (low, high)]
    return x if low is None and high is None else gg.clip(x, low, high)


def _isinf(call: Call, x: Array) -> Any:
    found = gg.isinf(x)
    if not call.get("detect_negative", 1):
        found = found & (x > 0)
    return found if call.get("detect_positive", 1) else found & (x < 0)


# --- activations ----------------------------------------------------------------------------------


def _softmax(function: Callable[..., Any]) -> Operator:
    def operator(call: Call, x: Array) -> Any:
        axis = call.get("axis", -1 if call.opset >= 13 else 1)
        if call.opset >= 13:
            return function(x, axis)
        # In that version it meant all axes from this one on.
        rows = math.prod(x.shape[: axis % x.ndim])
        return function(x.reshape(rows, -1), 1).reshape(x.shape)

    return operator


def _selu(call: Call, x: Array) -> Array:
    alpha, gamma = call.get("alpha", 1.6732632423543772), call.get("gamma", 1.0507009873554805)
    return F.elu(x, alpha) * gamma


def _shrink(call: Call, x: Array) -> Array:
    edge, shift = call.get("lambd", 0.5), call.get("bias", 0.0)
    return gg.where(x < -edge, x + shift, gg.where(x > edge, x - shift, 0.0))


# --- reductions -----------------------------------------------------------------------------------


def _reduced(function: Callable[..., Any], before: Callable[[Any], Any] | None = None, after: Array = None) -> Operator:
    def operator(call: Call, x: Array, axes: Any = None) -> Any:
        chosen = call.ints("axes", axes)
        if not chosen and call.get("noop_with_empty_axes", 0):
            return x
        dims = tuple(axis % x.ndim for axis in chosen) if chosen else tuple(range(x.ndim))
        y = function(x if before is None else before(x), dims, bool(call.get("keepdims", 1)))
        return y if after is None else after(y)

    return operator


def _over(name: str) -> Callable[..., Any]:
    return lambda x, dims, keep: getattr(gg, name)(x, dim=dims, keepdim=keep)


_total = _over("sum")


def _average(x: Array, dims: Array, keep: bool) -> Array:
    return _total(x, dims, keep) / math.prod(x.shape[axis] for axis in dims)


def _product(x: Array, dims: Array, keep: bool) -> Array:
    for axis in sorted(dims, reverse=True):
        x = gg.prod(x, dim=axis, keepdim=keep)
    return x


def _place(name: str) -> Operator:
    def operator(call: Call, x: Array) -> Any:
        if call.get("select_last_index", 0):
            raise call.refused("asks for the last of equal elements")
        return getattr(gg, name)(x, dim=call.get("axis", 0), keepdim=bool(call.get("keepdims", 1)))

    return operator


def _cumsum(call: Call, x: Array, axis: Any) -> Array:
    dim = int(call.known(axis, "axis"))
    if call.get("exclusive", 0):
        raise call.refused("leaves out the first element")
    if call.get("reverse", 0):
        return gg.flip(gg.cumsum(gg.flip(x, (dim,)), dim), (dim,))
    return gg.cumsum(x, dim)


def _topk(call: Call, x: Array, k: Array) -> Any:
    count = int(call.known(k, "number of elements").reshape(()))
    return tuple(gg.topk(x, count, dim=call.get("axis", -1), largest=bool(call.get("largest", 1))))


# --- products -------------------------------------------------------------------------------------


def _gemm(call: Call, a: Array, b: Array, c: Array = None) -> Any:
    a = a.T if call.get("transA", 0) else a
    if call.get("transB", 0) and call.get("alpha", 1.0) == call.get("beta", 1.0) == 1.0:
        return F.linear(a, b) if c is None else F.linear(a, b, c) if c.ndim == 1 else F.linear(a, b) + c
    y = (a @ (b.T if call.get("transB", 0) else b)) * call.get("alpha", 1.0)
    return y if c is None else y + c * call.get("beta", 1.0)


def _power(call: Call, a: Array, b: Array) -> Array:
    exponent = b.item() if isinstance(b, np.ndarray) and b.size == 1 else b
    return a**exponent


_TWO = pairs("""
    Add=add Sub=subtract Mul=multiply Equal=eq Less=less LessOrEqual=less_equal Greater=greater
    GreaterOrEqual=greater_equal And=logical_and Or=logical_or Xor=logical_xor BitwiseAnd=bitwise_and
    BitwiseOr=bitwise_or BitwiseXor=bitwise_xor MatMul=matmul
    """)
_ONE = pairs("""
    Neg=negative Abs=abs Sign=sign Floor=floor Ceil=ceil Round=round Exp=exp Log=log Sqrt=sqrt
    Reciprocal=reciprocal Sin=sin Cos=cos Tan=tan Asin=asin Acos=acos Atan=atan Sinh=sinh Cosh=cosh Asinh=asinh
    Acosh=acosh Atanh=atanh Tanh=tanh Sigmoid=sigmoid Erf=erf Not=logical_not IsNaN=isnan BitwiseNot=bitwise_not
    Relu=relu
    """)
MATH: dict[str, Operator] = {
    **{op: _named(name) for op, name in {**_TWO, **_ONE}.items()},
    "Div": _div,
    "Pow": _power,
    "Cast": _cast,
    "CastLike": _cast,
    "Clip": _clip,
    "IsInf": _isinf,
    "Max": _folded(gg.maximum),
    "Min": _folded(gg.minimum),
    "Sum": _folded(gg.add),
    "Mean": _mean,
    "Where": _named("where"),
    "Mod": lambda call, a, b: gg.fmod(a, b) if call.get("fmod", 0) else a % b,
    "Gelu": lambda call, x: F.gelu(x, approximate=call.get("approximate", "none")),
    "Softplus": _of(F.softplus),
    "Softsign": _of(F.softsign),
    "Mish": _of(F.mish),
    "HardSwish": _of(F.hardswish),
    "Selu": _selu,
    "Shrink": _shrink,
    "HardSigmoid": lambda call, x: gg.clip(x * call.get("alpha", 0.2) + call.get("beta", 0.5), 0.0, 1.0),
    "PRelu": lambda call, x, slope: gg.where(x > 0, x, x * slope),
    "ThresholdedRelu": lambda call, x: gg.where(x > call.get("alpha", 1.0), x, 0.0),
    "Elu": lambda call, x: F.elu(x, call.get("alpha", 1.0)),
    "Celu": lambda call, x: F.celu(x, call.get("alpha", 1.0)),
    "LeakyRelu": lambda call, x: F.leaky_relu(x, call.get("alpha", 0.01)),
    "Softmax": _softmax(F.softmax),
    "LogSoftmax": _softmax(F.log_softmax),
    "ReduceSum": _reduced(_total),
    "ReduceMean": _reduced(_average),
    "ReduceMax": _reduced(_over("amax")),
    "ReduceMin": _reduced(_over("amin")),
    "ReduceProd": _reduced(_product),
    "ReduceL1": _reduced(_total, gg.abs),
    "ReduceL2": _reduced(_total, gg.square, gg.sqrt),
    "ReduceSumSquare": _reduced(_total, gg.square),
    "ReduceLogSum": _reduced(_total, None, gg.log),
    "ReduceLogSumExp": _reduced(_over("logsumexp")),
    "ArgMax": _place("argmax"),
    "ArgMin": _place("argmin"),
    "CumSum": _cumsum,
    "TopK": _topk,
    "Gemm": _gemm,
    "Einsum": lambda call, *xs: gg.einsum(call.attributes["equation"], *xs),
    "Det": lambda call, x: gg.det(x),
}
