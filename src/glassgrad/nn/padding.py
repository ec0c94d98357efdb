"""Borders around signals and images: of zeros, of a number, mirrored, repeated, or from the other side."""

from __future__ import annotations

from typing import Any

from glassgrad.nn.module import Module
from glassgrad.ops.arrange import pad


class _Padding(Module):
    """What the paddings share: `padding` is one number or two for each dimension, the last dimension first."""

    dims = 0
    mode = "constant"

    def __init__(self, padding: Any) -> None:
        super().__init__()
        self.padding = (padding,) * (2 * self.dims) if isinstance(padding, int) else tuple(padding)

    def forward(self, input: Any) -> Any:
        return pad(input, self.padding, mode=self.mode)

    def extra_repr(self) -> str:
        return str(self.padding)


class _Constant(_Padding):
    def __init__(self, padding: Any, value: float) -> None:
        super().__init__(padding)
        self.value = value

    def forward(self, input: Any) -> Any:
        return pad(input, self.padding, value=self.value)

    def extra_repr(self) -> str:
        return f"padding={self.padding}, value={self.value}"


class ConstantPad1d(_Constant):
    """A border of `value` around (..., L)."""

    dims = 1


class ConstantPad2d(_Constant):
    """A border of `value` around (..., H, W)."""

    dims = 2


class ZeroPad1d(_Padding):
    """A border of zeros around (..., L)."""

    dims = 1


class ZeroPad2d(_Padding):
    """A border of zeros around (..., H, W)."""

    dims = 2


class ReflectionPad1d(_Padding):
    """A border that mirrors (..., L) without repeating its ends."""

    dims = 1
    mode = "reflect"


class ReflectionPad2d(_Padding):
    """A border that mirrors (..., H, W) without repeating its edges."""

    dims = 2
    mode = "reflect"


class ReplicationPad1d(_Padding):
    """A border that repeats the ends of (..., L)."""

    dims = 1
    mode = "replicate"


class ReplicationPad2d(_Padding):
    """A border that repeats the edges of (..., H, W)."""

    dims = 2
    mode = "replicate"


class CircularPad1d(_Padding):
    """A border that continues (..., L) from its other end."""

    dims = 1
    mode = "circular"


class CircularPad2d(_Padding):
    """A border that continues (..., H, W) from the other side."""

    dims = 2
    mode = "circular"


__all__ = [
    "CircularPad1d", "CircularPad2d", "ConstantPad1d", "ConstantPad2d", "ReflectionPad1d", "ReflectionPad2d",
    "ReplicationPad1d", "ReplicationPad2d", "ZeroPad1d", "ZeroPad2d",
]  # fmt: skip
