"""An array in the record of an update rule."""

from __future__ import annotations

from typing import Any

import numpy as np

from glassgrad.ops.core import Primitive


class Value:
    """An array in the record: the variable that holds it from the start, or the call that makes it."""

    __slots__ = ("args", "dtype", "params", "prim", "shape", "variable")

    def __init__(
        self,
        shape: tuple[int, ...],
        dtype: np.dtype[Any],
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
        """Tell whether the same memory could hold both."""
        return self.shape == other.shape and self.dtype == other.dtype
