"""Linear maps of one input and of two, and the identity."""

from __future__ import annotations

import math
from typing import Any

from glassgrad.engine.tensor import Tensor, TensorLike
from glassgrad.engine.tensors import creation, devices
from glassgrad.engine.tensors.devices import Device, DType
from glassgrad.nn import init
from glassgrad.nn.functional import products as F
from glassgrad.nn.module import Module
from glassgrad.nn.parameter import Parameter
from glassgrad.ops.fused import linear_p


class Linear(Module):
    """y = x wT + b: shapes (..., in_features) to (..., out_features).

    Weights are drawn uniformly from ±1/sqrt(in_features), as PyTorch does.

    Example:
        >>> import glassgrad as gg
        >>> gg.nn.Linear(3, 2)(gg.zeros(4, 3)).shape
        (4, 2)
    """

    def __init__(
        self, in_features: int, out_features: int, bias: bool = True, device: Device = None, dtype: DType = None
    ) -> None:
        devices.check(device)
        super().__init__()
        self.in_features = in_features
        self.out_features = out_features
        self.weight = Parameter(creation.empty(out_features, in_features, dtype=dtype).array)
        self.bias = Parameter(creation.empty(out_features, dtype=dtype).array) if bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw new weights."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            bound = 1 / math.sqrt(self.in_features) if self.in_features else 0
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input: TensorLike) -> Tensor:
        return linear_p(input, self.weight) if self.bias is None else linear_p(input, self.weight, self.bias)

    def extra_repr(self) -> str:
        return f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}"


class Bilinear(Module):
    """y[k] = x1T w[k] x2 + b[k]: shapes (..., in1_features) and (..., in2_features) to (..., out_features).

    Example:
        >>> import glassgrad as gg
        >>> gg.nn.Bilinear(3, 4, 2)(gg.zeros(5, 3), gg.zeros(5, 4)).shape
        (5, 2)
    """

    def __init__(
        self,
        in1_features: int,
        in2_features: int,
        out_features: int,
        bias: bool = True,
        device: Device = None,
        dtype: DType = None,
    ) -> None:
        devices.check(device)
        super().__init__()
        self.in1_features = in1_features
        self.in2_features = in2_features
        self.out_features = out_features
        self.weight = Parameter(creation.empty(out_features, in1_features, in2_features, dtype=dtype).array)
        self.bias = Parameter(creation.empty(out_features, dtype=dtype).array) if bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw new weights, uniformly from ±1/sqrt(in1_features)."""
        bound = 1 / math.sqrt(self.in1_features)
        init.uniform_(self.weight, -bound, bound)
        if self.bias is not None:
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input1: TensorLike, input2: TensorLike) -> Tensor:
        return F.bilinear(input1, input2, self.weight, self.bias)

    def extra_repr(self) -> str:
        return (
            f"in1_features={self.in1_features}, in2_features={self.in2_features}, "
            f"out_features={self.out_features}, bias={self.bias is not None}"
        )


class Identity(Module):
    """Returns its input; takes and ignores any arguments.

    Example:
        >>> import glassgrad as gg
        >>> gg.nn.Identity()(gg.ones(2))
        tensor([1., 1.])
    """

    def __init__(self, *_args: object, **_kwargs: object) -> None:
        super().__init__()

    def forward(self, input: Any) -> Any:
        return input


__all__ = ["Bilinear", "Identity", "Linear"]
