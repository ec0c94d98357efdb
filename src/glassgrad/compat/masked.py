"""`torch.masked`: reductions and normalisations of the elements where a boolean mask is true.

Where the mask is false, an element is replaced by one that does not count: 0 in a sum, -inf under a maximum, ...
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from types import FunctionType

import numpy as np

from glassgrad.engine.tensors.devices import DType
from glassgrad.ops.core import Array
from glassgrad.ops.names import PUBLIC

Dims = int | Sequence[int] | None


def _kept(x: Array, mask: Array | None, dtype: DType, neutral: float) -> Array:
    """The elements in a dtype, and the neutral one where the mask is false."""
    x = x if dtype is None else x.to(dtype)
    if mask is None:
        return x
    if math.isinf(neutral) and x.dtype.kind in "biu":
        limits = (False, True) if x.dtype.kind == "b" else (np.iinfo(x.dtype).min, np.iinfo(x.dtype).max)
        neutral = limits[neutral > 0]
    return PUBLIC["where"](mask, x, np.asarray(neutral, x.dtype))


def _reducing(name: str, neutral: float) -> Callable[..., Array]:
    function = PUBLIC[name]

    def reduce(
        input: Array, dim: Dims = None, *, keepdim: bool = False, dtype: DType = None, mask: Array | None = None
    ) -> Array:
        x = _kept(input, mask, dtype, neutral)
        y = function(x, _all(dim), keepdim)
        return y.to(x.dtype) if name.startswith("arg") else y  # places have the dtype of the elements, as in PyTorch

    reduce.__doc__ = f"`{name}` of the elements where `mask` is true."
    return reduce


def _along(name: str, neutral: float) -> Callable[..., Array]:
    function = PUBLIC[name]

    def scan(input: Array, dim: int, *, dtype: DType = None, mask: Array | None = None) -> Array:
        return function(_kept(input, mask, dtype, neutral), dim)

    scan.__doc__ = f"`{name}` along `dim` of the elements where `mask` is true."
    return scan


def _all(dim: Dims) -> Dims:
    """An empty list of dimensions is all of them, as in PyTorch's `masked`."""
    return None if isinstance(dim, Sequence) and not len(dim) else dim


sum, prod = _reducing("sum", 0), _reducing("prod", 1)
amax, amin = _reducing("amax", -math.inf), _reducing("amin", math.inf)
argmax, argmin = _reducing("argmax", -math.inf), _reducing("argmin", math.inf)
logsumexp = _reducing("logsumexp", -math.inf)
cumsum, cumprod = _along("cumsum", 0), _along("cumprod", 1)
softmax, log_softmax = _along("softmax", -math.inf), _along("log_softmax", -math.inf)
softmin = _along("softmin", math.inf)


def _count(x: Array, mask: Array | None, dim: Dims) -> Array:
    ones = np.ones(tuple(x.shape), np.float64 if x.dtype.kind != "f" else x.dtype)
    return PUBLIC["sum"](ones if mask is None else PUBLIC["where"](mask, ones, 0.0), _all(dim), True)


def mean(
    input: Array, dim: Dims = None, *, keepdim: bool = False, dtype: DType = None, mask: Array | None = None
) -> Array:
    """Mean of the elements where `mask` is true; NaN where there are none."""
    total = sum(input, dim, keepdim=keepdim, dtype=dtype, mask=mask)
    return total / _count(input, mask, dim).reshape(tuple(total.shape))


def median(
    input: Array, dim: int = -1, *, keepdim: bool = False, dtype: DType = None, mask: Array | None = None
) -> Array:
    """Lower median along `dim` of the elements where `mask` is true; NaN where there are none."""
    return PUBLIC["nanmedian"](_kept(input, mask, dtype, math.nan), dim, keepdim)[0]


def norm(
    input: Array,
    ord: float = 2.0,
    dim: Dims = None,
    *,
    keepdim: bool = False,
    dtype: DType = None,
    mask: Array | None = None,
) -> Array:
    """Vector norm of the elements where `mask` is true."""
    return PUBLIC["vector_norm"](_kept(input, mask, dtype, math.inf if ord < 0 else 0), ord, _all(dim), keepdim)


def var(
    input: Array,
    dim: Dims = None,
    unbiased: bool | None = None,
    *,
    correction: float | None = None,
    keepdim: bool = False,
    dtype: DType = None,
    mask: Array | None = None,
) -> Array:
    """Variance of the elements where `mask` is true, with the divisor count - `correction`, which is 1 by default."""
    lost = correction if correction is not None else 1 if unbiased is None or unbiased else 0
    x = input if dtype is None else input.to(dtype)
    centre = mean(x, dim, keepdim=True, mask=mask)
    apart = x - centre
    square = PUBLIC["real"](apart * PUBLIC["conj"](apart))
    total = sum(square, dim, keepdim=keepdim, mask=mask)
    count = _count(square, mask, dim).reshape(tuple(total.shape)) - lost
    found = total / PUBLIC["clamp"](count, 0)
    return found.to(x.dtype) if x.dtype.kind == "c" else found  # as in PyTorch


def std(
    input: Array,
    dim: Dims = None,
    unbiased: bool | None = None,
    *,
    correction: float | None = None,
    keepdim: bool = False,
    dtype: DType = None,
    mask: Array | None = None,
) -> Array:
    """Square root of `var`."""
    return PUBLIC["sqrt"](var(input, dim, unbiased, correction=correction, keepdim=keepdim, dtype=dtype, mask=mask))


def normalize(
    input: Array, ord: float, dim: int, *, eps: float = 1e-12, dtype: DType = None, mask: Array | None = None
) -> Array:
    """x / max(norm, eps) along `dim`, and 0 where `mask` is false."""
    size = norm(input, ord, dim, keepdim=True, dtype=dtype, mask=mask)
    return _kept(input, mask, dtype, 0) / PUBLIC["clamp"](size, eps)


def logaddexp(
    input: Array,
    other: Array,
    *,
    dtype: DType = None,
    input_mask: Array | None = None,
    other_mask: Array | None = None,
) -> Array:
    """log(exp(x) + exp(y)), where a masked element counts as -inf."""
    lowest = -math.inf
    return PUBLIC["logaddexp"](_kept(input, input_mask, dtype, lowest), _kept(other, other_mask, dtype, lowest))


NAMES = {name: value for name, value in globals().items() if isinstance(value, FunctionType) and name[0] != "_"}
