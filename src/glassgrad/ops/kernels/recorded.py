"""Arrays that have a recorder write down what is done with them (`recording`)."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np


class Unrecordable(Exception):  # noqa: N818 - no error: it says that NumPy has to make the calls
    """What a function does cannot be recorded."""


class _Running(threading.local):
    """The recorder of this thread."""

    recorder: Any = None


RUNNING = _Running()
clip: Any = np._core.umath.clip  # type: ignore[attr-defined]  # not declared; what `np.clip` calls
_ALLOWED = frozenset({
    "reshape", "transpose", "ravel", "view", "__array_finalize__", "__array_ufunc__", "__array_function__",
    "__new__", "__init__", "__getattribute__", "__setattr__", "__delattr__", "__class__", "__dir__", "__doc__",
    "__init_subclass__", "__subclasshook__", "__hash__", "__len__", "__repr__", "__str__", "__format__",
    "__array_wrap__", "__getitem__", "__setitem__", "__sizeof__", "__array__",
})  # fmt: skip  # a table
_OPERATORS = frozenset(
    f"__{turned}{name}__"
    for name in ("add", "sub", "mul", "truediv", "pow", "and", "or", "xor")
    for turned in ("", "r", "i")
) | {"__neg__", "__pos__", "__abs__", "__lt__", "__le__", "__gt__", "__ge__", "__eq__", "__ne__", "__invert__"}


class Recorded(np.ndarray):
    """An array that has a recorder write down what is done with it."""

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, out: Any = None, **options: Any) -> Any:
        return RUNNING.recorder.ufunc(ufunc, method, inputs, out, options)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if function is np.dot and len(args) == 2 and not kwargs:
            return RUNNING.recorder.dot(*args)
        if function is np.where and len(args) == 3 and not kwargs:
            return RUNNING.recorder.select(*args)
        if function is np.clip and len(args) == 3 and not kwargs and not any(one is None for one in args):
            return RUNNING.recorder.ufunc(clip, "__call__", args, None, {})
        raise Unrecordable(getattr(function, "__name__", "a function"))

    def dot(self, b: Any, out: Any = None) -> Any:
        """Multiply as `np.dot` does."""
        if out is not None:
            raise Unrecordable("dot into an array")
        return RUNNING.recorder.dot(self, b)

    def take(self, indices: Any, *options: Any, **named: Any) -> Any:
        """Take elements of the flattened array."""
        if options or named:
            raise Unrecordable("take along an axis")
        return RUNNING.recorder.take(self, indices)

    def __array_namespace__(self, **_options: Any) -> Any:
        return np

    def astype(self, dtype: Any, *options: Any, **named: Any) -> Any:
        """Return truth values as numbers."""
        if options or named or self.dtype != np.bool_:
            raise Unrecordable("a conversion")
        one, zero = (np.dtype(dtype).type(value) for value in (1, 0))
        return RUNNING.recorder.select(self, one, zero)

    def copy(self, order: Any = "C") -> Any:
        """Return a copy in C order."""
        return np.positive(self)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, np.ndarray):
            return RUNNING.recorder.take(self, index) if self.ndim == 1 else _refuse("an index")
        part = super().__getitem__(index)
        return part if isinstance(part, np.ndarray) else _refuse("reading a number")

    def __setitem__(self, index: Any, value: Any) -> None:
        if isinstance(index, np.ndarray) and isinstance(value, np.ndarray):
            RUNNING.recorder.put(self, index, value)
        elif index is Ellipsis and isinstance(value, np.ndarray):
            np.positive(value, out=self)
        else:
            _refuse("writing to a part")


def _refuse(what: str) -> Any:
    raise Unrecordable(what)


def _refusing(name: str) -> Callable[..., Any]:
    def method(*_args: Any, **_kwargs: Any) -> Any:
        raise Unrecordable(name)

    return method


for _name in set(dir(np.ndarray)) - _ALLOWED - _OPERATORS - set(vars(Recorded)):
    if callable(getattr(np.ndarray, _name)):  # also what reads a number, by which a function might decide
        setattr(Recorded, _name, _refusing(_name))
for _name in ("flat", "data", "ctypes", "real", "imag"):
    setattr(Recorded, _name, property(_refusing(_name)))


def plain(value: Any) -> Any:
    """Return an array of ours as one of NumPy's, and anything else as it is."""
    return value.view(np.ndarray) if isinstance(value, Recorded) else value


__all__ = ["RUNNING", "Recorded", "Unrecordable", "clip", "plain"]
