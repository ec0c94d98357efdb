"""The dtype of a forward pass; the trained weights keep theirs."""

from __future__ import annotations

from typing import Any

import numpy as np

from glassgrad.amp import autocast
from glassgrad.engine.tensor import Tensor
from glassgrad.func import functional_call
from glassgrad.nn import Module
from glassgrad.ops.core import Array
from glassgrad.ops.shape import astype

DTYPES = ("", "bfloat16", "float16", "float32", "float64")


class Policy:
    """Calls a model so that it computes in `dtype`.

    bfloat16    products round weights and inputs to bfloat16 and sum in float32 (`amp.autocast`); weights, gradients,
                losses and optimizer stay in float32; losses need no scaling; outputs are float32
    float16     weights and inputs are rounded to half precision for the pass; trained weights, gradients and optimizer
                keep their dtype (Micikevicius et al. 2018); outputs are float32
    float32, float64   the model itself is converted once, and the inputs at every call
    ""          no conversion

    Example:
        >>> import glassgrad as gg
        >>> Policy(gg.nn.Linear(2, 2), "float16").outputs(gg.ones(1, 2)).dtype
        dtype('float32')
    """

    def __init__(self, model: Module, dtype: str = "") -> None:
        self.model = model
        self.half = dtype == "float16"
        self.autocast = dtype == "bfloat16"
        self.dtype = np.dtype(dtype) if dtype and not self.autocast else None
        if self.dtype is not None and not self.half:
            model.to(self.dtype)

    def outputs(self, *inputs: Array, **named: Array) -> Any:
        """Return the model's outputs."""
        if self.autocast:
            with autocast("cpu"):
                return _all_widened(self.model(*inputs, **named))
        if self.dtype is None:
            return self.model(*inputs, **named)
        inputs = tuple(self.cast(one) for one in inputs)
        named = {name: self.cast(one) for name, one in named.items()}
        if not self.half:
            return self.model(*inputs, **named)
        weights = {name: self.cast(weight) for name, weight in self.model.named_parameters()}
        return _all_widened(functional_call(self.model, weights, inputs, named))

    def target(self, value: Array) -> Array:
        """Return targets in the dtype of the outputs."""
        return _widened(value) if self.half else self.cast(value)

    def cast(self, value: Array) -> Array:
        """Convert a tensor of real numbers to the policy's dtype; return everything else unchanged."""
        if self.dtype is not None and isinstance(value, Tensor) and value.dtype.kind in "fV":
            return astype(value, self.dtype)
        return value


def _all_widened(found: Any) -> Any:
    return type(found)(_widened(one) for one in found) if isinstance(found, tuple | list) else _widened(found)


def _widened(value: Array) -> Array:
    return astype(value, np.dtype(np.float32)) if isinstance(value, Tensor) and value.dtype.kind in "fV" else value
