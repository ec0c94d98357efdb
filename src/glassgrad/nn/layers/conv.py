"""Convolutions and their transposes, over one, two and three dimensions."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from glassgrad.engine.tensor import Tensor, TensorLike
from glassgrad.engine.tensors import creation, devices
from glassgrad.engine.tensors.devices import Device, DType
from glassgrad.nn import init
from glassgrad.nn.arguments import Ints
from glassgrad.nn.module import Module, changed
from glassgrad.nn.parameter import Parameter
from glassgrad.ops.arrange import pad
from glassgrad.ops.core import Array, bad_option
from glassgrad.ops.spatial import conv1d, conv2d, conv3d, conv_transpose1d, conv_transpose2d, conv_transpose3d

_MODES = {"zeros": "constant", "reflect": "reflect", "replicate": "replicate", "circular": "circular"}


def several(value: Ints, count: int) -> tuple[int, ...]:
    """An int, or `count` of them, as a tuple."""
    return (value,) * count if isinstance(value, int) else tuple(value)


class _Conv(Module):
    """Base of the convolutions over `dims` dimensions; `turned` is true for transposed ones."""

    dims = 0
    turned = False

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Ints,
        stride: Ints,
        padding: Ints | str,
        dilation: Ints,
        groups: int,
        bias: bool,
        padding_mode: str,
        output_padding: Ints,
        dtype: DType,
    ) -> None:
        super().__init__()
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.kernel_size = several(kernel_size, self.dims)
        self.stride = several(stride, self.dims)
        self.sides = (0,) * self.dims if isinstance(padding, str) else several(padding, self.dims)
        self.padding: Any = padding if isinstance(padding, str) else self.sides
        self.dilation = several(dilation, self.dims)
        self.output_padding = several(output_padding, self.dims)
        self.groups = groups
        self.padding_mode = padding_mode
        self._check()
        first, second = (in_channels, out_channels) if self.turned else (out_channels, in_channels)
        shape = (first, second // groups, *self.kernel_size)
        self.weight = Parameter(creation.empty(shape, dtype=dtype).array)
        self.bias = Parameter(creation.empty(out_channels, dtype=dtype).array) if bias else None
        self.reset_parameters()

    def _check(self) -> None:
        """Raise `ArgumentError` on impossible sizes."""
        owner = type(self).__name__
        for name in ("in_channels", "out_channels"):
            if self.groups <= 0 or getattr(self, name) % self.groups:
                expected = f"a multiple of groups={self.groups}"
                raise bad_option(owner, name, getattr(self, name), expected)
        if self.padding_mode not in _MODES:
            raise bad_option(owner, "padding_mode", self.padding_mode, "one of " + ", ".join(_MODES))

    def reset_parameters(self) -> None:
        """Draw new weights, uniformly from ±1/sqrt(inputs of a unit)."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            fan, _ = init.fans(self.weight)
            bound = 1 / math.sqrt(fan) if fan else 0
            init.uniform_(self.bias, -bound, bound)

    def _border(self) -> list[int]:
        """Return the border as `F.pad` wants it: last dimension first, before and after."""
        if self.padding == "valid":
            return [0, 0] * self.dims
        if self.padding == "same":
            totals = [d * (k - 1) for d, k in zip(self.dilation, self.kernel_size, strict=True)]
            return [n for total in reversed(totals) for n in (total // 2, total - total // 2)]
        return [n for side in reversed(self.sides) for n in (side, side)]

    def _padded(self, x: Array) -> tuple[Array, Array]:
        """Return the input, padded unless the border is zeros, and the padding left for the convolution."""
        if self.padding_mode == "zeros":
            return x, self.padding
        return pad(x, self._border(), mode=_MODES[self.padding_mode]), 0

    def extra_repr(self) -> str:
        parts = [f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"]
        zeros, ones = (0,) * self.dims, (1,) * self.dims
        parts += changed(self, padding=zeros, dilation=ones, output_padding=zeros, groups=1)
        parts += ["bias=False"] if self.bias is None else []
        return ", ".join([*parts, *changed(self, padding_mode="zeros")])


class _Direct(_Conv):
    """Base of the convolutions that are not transposed."""

    operation: Callable[..., Array]

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Ints,
        stride: Ints = 1,
        padding: Ints | str = 0,
        dilation: Ints = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Device = None,
        dtype: DType = None,
    ) -> None:
        devices.check(device)
        super().__init__(
            in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias, padding_mode, 0, dtype
        )

    def forward(self, input: TensorLike) -> Tensor:
        input, padding = self._padded(input)
        return self.operation(input, self.weight, self.bias, self.stride, padding, self.dilation, self.groups)


class Conv1d(_Direct):
    """Cross-correlation of (N, C, L) or (C, L) with learned kernels.

    Args:
        in_channels, out_channels: channels before and after.
        kernel_size, stride, padding, dilation: of the window; padding may be "same" or "valid".
        groups: groups of channels that do not mix.
        bias: whether a number is added to each output channel.
        padding_mode: "zeros", "reflect", "replicate" or "circular".

    Example:
        >>> import glassgrad as gg
        >>> gg.nn.Conv1d(2, 6, 3, padding=1)(gg.zeros(4, 2, 8)).shape
        (4, 6, 8)
    """

    dims = 1
    operation = staticmethod(conv1d)


class Conv2d(_Direct):
    """Cross-correlation of (N, C, H, W) or (C, H, W) with learned kernels; arguments as for `Conv1d`.

    Example:
        >>> import glassgrad as gg
        >>> gg.nn.Conv2d(3, 8, 3, padding=1)(gg.zeros(2, 3, 5, 5)).shape
        (2, 8, 5, 5)
    """

    dims = 2
    operation = staticmethod(conv2d)


class Conv3d(_Direct):
    """Cross-correlation of (N, C, D, H, W) or (C, D, H, W) with learned kernels; arguments as for `Conv1d`.

    Example:
        >>> import glassgrad as gg
        >>> gg.nn.Conv3d(3, 8, 3, padding=1)(gg.zeros(2, 3, 4, 5, 5)).shape
        (2, 8, 4, 5, 5)
    """

    dims = 3
    operation = staticmethod(conv3d)


class _ConvTranspose(_Conv):
    """Base of the transposed convolutions."""

    turned = True
    operation: Callable[..., Array]

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Ints,
        stride: Ints = 1,
        padding: Ints = 0,
        output_padding: Ints = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Ints = 1,
        padding_mode: str = "zeros",
        device: Device = None,
        dtype: DType = None,
    ) -> None:
        devices.check(device)
        if padding_mode != "zeros":
            raise bad_option(type(self).__name__, "padding_mode", padding_mode, "'zeros'")
        super().__init__(
            in_channels,
            out_channels,
            kernel_size,
            stride,
            padding,
            dilation,
            groups,
            bias,
            padding_mode,
            output_padding,
            dtype,
        )

    def _extra(self, x: Array, output_size: Sequence[int] | None) -> tuple[int, ...]:
        """Return the output padding that gives `output_size`, if there is one."""
        if output_size is None:
            return self.output_padding
        wanted = tuple(output_size)[-self.dims :]
        extra = []
        for axis, size in enumerate(x.shape[-self.dims :]):
            span = self.dilation[axis] * (self.kernel_size[axis] - 1) + 1
            least = (size - 1) * self.stride[axis] - 2 * self.padding[axis] + span
            if not least <= wanted[axis] < least + self.stride[axis]:
                raise bad_option(
                    type(self).__name__,
                    "output_size",
                    wanted,
                    f"{least} to {least + self.stride[axis] - 1} in dimension {axis}",
                )
            extra.append(wanted[axis] - least)
        return tuple(extra)

    def forward(self, input: TensorLike, output_size: Sequence[int] | None = None) -> Tensor:
        extra = self._extra(input, output_size)
        return self.operation(
            input, self.weight, self.bias, self.stride, self.padding, extra, self.groups, self.dilation
        )


class ConvTranspose1d(_ConvTranspose):
    """The transpose of `Conv1d`: what its gradient does to (N, C, L), with learned kernels.

    Example:
        >>> import glassgrad as gg
        >>> gg.nn.ConvTranspose1d(6, 2, 4, stride=2, padding=1)(gg.zeros(4, 6, 8)).shape
        (4, 2, 16)
    """

    dims = 1
    operation = staticmethod(conv_transpose1d)


class ConvTranspose2d(_ConvTranspose):
    """The transpose of `Conv2d`: what its gradient does to (N, C, H, W), with learned kernels.

    Example:
        >>> import glassgrad as gg
        >>> gg.nn.ConvTranspose2d(8, 3, 4, stride=2, padding=1)(gg.zeros(2, 8, 5, 5)).shape
        (2, 3, 10, 10)
    """

    dims = 2
    operation = staticmethod(conv_transpose2d)


class ConvTranspose3d(_ConvTranspose):
    """The transpose of `Conv3d`: what its gradient does to (N, C, D, H, W), with learned kernels.

    Example:
        >>> import glassgrad as gg
        >>> gg.nn.ConvTranspose3d(8, 3, 4, stride=2, padding=1)(gg.zeros(1, 8, 2, 3, 3)).shape
        (1, 3, 4, 6, 6)
    """

    dims = 3
    operation = staticmethod(conv_transpose3d)


__all__ = ["Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d"]
