"""NumPy's universal functions on Tensors: `np.sin(t)`, `ndarray + t`, `np.add.reduce(t)`, SciPy's special functions.

Functions that exist here are recorded; others are computed if nothing requires a gradient, and rejected otherwise.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from glassgrad import errors
from glassgrad.base import provenance
from glassgrad.engine.inplace import check_writeable
from glassgrad.engine.mode import MODE, RECORDING
from glassgrad.engine.record import apply
from glassgrad.engine.tensor import Tensor, make
from glassgrad.engine.tensors.devices import DType
from glassgrad.engine.tensors.operands import overrides_ufuncs
from glassgrad.engine.writes import MUTATIONS
from glassgrad.ops import compound, scan
from glassgrad.ops.core import INTERPRETERS, REGISTRY, Array, Primitive
from glassgrad.ops.elementwise import abs as _abs
from glassgrad.ops.names import PUBLIC

# --- matching NumPy's functions to ours -----------------------------------------------------------


def _heaviside(a: Array, b: Array) -> Array:
    """NumPy computes it in floats; our function returns integers for integers."""
    kinds = [x.dtype if hasattr(x, "dtype") else type(x) for x in (a, b)]
    if np.result_type(*(np.dtype(kind) for kind in kinds)).kind in "fV":
        return REGISTRY["heaviside"](a, b)
    return _plain(np.heaviside, "__call__", (a, b), {})


def _table() -> dict[Any, Callable[..., Any]]:
    """Match by the NumPy function that the primitive calls, else by name."""
    table: dict[Any, Callable[..., Any]] = {}
    # Not dir(np): it also lists submodules, and access to one imports it.
    for ufunc in vars(np).values():
        if isinstance(ufunc, np.ufunc) and ufunc.__name__ in PUBLIC:
            table[ufunc] = PUBLIC[ufunc.__name__]
    for prim in REGISTRY.values():
        ufunc = getattr(np, prim.forward, None) if isinstance(prim.forward, str) else None
        if isinstance(ufunc, np.ufunc) and prim.name != "root":
            table[ufunc] = prim
    return table | {
        np.matmul: REGISTRY["matmul"],
        np.reciprocal: REGISTRY["reciprocal"],
        np.power: REGISTRY["power"],
        np.rint: PUBLIC["round"],
        np.conjugate: PUBLIC["conj"],
        np.positive: compound.positive,
        np.cbrt: lambda x: PUBLIC["sign"](x) * _abs(x) ** (1 / 3),
        np.heaviside: _heaviside,
        np.divmod: lambda x, other: (PUBLIC["floor_divide"](x, other), PUBLIC["remainder"](x, other)),
        np.modf: lambda x: (compound.frac(x), PUBLIC["trunc"](x)),
    }


UFUNCS = _table()


def _gamma_sign(x: Array) -> Array:
    return PUBLIC["where"](x > 0, 1.0, 1 - 2 * (PUBLIC["floor"](x) % 2))


# SciPy's names that differ from ours.
_SCIPY: dict[str, Any] = {
    "psi": "digamma",
    "gamma": lambda x: _gamma_sign(x) * PUBLIC["exp"](PUBLIC["gammaln"](x)),
    "exp10": lambda x: PUBLIC["power"](10.0, x),
    "rel_entr": lambda x, y: PUBLIC["xlogy"](x, x) - PUBLIC["xlogy"](x, y),
    "kl_div": lambda x, y: PUBLIC["xlogy"](x, x) - PUBLIC["xlogy"](x, y) - x + y,
    "betaln": lambda a, b: PUBLIC["gammaln"](a) + PUBLIC["gammaln"](b) - PUBLIC["gammaln"](a + b),
    "log_expit": "log_sigmoid",
    "log_softmax": "log_softmax",
    "j0": "bessel_j0",
    "j1": "bessel_j1",
    "y0": "bessel_y0",
    "y1": "bessel_y1",
    "k0": "modified_bessel_k0",
    "k1": "modified_bessel_k1",
    "k0e": "scaled_modified_bessel_k0",
    "k1e": "scaled_modified_bessel_k1",
}


def find(function: Any) -> Callable[..., Any] | None:
    """Return our implementation of one of NumPy's or SciPy's universal functions, or None."""
    ours = UFUNCS.get(function)
    if ours is not None:
        return ours
    name = function.__name__
    special = sys.modules.get("scipy.special")
    if special is None or getattr(special, name, None) is not function:
        return None
    return scipy_special(name)


def scipy_special(name: str) -> Callable[..., Any] | None:
    """Return our implementation of a function of `scipy.special`, or None."""
    entry = _SCIPY.get(name, name)
    found: Callable[..., Any] | None = PUBLIC.get(entry) if isinstance(entry, str) else entry
    return found


# --- calls ----------------------------------------------------------------------------------------


def ufunc(function: Any, method: str, inputs: tuple[Array, ...], kwargs: dict[str, Any]) -> Array:
    """Serve `Tensor.__array_ufunc__`."""
    for x in inputs:
        if type(x) not in INTERPRETERS and overrides_ufuncs(x):
            return NotImplemented  # NumPy then calls the other class
    out = kwargs.get("out")
    ours = find(function)
    if method == "__call__" and not kwargs and ours is not None:
        return apply(ours, inputs, {}) if isinstance(ours, Primitive) else ours(*inputs)
    tracked = any(isinstance(x, Tensor) and x._tracks for x in (*inputs, *(out or ())))
    if not tracked or not MODE.flags & RECORDING:
        return _plain(function, method, inputs, kwargs)
    call = f"np.{function.__name__}" + ("" if method == "__call__" else f".{method}")
    if out is not None:
        raise errors.OUT_NOT_SUPPORTED(op=call, where=provenance.here(1))
    if method == "__call__" and ours is not None and set(kwargs) == {"dtype"}:
        return ours(*(x.astype(kwargs["dtype"]) if isinstance(x, Tensor) else x for x in inputs))
    if method == "outer" and not kwargs and ours is not None:
        return _outer(ours, *inputs)
    if method in {"reduce", "accumulate"}:
        return _along(function, method, *inputs, **kwargs)
    if method in {"reduceat", "at"}:
        raise errors.UFUNC_METHOD(function=function.__name__, method=method, where=provenance.here(1))
    raise refusal(function.__name__, kwargs)


def refusal(name: str, kwargs: dict[str, Any]) -> Exception:
    """Return the exception for a function, or an argument of it, that has no derivative here."""
    for argument, value in kwargs.items():
        return errors.NUMPY_ARGUMENT(function=name, argument=argument, given=value, where=provenance.here(1))
    return errors.NO_NUMPY_FUNCTION(function=name, nearest="", where=provenance.here(1))


def _plain(function: Any, method: str, inputs: tuple[Array, ...], kwargs: dict[str, Any]) -> Array:
    """Compute without the tape; a Tensor given as `out` is written to."""
    plain = [x.lifted() if isinstance(x, Tensor) else x for x in inputs]
    kwargs = {name: value.lifted() if isinstance(value, Tensor) else value for name, value in kwargs.items()}
    out = kwargs.get("out")
    check_targets(out if method != "at" else inputs[:1], f"np.{function.__name__}")
    if out is not None:
        kwargs["out"] = tuple(x.lifted() if isinstance(x, Tensor) else x for x in out)
    result = getattr(function, method)(*plain, **kwargs)
    if out is not None:
        MUTATIONS.record(*(x.array for x in out if isinstance(x, Tensor) and type(x.array) is np.ndarray))
        return out[0] if len(out) == 1 else out
    if method == "at":
        MUTATIONS.record(*(x.array for x in inputs[:1] if isinstance(x, Tensor) and type(x.array) is np.ndarray))
        return None
    return tuple(_wrapped(part) for part in result) if isinstance(result, tuple) else _wrapped(result)


def check_targets(targets: Array, op: str) -> None:
    """Raise unless the tensors that a NumPy function will write to have writable memory."""
    for x in targets if isinstance(targets, tuple) else (targets,):
        if isinstance(x, Tensor) and type(x.array) is np.ndarray:
            check_writeable(x.array, op)


def _wrapped(array: Array) -> Tensor:
    return make(np.asarray(array) if isinstance(array, np.generic) else array, None, False)


def _outer(ours: Callable[..., Any], a: Array, b: Array) -> Array:
    a = a if hasattr(a, "shape") else np.asarray(a)
    return ours(a.reshape(tuple(a.shape) + (1,) * np.ndim(b)), b)


_REDUCE = {
    "add": "sum",
    "multiply": "prod",
    "maximum": "amax",
    "minimum": "amin",
    "logaddexp": "logsumexp",
    "logical_and": "all",
    "logical_or": "any",
}
_ACCUMULATE: dict[str, Callable[[Any, int], Any]] = {
    "add": scan.cumsum,
    "multiply": scan.cumprod,
    "maximum": lambda x, axis: scan.cummax(x, axis).values,
    "minimum": lambda x, axis: scan.cummin(x, axis).values,
    "logaddexp": scan.logcumsumexp,
}


def _along(function: Any, method: str, x: Array, axis: Any = 0, dtype: DType = None, **kwargs: Any) -> Array:
    """`np.add.reduce(x, axis)` and `np.add.accumulate(x, axis)`; the axis is 0 by default."""
    name = function.__name__
    keepdims = bool(kwargs.pop("keepdims", False))
    not_given = (None, np._NoValue)  # NumPy's marker for missing arguments
    kwargs = {key: value for key, value in kwargs.items() if not any(value is mark for mark in not_given)}
    if kwargs:
        raise refusal(f"{name}.{method}", kwargs)
    x = x if dtype is None else x.astype(dtype)
    if method == "reduce" and name in _REDUCE:
        return PUBLIC[_REDUCE[name]](x, axis, keepdims)
    if method == "accumulate" and name in _ACCUMULATE:
        return _ACCUMULATE[name](x, axis)
    raise errors.UFUNC_METHOD(function=name, method=method, where=provenance.here(1))
