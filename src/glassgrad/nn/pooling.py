"""Pooling layers: the largest, the mean or another power of each window."""

from __future__ import annotations

from typing import Any

from glassgrad.nn.module import Module
from glassgrad.ops import spatial


class _MaxPool(Module):
    """What the max poolings share."""

    def __init__(
        self, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, return_indices: bool = False,
        ceil_mode: bool = False,
    ) -> None:  # fmt: skip
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding = padding
        self.dilation = dilation
        self.return_indices = return_indices
        self.ceil_mode = ceil_mode

    def extra_repr(self) -> str:
        return (
            f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}, "
            f"dilation={self.dilation}, ceil_mode={self.ceil_mode}"
        )


class MaxPool1d(_MaxPool):
    """The largest number of each window of (N, C, L).

    Args:
        kernel_size, stride, padding, dilation: of the window; the stride is the window's size by default.
        return_indices: return the places of the largest as well.
        ceil_mode: keep a window that reaches over the end.

    Example:
        >>> import glassgrad as gg
        >>> gg.nn.MaxPool1d(2)(gg.tensor([[[1.0, 3.0, 7.0, 5.0]]]))
        tensor([[[3., 7.]]])
    """

    def forward(self, input: Any) -> Any:
        return spatial.max_pool1d(
            input, self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode, self.return_indices
        )


class MaxPool2d(_MaxPool):
    """The largest number of each window of (N, C, H, W); arguments as for `MaxPool1d`.

    Example:
        >>> import glassgrad as gg
        >>> gg.nn.MaxPool2d(3, stride=2, padding=1)(gg.zeros(1, 3, 8, 8)).shape
        (1, 3, 4, 4)
    """

    def forward(self, input: Any) -> Any:
        return spatial.max_pool2d(
            input, self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode, self.return_indices
        )


class AvgPool1d(Module):
    """The mean of each window of (N, C, L).

    Args:
        kernel_size, stride, padding: of the window; the stride is the window's size by default.
        ceil_mode: keep a window that reaches over the end.
        count_include_pad: whether the zeros of the border count.

    Example:
        >>> import glassgrad as gg
        >>> gg.nn.AvgPool1d(2)(gg.tensor([[[1.0, 3.0, 5.0, 7.0]]]))
        tensor([[[2., 6.]]])
    """

    def __init__(
        self, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> None:  # fmt: skip
        super().__init__()
        self.kernel_size = _tuple(kernel_size)
        self.stride = self.kernel_size if stride is None else _tuple(stride)
        self.padding = _tuple(padding)
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad

    def forward(self, input: Any) -> Any:
        return spatial.avg_pool1d(
            input, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad
        )

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


def _tuple(value: Any) -> tuple[int, ...]:
    return (value,) if isinstance(value, int) else tuple(value)


class AvgPool2d(Module):
    """The mean of each window of (N, C, H, W); `divisor_override` replaces the count of numbers in it.

    Example:
        >>> import glassgrad as gg
        >>> gg.nn.AvgPool2d(2)(gg.zeros(1, 3, 8, 8)).shape
        (1, 3, 4, 4)
    """

    def __init__(
        self, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,
        count_include_pad: bool = True, divisor_override: int | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding = padding
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad
        self.divisor_override = divisor_override

    def forward(self, input: Any) -> Any:
        return spatial.avg_pool2d(
            input, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad,
            self.divisor_override,
        )  # fmt: skip

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class _Adaptive(Module):
    def __init__(self, output_size: Any) -> None:
        super().__init__()
        self.output_size = output_size

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"


class AdaptiveAvgPool1d(_Adaptive):
    """The means of about equal parts of (N, C, L), as many as `output_size`.

    Example:
        >>> import glassgrad as gg
        >>> gg.nn.AdaptiveAvgPool1d(2)(gg.tensor([[[1.0, 3.0, 5.0, 7.0]]]))
        tensor([[[2., 6.]]])
    """

    def forward(self, input: Any) -> Any:
        return spatial.adaptive_avg_pool1d(input, self.output_size)


class AdaptiveAvgPool2d(_Adaptive):
    """The means of a grid of about equal parts of (N, C, H, W); None in `output_size` keeps an axis.

    Example:
        >>> import glassgrad as gg
        >>> gg.nn.AdaptiveAvgPool2d((None, 2))(gg.zeros(1, 3, 8, 8)).shape
        (1, 3, 8, 2)
    """

    def forward(self, input: Any) -> Any:
        return spatial.adaptive_avg_pool2d(input, self.output_size)


__all__ = ["AdaptiveAvgPool1d", "AdaptiveAvgPool2d", "AvgPool1d", "AvgPool2d", "MaxPool1d", "MaxPool2d"]
