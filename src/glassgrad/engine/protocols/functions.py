"""NumPy's other functions on Tensors: `np.sum(t, axis=0)`, `np.concatenate([t, u])`, `np.linalg.norm(t)`.

A NumPy function maps to ours of the same name. Where the two differ in meaning (`np.max` returns no indices, `np.std`
divides by n, `np.repeat` repeats elements) `SPELLINGS` translates NumPy's meaning into our terms. A function without a
counterpart is computed if nothing requires a gradient, and raises an error if something does.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from typing import Any

import numpy as np

from glassgrad import errors
from glassgrad.base import provenance
from glassgrad.base.tables import words
from glassgrad.engine import inplace
from glassgrad.engine.protocols.meanings import LINALG, MEANINGS, Axis, over_nothing
from glassgrad.engine.protocols.ufuncs import check_targets, refusal
from glassgrad.engine.tensor import Tensor, make
from glassgrad.engine.tensors import creation
from glassgrad.ops import arrange, compound, data_dependent, index, narrow, reduce, shape, sort, statistics
from glassgrad.ops.complexes import _squared_size
from glassgrad.ops.core import Array, canonical_axis
from glassgrad.ops.names import PUBLIC, public

# --- NumPy's meanings ----------------------------------------------------------------------------


def _flat(x: Array) -> Array:
    return shape.reshape(x, -1)


def _std(
    a: Array, axis: Axis = None, ddof: float = 0, keepdims: bool = False, correction: float | None = None
) -> Array:
    return reduce.std(a, axis, ddof if correction is None else correction, keepdims)


def _var(
    a: Array, axis: Axis = None, ddof: float = 0, keepdims: bool = False, correction: float | None = None
) -> Array:
    return reduce.var(a, axis, ddof if correction is None else correction, keepdims)


def _without_nan(reduction: Callable[..., Array], fill: float) -> Callable[..., Array]:
    def call(a: Array, axis: Axis = None, keepdims: bool = False) -> Array:
        missing = PUBLIC["isnan"](a)
        y = reduction(PUBLIC["where"](missing, fill, a), axis, keepdims)
        # If all entries are NaN, there is no largest; the product is 1, as for no entries.
        return y if fill == 1 else PUBLIC["where"](PUBLIC["all"](missing, axis, keepdims), np.nan, y)

    return call


def _nanvar(a: Array, axis: Axis = None, ddof: float = 0, keepdims: bool = False) -> Array:
    valid = PUBLIC["logical_not"](PUBLIC["isnan"](a))
    centred = PUBLIC["where"](valid, a - reduce.nanmean(a, axis, True), 0)
    left = reduce.sum(valid, axis, keepdims) - ddof
    return reduce.sum(_squared_size(centred), axis, keepdims) / PUBLIC["where"](left > 0, left, np.nan)


def _gradient(f: Array, *varargs: Array, axis: Axis = None, edge_order: int = 1) -> Array:
    dims = range(len(f.shape)) if axis is None else (axis,) if isinstance(axis, int) else tuple(axis)
    spacing = list(varargs) * len(dims) if len(varargs) == 1 else list(varargs) or [1] * len(dims)
    found = statistics.gradient(f, spacing=spacing, dim=tuple(dims), edge_order=edge_order)
    return found[0] if len(found) == 1 else found


def _variables(m: Array, y: Array, rowvar: bool) -> Array:
    """The variables of NumPy's `cov` as rows."""
    parts = [x.T if len(x.shape) > 1 and not rowvar else x for x in (m, y) if x is not None]
    return parts[0] if len(parts) == 1 else arrange.vstack(parts)


def _cov(
    m: Array,
    y: Array = None,
    rowvar: bool = True,
    bias: bool = False,
    ddof: int | None = None,
    fweights: Array = None,
    aweights: Array = None,
) -> Array:
    correction = int(not bias) if ddof is None else ddof
    return statistics.cov(_variables(m, y, rowvar), correction=correction, fweights=fweights, aweights=aweights)


def _average(a: Array, axis: Axis = None, weights: Array = None, keepdims: bool = False) -> Array:
    if weights is None:
        return reduce.mean(a, axis, keepdims)
    if axis is None and np.shape(weights) != tuple(a.shape):
        raise ValueError("np.average needs an axis for weights of another shape")
    if np.ndim(weights) == 1 and len(a.shape) > 1 and isinstance(axis, int):
        weights = shape.reshape(weights, *(-1 if at == axis % len(a.shape) else 1 for at in range(len(a.shape))))
    weights = shape.broadcast_to(weights, a.shape)
    return reduce.sum(a * weights, axis, keepdims) / reduce.sum(weights, axis, keepdims)


def _sort(
    a: Array, axis: int | None = -1, kind: str | None = None, stable: bool | None = None, descending: bool = False
) -> Array:
    steady = bool(stable) or kind in {"stable", "mergesort"}
    return sort.sort(_flat(a) if axis is None else a, -1 if axis is None else axis, descending, steady).values


def _argsort(
    a: Array, axis: int | None = -1, kind: str | None = None, stable: bool | None = None, descending: bool = False
) -> Array:
    steady = bool(stable) or kind in {"stable", "mergesort"}
    return sort.argsort(_flat(a) if axis is None else a, -1 if axis is None else axis, descending, steady)


def _unique(
    ar: Array,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
) -> Array:
    first, inverse, counts = data_dependent.unique_p(ar, axis=axis)
    values = index.take(_flat(ar) if axis is None else ar, first, axis or 0)
    asked = zip((first, inverse, counts), (return_index, return_inverse, return_counts), strict=True)
    extras = [array for array, wanted in asked if wanted]
    return (values, *extras) if extras else values


def _select(condlist: Array, choicelist: Array, default: Array = 0) -> Array:
    chosen = default
    for condition, choice in zip(reversed(condlist), reversed(choicelist), strict=True):
        chosen = PUBLIC["where"](condition, choice, chosen)
    return chosen


def _pad(array: Array, pad_width: Array, mode: str = "constant", constant_values: Array = 0) -> Array:
    widths = np.broadcast_to(np.asarray(pad_width), (len(array.shape), 2)).tolist()
    return arrange.pad(array, [tuple(pair) for pair in widths], mode, constant_values)


def _atleast(function: Callable[[Array], Array]) -> Callable[..., Any]:
    def call(*arys: Array) -> Array:
        found = tuple(function(x) for x in arys)
        return found[0] if len(found) == 1 else found

    return call


def _polyval(p: Array, x: Array) -> Array:
    y = 0 * x
    for coefficient in p:
        y = y * x + coefficient
    return y


def _swapaxes(a: Array, axis1: int, axis2: int) -> Array:
    return shape.transpose(a, axis1, axis2)


def _diff(a: Array, n: int = 1, axis: int = -1, prepend: Array = None, append: Array = None) -> Array:
    def edge(value: Array) -> Array:
        if value is None or np.ndim(value):
            return value
        column = list(a.shape)
        column[canonical_axis(axis, len(column))] = 1
        return shape.broadcast_to(creation.as_tensor(value), tuple(column))

    return PUBLIC["diff"](a, n, axis, edge(prepend), edge(append))


_SPELLINGS: dict[str, Callable[..., Any]] = {
    "diff": _diff,
    "ptp": lambda a, axis=None, keepdims=False: reduce.amax(a, axis, keepdims) - reduce.amin(a, axis, keepdims),
    "std": _std,
    "var": _var,
    "nanvar": _nanvar,
    "average": _average,
    "nanstd": lambda a, axis=None, ddof=0, keepdims=False: PUBLIC["sqrt"](_nanvar(a, axis, ddof, keepdims)),
    "nanmax": _without_nan(reduce.amax, -np.inf),
    "nanmin": _without_nan(reduce.amin, np.inf),
    "nanprod": _without_nan(PUBLIC["prod"], 1.0),
    "median": lambda a, axis=None, keepdims=False: sort.quantile(a, 0.5, axis, keepdims),
    "quantile": lambda a, q, axis=None, method="linear", keepdims=False: sort.quantile(
        a, q, axis, keepdims, interpolation=method
    ),
    "percentile": lambda a, q, axis=None, method="linear", keepdims=False: sort.quantile(
        a, np.asarray(q) / 100, axis, keepdims, interpolation=method
    ),
    "count_nonzero": lambda a, axis=None, *, keepdims=False: reduce.sum(PUBLIC["ne"](a, 0), axis, keepdims),
    "sort": _sort,
    "argsort": _argsort,
    "unique": _unique,
    "repeat": PUBLIC["repeat_interleave"],
    "tile": lambda A, reps: arrange.tile(A, *(reps if isinstance(reps, tuple | list) else (reps,))),
    "gradient": _gradient,
    "cov": _cov,
    "corrcoef": lambda x, y=None, rowvar=True: statistics.corrcoef(_variables(x, y, rowvar)),
    "pad": _pad,
    "select": _select,
    "nan_to_num": lambda x, copy=True, nan=0.0, posinf=None, neginf=None: compound.nan_to_num(x, nan, posinf, neginf),
    "broadcast_arrays": arrange.broadcast_tensors,
    "swapaxes": _swapaxes,
    "transpose": lambda a, axes=None: shape.transpose(a) if axes is None else shape.permute(a, tuple(axes)),
    "nonzero": data_dependent.nonzero_p,
    "flatnonzero": lambda a: data_dependent.nonzero_p(_flat(a))[0],
    "atleast_1d": _atleast(arrange.atleast_1d),
    "atleast_2d": _atleast(arrange.atleast_2d),
    "atleast_3d": _atleast(arrange.atleast_3d),
    "vdot": lambda a, b: reduce.sum(PUBLIC["conj"](_flat(a)) * _flat(b)),
    "ediff1d": lambda ary: PUBLIC["diff"](_flat(ary)),
    "polyval": _polyval,
    "zeros_like": lambda a, dtype=None: creation.zeros_like(a, dtype=dtype),
    "ones_like": lambda a, dtype=None: creation.ones_like(a, dtype=dtype),
    "empty_like": lambda prototype, dtype=None: creation.empty_like(prototype, dtype=dtype),
    "full_like": lambda a, fill_value, dtype=None: creation.full_like(a, fill_value, dtype=dtype),
}

# Functions whose `axis` may be (), which reduces nothing.
_OVER_AXES = words(
    """
    sum prod mean std var max min amax amin ptp all any count_nonzero average median quantile percentile nansum
    nanprod nanmean nanstd nanvar nanmax nanmin
    """
)
_ALL = _SPELLINGS | MEANINGS
SPELLINGS = _ALL | {name: over_nothing(_ALL.get(name) or PUBLIC[name]) for name in _OVER_AXES}

# PyTorch's functions of the same names mean something else.
_NOT_OURS = frozenset({"nanmedian", "gradient"})

# Functions that only read values or write them somewhere, so that no gradient can be lost.
WITHOUT_GRADIENT = frozenset(
    words(
        """
        shape ndim size result_type can_cast common_type min_scalar_type may_share_memory shares_memory isrealobj
        iscomplexobj isreal iscomplex array_equal array_equiv array_repr array_str array2string digitize
        argpartition lexsort nanargmax nanargmin histogram_bin_edges histogram histogram2d histogramdd unravel_index
        ravel_multi_index tril_indices_from triu_indices_from diag_indices_from einsum_path save savez
        savez_compressed savetxt
        """
    )
)
_NAMESPACES = {"numpy.linalg": "glassgrad.linalg", "numpy.fft": "glassgrad.fft"}


# --- calls ----------------------------------------------------------------------------------------


@lru_cache(maxsize=512)
def find(function: Any) -> Callable[..., Any] | None:
    """Return our implementation of one of NumPy's functions, or None."""
    name, home = function.__name__, function.__module__
    if home == "numpy.linalg" and name in LINALG:
        return LINALG[name]
    if home in _NAMESPACES:
        ours = getattr(importlib.import_module(_NAMESPACES[home]), name, None)
        return None if ours is None else public(ours, name)
    return None if name in _NOT_OURS else SPELLINGS.get(name) or PUBLIC.get(name)


@lru_cache(maxsize=512)
def _signature(function: Any) -> inspect.Signature | None:
    try:
        return inspect.signature(function)
    except (TypeError, ValueError):
        return None


def function(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Array:
    """Serve `Tensor.__array_function__`."""
    name = func.__name__
    check_targets(args[0] if name in _WRITERS else kwargs.get("out"), f"np.{name}")
    tracked = _any_tracked(args) or _any_tracked(kwargs)
    if (name in WITHOUT_GRADIENT and not _any_tracked(kwargs.get("weights"))) or (name in _WRITERS and not tracked):
        return _plain(func, args, kwargs)
    if name in WITHOUT_GRADIENT:
        raise refusal(name, {"weights": kwargs["weights"]})
    ours = find(func)
    if ours is None:
        if tracked:
            import difflib

            close = difflib.get_close_matches(name, [*SPELLINGS, *PUBLIC], n=1)
            nearest = f"\nSimilar: {close[0]}." if close else ""
            raise errors.NO_NUMPY_FUNCTION(function=name, nearest=nearest, where=provenance.here())
        return _plain(func, args, kwargs)
    try:
        given, named = _normalised(func, args, kwargs)
        return ours(*given, **named)
    except errors.GlassgradError as error:
        if tracked:
            raise
        return _fallback(func, args, kwargs, error)
    except TypeError as error:
        if not tracked:
            return _fallback(func, args, kwargs, error)
        unknown = {key: value for key, value in kwargs.items() if f"'{key}'" in str(error)}
        raise refusal(name, unknown or {key: x for key, x in kwargs.items() if key != "axis"}) from error


def _fallback(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], error: Exception) -> Array:
    """Let NumPy compute a call that our function rejects; if both fail, raise our message."""
    with suppress(Exception):  # whatever NumPy raises, our message names op and line
        return _plain(func, args, kwargs)
    raise error from None


def _normalised(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """Pass the arguments by NumPy's names, and drop those that have NumPy's default values.

    NumPy orders arguments differently: `np.sum(x, 0, None, out)` has a dtype in the third place.
    """
    signature = _signature(func)
    if signature is None or len(args) <= 1:
        return list(args), _without_defaults(signature, kwargs)
    bound = signature.bind(*args, **kwargs)
    positional: list[Array] = []
    named: dict[str, Any] = {}
    for name, value in bound.arguments.items():
        parameter = signature.parameters[name]
        if parameter.kind is parameter.VAR_POSITIONAL:
            positional.extend(value)
        elif parameter.kind is parameter.VAR_KEYWORD:
            named.update(value)
        elif parameter.default is parameter.empty and not named:
            positional.append(value)
        else:
            named[name] = value
    return positional, _without_defaults(signature, named)


def _without_defaults(signature: inspect.Signature | None, named: dict[str, Any]) -> dict[str, Any]:
    if signature is None:
        return {name: value for name, value in named.items() if name != "out" or value is not None}
    kept = {}
    for name, value in named.items():
        parameter = signature.parameters.get(name)
        if parameter is None or value is not parameter.default:
            kept[name] = value
    return kept


# --- without the tape -----------------------------------------------------------------------------

_WRITERS = frozenset({"copyto", "fill_diagonal", "put", "place", "putmask", "put_along_axis"})


def _any_tracked(value: Array) -> bool:
    if isinstance(value, Tensor):
        return value._tracks
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, tuple | list):
        return False
    return any(_any_tracked(part) for part in value)


def _bare(value: Array) -> Array:
    if isinstance(value, Tensor):
        return value.lifted()
    if isinstance(value, tuple | list):
        return type(value)([_bare(part) for part in value]) if type(value) in {tuple, list} else value
    return value


def _dressed(value: Array) -> Array:
    if isinstance(value, np.ndarray) and (value.dtype.kind in "biufc" or narrow.is_bfloat16(value.dtype)):
        return make(value, None, False)
    if type(value) in {tuple, list}:
        return type(value)(_dressed(part) for part in value)
    return value


def _plain(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Array:
    result = func(*_bare(args), **{name: _bare(value) for name, value in kwargs.items()})
    target = args[0] if func.__name__ in _WRITERS else kwargs.get("out")
    if isinstance(target, Tensor):
        inplace.log(target)
        return target if "out" in kwargs else _dressed(result)
    return _dressed(result)
