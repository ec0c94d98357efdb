"""The array-API namespace of Tensors: what `t.__array_namespace__()` returns (version 2024.12 of the standard).

Its functions are those that serve NumPy, since NumPy 2 follows the standard. Functions that exist only in the standard,
or that it defines differently, are below. Everything differentiable stays differentiable.

SciPy uses it if the variable SCIPY_ARRAY_API=1 is set before SciPy is imported. Tested with SciPy 1.17, with correct
values and gradients (tests/interop/scipy_functions.py runs them): `special` logsumexp, softmax, log_softmax, erf,
expit, logit, ndtr, log_ndtr, gammaln, gamma, betaln, multigammaln, xlogy, entr, rel_entr, i0; `stats` entropy, zscore,
skew, kurtosis, moment, gmean, hmean, pmean, variation, sem, tmean, trim_mean, iqr, circmean, directional_stats and the
statistics of ttest_1samp, ttest_ind, f_oneway, bartlett; `integrate` trapezoid, cumulative_trapezoid;
`spatial.transform.Rotation`. SciPy itself accepts no other library's arrays in `linalg`, `signal`, `spatial.distance`,
`integrate.simpson` and the distributions of `stats`: there the conversion to NumPy rejects tracked tensors.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from glassgrad import errors
from glassgrad.base import provenance
from glassgrad.base.tables import words
from glassgrad.engine.protocols.exchange import from_dlpack
from glassgrad.engine.protocols.functions import SPELLINGS
from glassgrad.engine.protocols.meanings import matrix_trace
from glassgrad.engine.protocols.ufuncs import scipy_special
from glassgrad.engine.tensor import Tensor, make
from glassgrad.engine.tensors import creation
from glassgrad.engine.tensors.devices import Device, DType
from glassgrad.ops import arrange, data_dependent, elementwise, index, narrow, scan, shape, sort
from glassgrad.ops.core import PRIMITIVES, Array, Custom, bad_option
from glassgrad.ops.names import PUBLIC, public

VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12")
_DTYPES = words(
    """
    int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64 complex64 complex128
    """
)


class UniqueAll(NamedTuple):
    """The result of `unique_all`."""

    values: Array
    indices: Array
    inverse_indices: Array
    counts: Array


class UniqueCounts(NamedTuple):
    """The result of `unique_counts`."""

    values: Array
    counts: Array


class UniqueInverse(NamedTuple):
    """The result of `unique_inverse`."""

    values: Array
    inverse_indices: Array


def _unique_all(x: Array) -> UniqueAll:
    flat = shape.reshape(x, -1)
    first, inverse, counts = data_dependent.unique_p(flat, axis=None)
    return UniqueAll(index.take(flat, first), first, shape.reshape(inverse, tuple(x.shape)), counts)


def _unique_counts(x: Array) -> UniqueCounts:
    found = _unique_all(x)
    return UniqueCounts(found.values, found.counts)


def _unique_inverse(x: Array) -> UniqueInverse:
    found = _unique_all(x)
    return UniqueInverse(found.values, found.inverse_indices)


def _asarray(obj: Array, /, *, dtype: DType = None, device: Device = None, copy: bool | None = None) -> Tensor:
    x = creation.as_tensor(obj, dtype, device)
    if isinstance(obj, Tensor) and dtype is not None and obj.dtype != dtype:
        x = shape.astype(obj, dtype)
    y: Tensor = shape.clone(x) if copy else x
    return y


def _astype(x: Array, dtype: DType, /, *, copy: bool = True, device: Device = None) -> Array:
    y = shape.astype(x, dtype)
    return shape.clone(x) if copy and y is x else y


def _reshape(x: Array, /, shape: tuple[int, ...], *, copy: bool | None = None) -> Array:
    y = PUBLIC["reshape"](x, tuple(shape))
    return PUBLIC["clone"](y) if copy else y


def _cumulative(function: Callable[..., Array], start: float) -> Callable[..., Array]:
    def call(x: Array, /, *, axis: int | None = None, dtype: DType = None, include_initial: bool = False) -> Array:
        at = 0 if axis is None else axis
        y = function(x, at, dtype=dtype)
        if not include_initial:
            return y
        first = list(y.shape)
        first[at] = 1
        return shape.cat([make(np.full(first, start, y.dtype), None, False), y], at)

    return call


def _searchsorted(x1: Array, x2: Array, /, *, side: str = "left", sorter: Array = None) -> Array:
    return sort.searchsorted(x1 if sorter is None else index.take(x1, sorter, 0), x2, side=side)


def _linspace(
    start: Array,
    stop: Array,
    /,
    num: int,
    *,
    dtype: DType = None,
    device: Device = None,
    endpoint: bool = True,
) -> Array:
    steps = np.linspace(0, 1, num, endpoint=endpoint, dtype=dtype or creation.DEFAULT)
    return start + (stop - start) * make(steps, None, False)


def _arange(
    start: Array, /, stop: Array = None, step: Array = 1, *, dtype: DType = None, device: Device = None
) -> Tensor:
    start, stop = (0, start) if stop is None else (start, stop)
    # A step that leads away from the end gives an empty result; PyTorch raises.
    return creation.arange(start, start if (stop - start) * step < 0 else stop, step, dtype=dtype, device=device)


def _eye(
    n_rows: int, n_cols: int | None = None, /, *, k: int = 0, dtype: DType = None, device: Device = None
) -> Tensor:
    return creation.tensor(np.eye(n_rows, n_cols, k), dtype or creation.DEFAULT, False, device)


def _can_cast(x: Array, to: Any, /) -> bool:
    source: Any = getattr(x, "dtype", x)
    return np.can_cast(source, to)


def _concat(xs: Array, /, *, axis: int | None = 0) -> Array:
    return shape.cat([shape.reshape(x, -1) for x in xs], 0) if axis is None else shape.cat(xs, axis)


_OWN: dict[str, Any] = {
    "asarray": _asarray,
    "astype": _astype,
    "reshape": _reshape,
    "from_dlpack": from_dlpack,
    "where": lambda condition, x1, x2, /: elementwise.where(condition, x1, x2),
    "equal": elementwise.equal,
    "linspace": _linspace,
    "eye": _eye,
    "searchsorted": _searchsorted,
    "cumulative_sum": _cumulative(scan.cumsum, 0),
    "cumulative_prod": _cumulative(scan.cumprod, 1),
    "unique_all": _unique_all,
    "unique_counts": _unique_counts,
    "unique_inverse": _unique_inverse,
    "unique_values": lambda x, /: _unique_all(x).values,
    "nonzero": lambda x, /: data_dependent.nonzero_p(x),
    "isdtype": lambda dtype, kind: bool(np.isdtype(np.dtype(dtype), kind)),
    "result_type": lambda *values: narrow.result_type(
        *(np.empty(0, x.dtype) if isinstance(x, Tensor) else x for x in values)
    ),
    "can_cast": _can_cast,
    "finfo": lambda t, /: narrow.finfo(getattr(t, "dtype", t)),
    "iinfo": lambda t, /: np.iinfo(getattr(t, "dtype", t)),
    "concat": _concat,
    "take": lambda x, indices, /, *, axis=None: index.take(x, indices, axis),
    "tile": lambda x, repetitions, /: arrange.tile(x, *repetitions),
    "e": math.e,
    "pi": math.pi,
    "inf": math.inf,
    "nan": math.nan,
    "newaxis": None,
    "bool": np.dtype(bool),
    **{name: np.dtype(name) for name in _DTYPES},
    **{
        name: getattr(creation, name)
        for name in (
            "empty",
            "empty_like",
            "full",
            "full_like",
            "ones",
            "ones_like",
            "zeros",
            "zeros_like",
        )
    },
    "arange": _arange,
}


class _Info:
    """The result of `__array_namespace_info__()`: the only device, and the dtypes."""

    def capabilities(self) -> dict[str, Any]:
        """Return which data-dependent features exist: boolean indexing and data-dependent shapes."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> str:
        """Return the only device."""
        return "cpu"

    def devices(self) -> list[str]:
        """Return all devices."""
        return ["cpu"]

    def default_dtypes(self, *, device: Device = None) -> dict[str, Any]:
        """Return the dtypes of Python numbers."""
        return {
            "real floating": creation.DEFAULT,
            "complex floating": np.dtype(np.complex64),
            "integral": np.dtype(np.int64),
            "indexing": np.dtype(np.int64),
        }

    def dtypes(self, *, device: Device = None, kind: Any = None) -> dict[str, Any]:
        """Return the dtypes by name, all or those of a kind."""
        every = {name: np.dtype(name) for name in ("bool", *_DTYPES)}
        return {name: dtype for name, dtype in every.items() if kind is None or np.isdtype(dtype, kind)}


# Functions of the main namespace that the standard also has in its linear algebra.
_IN_LINALG = frozenset({"matrix_transpose", "outer", "tensordot"})


class Extension:
    """An extension of the standard: the functions of a module of ours, with the standard's names of arguments."""

    def __init__(self, name: str) -> None:
        self.__name__ = name

    def __getattr__(self, name: str) -> Any:
        if name == "trace" and self.__name__ == "glassgrad.linalg":
            return matrix_trace
        if name in _IN_LINALG and self.__name__ == "glassgrad.linalg":
            return PUBLIC[name]
        function = getattr(importlib.import_module(self.__name__), name)
        found = public(function, name) if callable(function) else function
        setattr(self, name, found)
        return found


def _no_derivative(_g: Array, _needs: Any, _y: Array, *_x: Array, function: Any) -> Any:
    raise errors.OPAQUE(function=f"scipy.special.{function.__name__}", where=provenance.here())


opaque_p = Custom(
    "opaque",
    lambda _xp, *x, function: function(*x),
    joint_vjp=_no_derivative,
    register=False,
)
opaque_p.describe("a function of SciPy without a derivative", "raises")
PRIMITIVES[opaque_p.name] = opaque_p


class Special:
    """The module in which SciPy looks up special functions of other array libraries.

    Functions without a derivative here are computed too, since tests return p-values beside their statistics; only a
    backward pass through them fails.
    """

    def __getattr__(self, name: str) -> Any:
        found = scipy_special(name)
        if found is None:
            function = getattr(importlib.import_module("scipy.special"), name)
            # SciPy's public function is a wrapper that looks ours up; the wrapped function computes.
            found = partial(opaque_p, function=getattr(function, "__wrapped__", function))
        setattr(self, name, found)
        return found


class Namespace:
    """The functions, constants and dtypes of the standard as attributes; extensions `linalg` and `fft`."""

    __name__ = "glassgrad.engine.protocols.namespace"
    __array_api_version__ = VERSIONS[-1]
    linalg = Extension("glassgrad.linalg")
    fft = Extension("glassgrad.fft")
    special = Special()

    def __getattr__(self, name: str) -> Any:
        for table in (_OWN, SPELLINGS, PUBLIC):
            if name in table:
                return table[name]
        raise AttributeError(f"the array-API namespace of glassgrad has no {name!r}")

    def __dir__(self) -> list[str]:
        return sorted({*_OWN, *SPELLINGS, *PUBLIC, "linalg", "fft", "special"})

    def __array_namespace_info__(self) -> _Info:
        return _Info()

    def for_version(self, version: str | None) -> Namespace:
        """Return the namespace; raises for an unknown version of the standard."""
        if version is not None and version not in VERSIONS:
            raise bad_option("__array_namespace__", "api_version", version, f"one of {', '.join(VERSIONS)}")
        return self


NAMESPACE = Namespace()
