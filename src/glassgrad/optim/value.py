"""An array in the record of an update rule."""

from __future__ import annotations

from typing import Any

import numpy as np

from glassgrad.ops.core import Primitive


class Value:
    """An array in the record: either the variable of a given array, or the call that makes it."""

    __slots__ = ("args", "dtype", "params", "prim", "shape", "variable")

    def __init__(
        self,
        shape: tuple[int, ...],
        dtype: np.dtype,
        variable: str = "",
        prim: Primitive | None = None,
        args: tuple[Any, ...] = (),
        params: dict[str, Any] | None = None,
    ) -> None:
        self.shape = shape
        self.dtype = dtype
        self.variable = variable
        self.prim = prim
        self.args = args
        self.params = params or {}

    def is_like(self, other: Value) -> bool:
        """Tell whether the same memory could hold both values."""
        return self.shape == other.shape and self.dtype == other.dtype

    @property
    def arrays(self) -> list[Value]:
        """The arrays among the arguments of the call."""
        return [arg for arg in self.args if type(arg) is Value]

    @property
    def function(self) -> Any:
        """The NumPy function that computes it and takes `out`; None if there is none."""
        assert self.prim is not None
        found = getattr(np, self.prim.forward, None) if isinstance(self.prim.forward, str) else None
        floats = all(arg.dtype.kind in "fV" for arg in self.arrays)
        return found if isinstance(found, np.ufunc) and floats else None

    @property
    def is_view(self) -> bool:
        """Whether the call returns a view of its first argument."""
        return self.prim is not None and self.prim.is_view

    @property
    def is_new(self) -> bool:
        """Whether the call returns a new array, which may be written to."""
        return bool(self.shape) and not self.is_view


def as_number(value: Any) -> float | None:
    """Return an option as a float if it is a number, else None."""
    return None if value is None or isinstance(value, bool | str | tuple | list) else float(value)
