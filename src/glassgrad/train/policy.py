"""The dtype of a forward pass, while the trained weights keep theirs."""

from __future__ import annotations

from typing import Any

import numpy as np

from glassgrad.engine.tensor import Tensor
from glassgrad.func import functional_call
from glassgrad.nn import Module
from glassgrad.ops.shape import astype

DTYPES = ("", "float16", "float32", "float64")


class Policy:
    """Calls a model so that it computes in `dtype`.

    float16     weights and inputs are rounded to half precision for the pass; the trained weights stay as they are
                (Micikevicius et al. 2018), and so do gradients and optimizer; outputs are float32 again
    float32, float64   the model itself is converted, once, and the inputs at every call
    ""          nothing is changed

    Example:
        >>> import glassgrad as gg
        >>> Policy(gg.nn.Linear(2, 2), "float16").outputs(gg.ones(1, 2)).dtype
        dtype('float32')
    """

    def __init__(self, model: Module, dtype: str = "") -> None:
        self.model = model
        self.half = dtype == "float16"
        self.dtype = np.dtype(dtype) if dtype else None
        if self.dtype is not None and not self.half:
            model.to(self.dtype)

    def outputs(self, *inputs: Any, **named: Any) -> Any:
        """Return the model's outputs."""
        if self.dtype is None:
            return self.model(*inputs, **named)
        inputs = tuple(self.cast(one) for one in inputs)
        named = {name: self.cast(one) for name, one in named.items()}
        if not self.half:
            return self.model(*inputs, **named)
        weights = {name: self.cast(weight) for name, weight in self.model.named_parameters()}
        found = functional_call(self.model, weights, inputs, named)
        if isinstance(found, tuple | list):
            return type(found)(_widened(one) for one in found)
        return _widened(found)

    def target(self, value: Any) -> Any:
        """Return targets in the dtype of the outputs."""
        return _widened(value) if self.half else self.cast(value)

    def cast(self, value: Any) -> Any:
        """Return a tensor of real numbers in the policy's dtype; everything else as it is."""
        if self.dtype is not None and isinstance(value, Tensor) and value.dtype.kind == "f":
            return astype(value, self.dtype)
        return value


def _widened(value: Any) -> Any:
    return astype(value, np.dtype(np.float32)) if isinstance(value, Tensor) and value.dtype.kind == "f" else value
