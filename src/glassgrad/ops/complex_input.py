"""What ops do with complex numbers: compute with them rightly, or refuse them.

A primitive states `takes_complex=True`, a function wears `@takes_complex`: value, gradient and tangent are right for
complex arguments. Whatever states nothing refuses them, so that an op which nobody thought about under this aspect
gives an error and no wrong number. Primitives refuse where they are called, functions where users meet them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, MutableMapping
from typing import Any, TypeVar

import numpy as np

from glassgrad import errors, provenance

Function = TypeVar("Function", bound=Callable[..., Any])


def takes_complex(function: Function) -> Function:
    """Mark a function as right for complex numbers."""
    function.takes_complex = True  # type: ignore[attr-defined]  # read below
    return function


# What most arguments are that are no arrays; they are passed over without a second look.
_REAL = frozenset({float, int, bool, str, type(None)})


def complex_dtype(values: Iterable[Any]) -> Any:
    """Return the dtype of the first complex number or array among `values` and the lists in them, or None."""
    for value in values:
        if type(value) in _REAL:
            continue
        dtype = getattr(getattr(value, "array", value), "dtype", None)  # a Tensor's own `dtype` would be a call
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
    """Return the function as users call it: refusing complex arguments unless it takes them."""
    if hasattr(function, "takes_complex"):  # it does, or is guarded already
        return function

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if complex_dtype((*args, *kwargs.values()) if kwargs else args) is not None:
            refuse_complex(name, (*args, *kwargs.values()))
        return function(*args, **kwargs)

    call.takes_complex = False  # type: ignore[attr-defined]  # says that it is guarded
    return call


def guard_all(module: MutableMapping[str, Any], names: Iterable[str]) -> None:
    """Guard functions of a module in their places, for everybody who imports them."""
    module.update({name: guarded(module[name], name) for name in names})
