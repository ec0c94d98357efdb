"""Complex support of ops: an op is correct for complex numbers or refuses them.

A primitive that states `takes_complex=True`, or a function with the decorator `@takes_complex`, has the right value,
gradient and tangent for complex arguments. Linear primitives have them unless they state the opposite. A file whose
functions all have them says so once, at its end. All other ops refuse complex arguments, so an unchecked op raises
instead of returning a wrong result. Primitives check in their call, functions in their public form.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, MutableMapping
from types import FunctionType
from typing import Any, TypeVar

import numpy as np

from glassgrad import errors
from glassgrad.base import provenance

Function = TypeVar("Function", bound=Callable[..., Any])


def takes_complex(function: Function) -> Function:
    """Mark a function as correct for complex numbers."""
    function.takes_complex = True  # type: ignore[attr-defined]  # read below
    return function


def all_take_complex(module: Mapping[str, Any], but: Iterable[str] = ()) -> None:
    """Mark the functions that a module defines, except those in `but`, as correct for complex numbers.

    This includes functions that are added later. tests/ops/complex_calls.py compares a call of each with PyTorch, and a
    test fails for a function without such a call.
    """
    for name, value in module.items():
        defined = isinstance(value, FunctionType) and value.__module__ == module["__name__"]
        if defined and not name.startswith("_") and name not in but:
            takes_complex(value)


def refuses_complex(function: Function) -> Function:
    """Mark a function that refuses complex numbers itself, usually through the primitive that it calls."""
    function.takes_complex = False  # type: ignore[attr-defined]  # read below
    return function


# The commonest types of arguments other than arrays, and the commonest dtypes; they are skipped at once.
_REAL = frozenset({float, int, bool, str, type(None)})
_SINGLE, _DOUBLE, _LONG = map(np.dtype, (np.float32, np.float64, np.int64))
_ndarray = np.ndarray


def complex_dtype(values: Iterable[Any]) -> Any:
    """Return the dtype of the first complex number or array among `values` and the lists in them, or None."""
    for value in values:
        kind = type(value)
        if kind in _REAL:
            continue
        # A Tensor's `dtype` property would cost a call.
        dtype = value.dtype if kind is _ndarray else getattr(getattr(value, "array", value), "dtype", None)
        if dtype is _SINGLE or dtype is _LONG or dtype is _DOUBLE:
            continue
        if dtype is not None:
            if getattr(dtype, "kind", None) == "c":
                return dtype
        elif type(value) is complex:
            return np.dtype(np.complex128)
        elif isinstance(value, list | tuple):
            found = complex_dtype(value)
            if found is not None:
                return found
    return None


def refuse_complex(op: str, values: Iterable[Any]) -> None:
    """Raise `KindError` if there is a complex number or array among `values`."""
    dtype = complex_dtype(values)
    if dtype is not None:
        raise errors.COMPLEX_REFUSED(op=op, dtype=dtype, where=provenance.here())


def guarded(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    """Return the public form of a function, which refuses complex arguments unless the function takes them."""
    if hasattr(function, "takes_complex"):  # it takes them or is already guarded
        return function

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if complex_dtype(args) is not None or (kwargs and complex_dtype(kwargs.values()) is not None):
            refuse_complex(name, (*args, *kwargs.values()))
        return function(*args, **kwargs)

    call.takes_complex = False  # type: ignore[attr-defined]  # marks it as guarded
    return call


def guard_all(module: MutableMapping[str, Any], names: Iterable[str]) -> None:
    """Replace functions of a module by their guarded forms, for all importers."""
    module.update({name: guarded(module[name], name) for name in names})
